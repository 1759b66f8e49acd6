"""How many cores there are for this process."""

import os
import subprocess
import sys

import pytest

from ollm.system.cores import count_cores


def test_a_process_that_is_kept_to_one_core_has_one() -> None:
    code = "import os; from ollm.system.cores import count_cores; os.sched_setaffinity(0, {%d}); print(count_cores())"
    only = code % min(os.sched_getaffinity(0))

    assert subprocess.run([sys.executable, "-c", only], capture_output=True, text=True, check=True).stdout == "1\n"
    assert count_cores() == len(os.sched_getaffinity(0))


def test_where_nobody_can_be_kept_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert count_cores() == 7

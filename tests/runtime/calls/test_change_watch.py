"""Who hears of changes is there before the first request; what runs calls is not loaded for it."""

import subprocess
import sys

from ollm.runtime.calls.change_watch import ChangeWatch


async def test_one_that_does_not_care_lets_everything_pass() -> None:
    watch = ChangeWatch()

    await watch.before_change(["a.txt"])
    await watch.after_changes()


def test_the_observer_of_checkpoints_loads_nothing_that_runs_calls() -> None:
    asked = "import sys, ollm.runtime.observers.file_checkpoints; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()

    assert "ollm.runtime.observers.file_checkpoints" in loaded
    assert not {"ollm.runtime.calls.tool_call", "ollm.runtime.calls.permission", "ollm.system.paths"} & set(loaded)

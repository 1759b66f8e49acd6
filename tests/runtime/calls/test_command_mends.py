"""Commands of small models without their slips."""

import subprocess
from pathlib import Path

import pytest

from ollm.runtime.calls.command_mends import mend_command


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("awk '{s += $3} END {print s}' t.csv > sum; cat sum", "7"),
        ("awk -F, '$2 == \"blue\"' t.csv | awk '{s += $3} END {print s}'", "5"),
        ("grep red t.csv | awk '{s+=$3} END {print s}'", "2"),
        ("awk -F, '{print $2, $3}' t.csv | awk '{s += $2} END {print s}'", "7"),
        ("cut -d, -f3 t.csv | awk '{s += $1} END {print s}'", "7"),
        ("awk 'BEGIN{FS=\",\"} {s += $3} END {print s}' t.csv", "7"),
        ("wc -l t.csv one.txt | sort -nr | head -n 1", "3 t.csv"),
        ("wc -l *.txt *.csv | sort -n | tail -1", "3 t.csv"),
        ("sed -i 's/one/two' one.txt; cat one.txt", "two words"),
        ("awk '{print $2}' one.txt", "words"),
        ("wc -l one.txt | sort | head", "1 one.txt"),
    ],
)
def test_a_command_says_what_was_meant(tmp_path: Path, command: str, printed: str) -> None:
    (tmp_path / "t.csv").write_text("id,name,amount\n1,red,2\n2,blue,5\n")
    (tmp_path / "one.txt").write_text("one words\n")
    done = subprocess.run(
        ["sh", "-c", mend_command(command)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == printed


@pytest.mark.parametrize(
    ("command", "mended"),
    [
        (r'echo "a\nb" > a.txt', r"""printf '%b\n' "a\nb" > a.txt"""),
        (r"echo 'def f():\n    return 1' >> a.py", r"printf '%b\n' 'def f():\n    return 1' >> a.py"),
        (r"""echo 'print("a\nb")' > a.py""", r"""echo 'print("a\nb")' > a.py"""),
        (r'echo "a\nb"', r'echo "a\nb"'),
        (r'echo "a b" > a.txt', r'echo "a b" > a.txt'),
    ],
)
def test_lines_that_are_echoed_into_a_file_are_lines(command: str, mended: str) -> None:
    assert mend_command(command) == mended

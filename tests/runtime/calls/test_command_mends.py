"""Commands of small models without their slips."""

import subprocess
from pathlib import Path

import pytest

from ollm.runtime.calls.command_mends import mend_command, mend_slashes


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
        (r'echo "a\nb" > a.TXT', r"""printf '%b\n' "a\nb" > a.TXT"""),
        (r'echo "a\nb" > a.c', r'echo "a\nb" > a.c'),
        (r'echo "{\"a\":\n1}" > a.json', r"""printf '%b\n' "{\"a\":\n1}" > a.json"""),
        (r"echo 'x = 1\n)' > a.py", r"echo 'x = 1\n)' > a.py"),
        ("sed -i 's/a/b/' f", "sed -i 's/a/b/' f"),
        ("awk '{print $2}' a.csv", "awk -F, '{print $2}' a.csv"),
        ("awk '{print $1}' a.csv", "awk '{print $1}' a.csv"),
        ("awk -F';' '{print $2}' a.csv", "awk -F';' '{print $2}' a.csv"),
        ("cat a.csv | tail -n +2 | gawk '{print $NF}'", "cat a.csv | tail -n +2 | gawk -F, '{print $NF}'"),
        ("awk '/a/' a.csv | awk '{print $2}'", "awk '/a/' a.csv | awk -F, '{print $2}'"),
        ("cut -f2 a.csv | awk '{print $2}'", "cut -f2 a.csv | awk '{print $2}'"),
        ("echo a.csv; awk '{print $2}' b", "echo a.csv; awk '{print $2}' b"),
        ("grep '|;' a.csv | awk '{print $2}'", "grep '|;' a.csv | awk -F, '{print $2}'"),
        ("awk '{print $2}' b", "awk '{print $2}' b"),
    ],
)
def test_lines_that_are_echoed_into_a_file_are_lines(command: str, mended: str) -> None:
    assert mend_command(command) == mended


@pytest.mark.parametrize(
    ("command", "mended"),
    [
        ('echo "__pycache__ .venv" > .gitignore', "printf '%s\\n' __pycache__ .venv > .gitignore"),
        ("echo 'httpx rich>=13' >> requirements.txt", "printf '%s\\n' httpx 'rich>=13' >> requirements.txt"),
        ('echo "# what is ignored" > .gitignore', None),
        ('echo "*.pyc" > .gitignore', None),
        ('echo "two words" > notes.txt', None),
        ("sort -k2 -nr scores.csv | head -n 1", "sort -t, -k2 -nr scores.csv | head -n 1"),
        ("awk -F, 'NR > 1' s.csv | sort -k2 -nr", "awk -F, 'NR > 1' s.csv | sort -t, -k2 -nr"),
        ("sort -t, -k2 scores.csv", None),
        ("sort scores.csv", None),
        ("sort -k2 scores.txt", None),
    ],
)
def test_entries_and_columns_are_separated(command: str, mended: str | None) -> None:
    assert mend_command(command) == (mended or command)


def test_statements_of_python_stand_on_lines_where_they_run_only_so() -> None:
    code = "import json; with open('a') as f: names = f.readlines(); print(names)"
    assert mend_command(f'python -c "{code}" > b') == f'python -c "{code.replace("; with", chr(10) + "with")}" > b'
    for same in ("import os; print(1)", "if x: pass; else: pass", "[x for x in (1, 2)]; print(2)"):
        assert mend_command(f"python -c '{same}'") == f"python -c '{same}'"


def test_slashes_in_the_words_of_sed_are_words_where_the_file_says_so(tmp_path: Path) -> None:
    text = "x = (RATE / 100.0)\nurl = http://a.b/c\n"
    (tmp_path / "a.py").write_text(text)
    commands = ("sed -i 's/(RATE / 100.0)/(RATE * 100.0)/' a.py", "sed -i 's/http://a.b/c/https://d/' a.py")
    mended = [mend_slashes(command, {"a.py": text}.get) for command in commands]
    for command in mended:
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)

    assert (tmp_path / "a.py").read_text() == "x = (RATE * 100.0)\nurl = https://d\n"
    for same in ("sed -i 's/x/y/' a.py", "sed -i 's/no / such/word/' a.py", "sed -i 's/a/b/c/' none.py", "ls"):
        assert mend_slashes(same, {"a.py": text}.get) == same

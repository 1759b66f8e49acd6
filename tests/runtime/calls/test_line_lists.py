"""Lines of a file as a JSON list."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.runtime.calls.line_lists import mend_listing_command, mend_lists

HEAD = "import json\n"
NAMES = "Zoë\nJonas\n"


@pytest.mark.parametrize(
    "program",
    [
        "with open('a.txt') as f: names = f.readlines(); print(json.dumps(names))",
        "é = 'é'; print(json.dumps(open('a.txt').readlines()))",
        "print(json.dumps(list(open('a.txt'))))",
        "f = open('a.txt')\nprint(json.dumps([line for line in f], indent=2))",
        "with open('a.txt') as f:\n    names = [\n        name\n        for name in f.readlines()\n    ]\nprint(json.dumps(names))",
        "names = []\nfor name in open('a.txt'):\n    names.append(name)\nprint(json.dumps(names))",
        "print(json.dumps(open('a.txt').read().split('\\n')))",
        "from pathlib import Path\nprint(json.dumps(Path('a.txt').read_text().split('\\n')))",
        "from pathlib import Path\nwith Path('a.txt').open() as f:\n    print(json.dumps(list(f)))",
        "import sys\nwith open('a.txt') as f, sys.stdout as out:\n    json.dump(f.readlines(), out)",
    ],
)
def test_a_list_of_lines_goes_into_json_without_line_breaks(tmp_path: Path, program: str) -> None:
    (tmp_path / "a.txt").write_text(NAMES, encoding="utf-8")
    code = HEAD + program
    mended = mend_lists(code)
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", mended], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert mended != code
    assert (done.stderr, json.loads(done.stdout or "0")) == ("", NAMES.split())


@pytest.mark.parametrize(
    "program",
    [
        "print(json.dumps([line.strip() for line in open('a.txt')]))",
        "print(json.dumps([line for line in open('a.txt') if line]))",
        "names = open('a.txt').readlines()\nnames = [name.strip() for name in names]\nprint(json.dumps(names))",
        "lines = open('a.txt').readlines()\nprint(len(lines))\nprint(json.dumps(lines))",
        "print(json.dumps({'source': open('a.txt').readlines()}))",
        "print(json.dumps(open('a.txt').read()))",
        "print(json.dumps(open('a.txt').read().split('\\n')[:-1]))",
        "print(json.dumps(open('a.txt').readlines(3)))",
        "rows = [[1], [2]]\nprint(json.dumps([row for row in rows]))",
        "import csv\nprint(json.dumps(list(csv.reader(open('a.txt')))))",
        "names = []\nfor name in open('a.txt'):\n    names.append(name.strip())\nprint(json.dumps(names))",
        "names = []\nfor name in open('a.txt'):\n    name = name.strip()\n    names.append(name)\nprint(json.dumps(names))",
        "print(json.dumps(open('a.txt').readlines())",
        "print(open('a.txt').readlines())",
    ],
)
def test_anything_else_stays(program: str) -> None:
    assert mend_lists(HEAD + program) == HEAD + program


def test_line_breaks_that_are_spoken_of_stay() -> None:
    code = f"{HEAD}print(json.dumps(open('a.txt').readlines()))"
    for request in ("put the lines into a.json, with their line breaks", "make cells of a notebook", r"keep the \n"):
        assert mend_lists(code, request) == code
    assert mend_lists(code, "turn a.txt into a list of strings") != code


def test_the_program_of_a_command_is_mended_in_its_quotes() -> None:
    for quote, inner in (('"', r"\""), ('"', "'"), ("'", '"')):
        code = f"import json; print(json.dumps(open({inner}a.txt{inner}).readlines()))"
        command = f"python -c {quote}{code}{quote} > a.json; cat a.json"

        assert mend_listing_command(command) == command.replace(".readlines()", ".read().splitlines()")
        assert mend_listing_command(command, "keep the newlines") == command

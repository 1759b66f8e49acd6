"""A file that is mended until a run succeeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.providers.base import CallPiece
from ollm.runtime.calls.mending import MAX_TRIES, Mending
from tests.runtime.calls.test_project_files import Place

CODE = "def f(n):\n    return n - 1\n"
MENDED = CODE.replace("-", "+")
ASKED = "test_a.py fails. Fix a.py."
RUN = "python test_a.py"
FAILED = 'Traceback\n  File "/w/test_a.py", line 2, in <module>\n    assert f(1) == 2, f(1)\nAssertionError: 0\n'
STEP = "{}:\n```\ndef f(n):\n    return n - 1\n```\n\nf(1) gives 0, but it should give 2. Now find the bug in a.py."


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "w")
    made.write("a.py", CODE)
    made.write("test_a.py", "from a import f\nassert f(1) == 2, f(1)\n")
    yield made
    made.discovery.close()


def fail(mending: Mending, output: str = FAILED, command: str = RUN, asked: str = ASKED) -> str:
    return mending.note_run(asked, command, output, ["a.py", "test_a.py"])


def test_a_failing_run_asks_about_the_code_and_a_change_is_tried_at_once(place: Place) -> None:
    mending = Mending(place.files)

    assert fail(mending) == STEP.format("a.py")
    assert mending.note_change() == f"Now run {RUN}."
    place.write("a.py", CODE.replace("-", "*"))
    assert fail(mending) == STEP.format("a.py was")
    assert place.files.knows_whole("a.py", CODE.replace("-", "*"))
    assert fail(mending, "") == ""
    assert not mending.is_open
    assert mending.note_change() == ""


def test_it_is_asked_only_so_often(place: Place) -> None:
    mending = Mending(place.files)
    fail(mending)

    asked = [mending.ask() for _ in range(MAX_TRIES)]

    assert all(asked[:-1])
    assert asked[-1] == ""
    assert mending.has_given_up
    assert fail(mending) == ""


@pytest.mark.parametrize(
    ("command", "output", "asked"),
    [
        ("ls", FAILED, ASKED),
        (RUN, "make: no rule\n", ASKED),
        (RUN, FAILED, "Rename f to g in a.py"),
        (RUN, FAILED, "test_a.py fails. Fix a.py and b.py, but leave a.py alone."),
    ],
)
def test_nothing_is_asked_where_it_is_not_plain_what_is_to_be_mended(
    place: Place, command: str, output: str, asked: str
) -> None:
    assert fail(Mending(place.files), output, command, asked) == ""


def test_of_a_long_file_the_function_that_failed_is_asked_about(place: Place) -> None:
    place.write("a.py", CODE + "".join(f"\n\ndef g{number}(n):\n    return n\n" for number in range(60)))

    mending = Mending(place.files)
    assert fail(mending) == STEP.format("f in a.py").replace("bug in a.py", "bug in f in a.py")
    said = {"path": "a.py", "content": f"def g1(n):\n    return 0\n\n\n{MENDED}", "whole": True}
    kept = mending.keep_part(CallPiece("file_block", said))
    assert kept.arguments == said | {"content": MENDED.rstrip()}
    for other in (said | {"path": "b.py"}, said | {"content": "x = 1\n"}):
        assert mending.keep_part(CallPiece("file_block", other)).arguments == other


def test_a_key_that_is_not_there_comes_with_the_data(place: Place) -> None:
    place.write("load.py", "import json\nprint(json.load(open('cfg.json'))['hostname'])\n")
    place.write("cfg.json", '{\n  "host": "a"\n}\n')
    failure = "Traceback\n  File \"/w/load.py\", line 2, in <module>\nKeyError: 'hostname'\n"
    names = ["a.py", "cfg.json", "load.py"]

    asked = Mending(place.files).note_run("load.py fails. Fix it.", "python load.py", failure, names)
    other = Mending(place.files).note_run(
        "load.py fails. Fix it.", "python load.py", failure.replace("Key", "Name"), names
    )

    assert (
        'It ends with KeyError: \'hostname\'. cfg.json begins with { "host": "a" }. Now find the bug in load.py.'
        in asked
    )
    assert "cfg.json begins" not in other
    assert other

"""T3.5-3.7: edit_file, through dispatch, and how a target is found."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.tools.edit_file import EditMatch, Replacement, apply_edits, find_closest_text
from tests.covers import covers
from tests.tools.drive import Driver, content, error


def edit(target: str, replacement: str, **more: Any) -> dict[str, Any]:
    return {"target": target, "replacement": replacement, **more}


@covers("T3.5")
async def test_all_edits_are_made_against_the_text_as_it_was(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("a = 1\nb = 2\n", encoding="utf-8")

    record = await drive("edit_file", path="a.py", edits=[edit("b = 2", "b = 1"), edit("a = 1", "a = 2")])

    assert path.read_text(encoding="utf-8") == "a = 2\nb = 1\n"
    assert content(record) == "Edited a.py: 2 edits made."
    assert record.result is not None
    assert record.result.diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-a = 1\n-b = 2\n+a = 2\n+b = 1\n"
    assert record.result.diff in record.result.return_display


@covers("T3.6")
async def test_a_target_that_is_nowhere_names_the_edit_and_the_closest_text(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.py"
    text = "import os\n\ndef greet(name):\n    print('Hello', name)\n"
    path.write_text(text, encoding="utf-8")

    kind, message = error(
        await drive(
            "edit_file", path="a.py", edits=[edit("import os", "import sys"), edit("print('Helo', name)", "pass")]
        )
    )

    assert kind == "EditTargetNotFound"
    assert "Edit 2" in message
    assert "line 4" in message
    assert "Hello" in message
    assert path.read_text(encoding="utf-8") == text


@covers("T3.7")
async def test_an_ambiguous_target_names_how_many_and_where(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("x\ny\nx\nx\n", encoding="utf-8")

    kind, message = error(await drive("edit_file", path="a.py", edits=[edit("y", "z"), edit("x", "w")]))

    assert kind == "EditTargetAmbiguous"
    assert "Edit 2" in message
    assert "3 times" in message
    assert "lines 1, 3, 4" in message
    assert path.read_text(encoding="utf-8") == "x\ny\nx\nx\n"


async def test_replace_all_replaces_every_occurrence(drive: Driver, workspace: Path) -> None:
    (workspace / "a.py").write_text("x\ny\nx\n", encoding="utf-8")

    await drive("edit_file", path="a.py", edits=[edit("x", "w", replaceAll=True)])

    assert (workspace / "a.py").read_text(encoding="utf-8") == "w\ny\nw\n"


async def test_a_crlf_file_keeps_its_line_ends(drive: Driver, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    await drive("edit_file", path="a.txt", edits=[edit("one\ntwo\n", "1\n2\n2b\n")])

    assert (workspace / "a.txt").read_bytes() == b"1\r\n2\r\n2b\r\nthree\r\n"


async def test_mixed_line_ends_stay_where_they_are(drive: Driver, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\nthree\nfour\r\nfive\n")

    await drive("edit_file", path="a.txt", edits=[edit("three", "3")])

    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\n3\nfour\r\nfive\n"


async def test_dollars_and_backslashes_are_plain_text(drive: Driver, workspace: Path) -> None:
    (workspace / "a.txt").write_text("value", encoding="utf-8")

    await drive("edit_file", path="a.txt", edits=[edit("value", r"$& \1 \g<0> $1")])

    assert (workspace / "a.txt").read_text(encoding="utf-8") == r"$& \1 \g<0> $1"


async def test_two_edits_that_overlap_change_nothing(drive: Driver, workspace: Path) -> None:
    (workspace / "a.txt").write_text("abcdef", encoding="utf-8")

    kind, message = error(await drive("edit_file", path="a.txt", edits=[edit("abcd", "1"), edit("cdef", "2")]))

    assert kind == "EditsOverlap"
    assert "Edits 1 and 2" in message
    assert (workspace / "a.txt").read_text(encoding="utf-8") == "abcdef"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([], "expected a list of length >= 1"),
        ([edit("", "x")], "edits[0].target: expected text of length >= 1"),
        ([edit("a", "a")], "changes nothing"),
        ([{"target": "a"}], "edits[0].replacement: missing"),
        ("nonsense", "edits[0]: expected a mapping"),
        (None, "edits: "),
    ],
)
async def test_edits_that_make_no_sense_are_refused(drive: Driver, workspace: Path, edits: Any, said: str) -> None:
    (workspace / "a.txt").write_text("abc", encoding="utf-8")

    kind, message = error(await drive("edit_file", path="a.txt", edits=edits))

    assert kind == "ValidationError"
    assert said in message
    assert (workspace / "a.txt").read_text(encoding="utf-8") == "abc"


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": edit("abc", "x")},
        {"target": "abc", "replacement": "x"},
        {"old_string": "abc", "new_string": "x"},
        {"edits": [{"oldText": "abc", "newText": "x"}]},
        {"edits": '[{"target": "abc", "replacement": "x"}]'},
        {"edits": [{"target": "abc", "replacement": "x", "replace_all": "false"}]},
    ],
)
async def test_other_ways_to_say_the_same_edit(drive: Driver, workspace: Path, arguments: dict[str, Any]) -> None:
    (workspace / "a.txt").write_text("abc", encoding="utf-8")

    content(await drive("edit_file", path="a.txt", **arguments))

    assert (workspace / "a.txt").read_text(encoding="utf-8") == "x"


async def test_white_space_is_forgiven_where_one_place_matches_and_it_is_said(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("def f():\n    if x:\n        return 1  \n    return 2\n", encoding="utf-8")

    record = await drive("edit_file", path="a.py", edits=[edit("if x:\n    return 1", "if y:\n    return 3")])

    assert path.read_text(encoding="utf-8") == "def f():\n    if y:\n        return 3\n    return 2\n"
    assert "whitespace was ignored" in content(record)


async def test_white_space_beside_signs_is_not_compared_and_between_words_it_is(drive: Driver, workspace: Path) -> None:
    (workspace / "config.ini").write_text("[server]\nport = 80\nname = my host\n", encoding="utf-8")

    done = await drive("edit_file", path="config.ini", edits=[{"target": "port=80", "replacement": "port = 81"}])
    joined = await drive("edit_file", path="config.ini", edits=[{"target": "name=myhost", "replacement": "x"}])

    assert "whitespace was ignored" in content(done)
    assert (workspace / "config.ini").read_text() == "[server]\nport = 81\nname = my host\n"
    assert joined.error is not None
    assert joined.error.type == "EditTargetNotFound"


async def test_a_short_file_is_shown_when_nothing_in_it_comes_near(drive: Driver, workspace: Path) -> None:
    (workspace / "README.md").write_text("You will recieve mail.\n", encoding="utf-8")

    record = await drive("edit_file", path="README.md", edits=[{"target": "receive", "replacement": "received"}])

    assert record.error is not None
    assert record.error.message.endswith("No similar text. It says:\nYou will recieve mail.\n")


async def test_white_space_is_not_forgiven_where_two_places_match(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("  x = 1\n\tx = 1\n", encoding="utf-8")

    kind, _ = error(await drive("edit_file", path="a.py", edits=[edit("    x = 1", "y")]))

    assert kind == "EditTargetNotFound"


async def test_line_numbers_copied_into_a_target_are_left_out(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("one\ntwo\nthree\n", encoding="utf-8")

    await drive("edit_file", path="a.py", edits=[edit("2\ttwo\n3\tthree", "2\n3")])

    assert path.read_text(encoding="utf-8") == "one\n2\n3\n"


async def test_a_file_changed_since_it_was_read_is_refused_with_what_it_says_now(
    drive: Driver, workspace: Path
) -> None:
    path = workspace / "a.txt"
    path.write_text("one two", encoding="utf-8")
    await drive("read_file", path="a.txt")
    path.write_text("one 2", encoding="utf-8")

    kind, message = error(await drive("edit_file", path="a.txt", edits=[edit("one", "1")]))

    assert kind == "FileChanged"
    assert "one 2" in message
    assert path.read_text(encoding="utf-8") == "one 2"


@pytest.mark.parametrize(
    ("data", "kind"),
    [("abc 漢字漢字漢字漢字漢字".encode() + b"\xff", "EncodingError"), (b"abc\0\1\2", "BinaryFile")],
)
async def test_what_would_not_come_back_as_it_was_is_not_touched(
    drive: Driver, workspace: Path, data: bytes, kind: str
) -> None:
    path = workspace / "a.txt"
    path.write_bytes(data)

    assert error(await drive("edit_file", path="a.txt", edits=[edit("abc", "x", replaceAll=True)]))[0] == kind
    assert path.read_bytes() == data


@covers("T2.9")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
async def test_an_edit_keeps_the_encoding(drive: Driver, workspace: Path, encoding: str) -> None:
    path = workspace / "a.txt"
    path.write_bytes("Grüße, schöne Welt über alles\nzwei\n".encode(encoding))

    content(await drive("edit_file", path="a.txt", edits=[edit("zwei", "drüben")]))

    assert path.read_bytes() == "Grüße, schöne Welt über alles\ndrüben\n".encode(encoding)


TEXT = st.text(alphabet="ab \n\t", max_size=60)


@covers("T3.5", "T3.6", "T3.7")
@given(text=TEXT, target=st.text(alphabet="ab \n", min_size=1, max_size=5), new=TEXT)
def test_an_edit_replaces_the_one_occurrence_or_says_why_not(text: str, target: str, new: str) -> None:
    count = text.count(target)
    kind, after, places = outcome(text, Replacement(target=target, replacement=new))

    if kind:
        assert (count == 0) == (kind == "EditTargetNotFound")
    elif count == 1:
        assert after == text.replace(target, new)
    else:
        assert count == 0
        assert places[0].note


def outcome(text: str, edit: Replacement) -> tuple[str, str, list[EditMatch]]:
    try:
        return ("", *apply_edits(text, (edit,), "a"))
    except ToolFailure as failure:
        return failure.kind, "", []


def test_edits_of_a_large_file_are_quick() -> None:
    import time

    text = "".join(f"line {number} of the file\n" for number in range(100_000))
    started = time.perf_counter()
    with pytest.raises(ToolFailure):
        apply_edits(text, (Replacement(target="line 5000x of the file", replacement=""),), "a")

    assert time.perf_counter() - started < 20


def test_the_closest_line_is_shown() -> None:
    text = "alpha\ndef compute(value):\n    return value\n"

    assert find_closest_text(text, "def compute(values):") == ("The closest text is at line 2:\ndef compute(value):")

"""The text of a file, or a range of its lines, without reading more than is shown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import OutputSettings, ReadFileSettings, ToolSettings
from ollm.domain.errors import ToolFailure
from ollm.tools.files.file_text import (
    NOTE_CHARS,
    NOTE_LINES,
    Excerpt,
    LineRange,
    append_notes,
    count_lines,
    read_text,
    render_lines,
)

WHOLE = LineRange()
WIDE = OutputSettings(max_chars=10_000, max_lines=1_000)


def settings(max_bytes: int = 1_000_000, **limits: int) -> ToolSettings:
    return ToolSettings(read_file=ReadFileSettings(max_bytes=max_bytes), output=OutputSettings(**limits))


async def read(path: Path, wanted: LineRange = WHOLE, using: ToolSettings | None = None) -> Excerpt:
    with path.open("rb") as file:
        return await read_text("f", file, wanted, using or settings())


@pytest.mark.parametrize(
    ("wanted", "whole", "words"),
    [
        (LineRange(), True, ""),
        (LineRange(first=2), False, " from line 2"),
        (LineRange(last=5), False, ", lines 1 to 5"),
        (LineRange(first=3, last=5), False, ", lines 3 to 5"),
    ],
)
def test_a_range_in_words(wanted: LineRange, whole: bool, words: str) -> None:
    assert (wanted.whole, wanted.words) == (whole, words)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)])
def test_lines_are_counted(text: str, count: int) -> None:
    assert count_lines(text) == count


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (LineRange(), "one\ntwo\nthree"),
        (LineRange(first=2), "two\nthree"),
        (LineRange(first=2, last=2), "two\n"),
        (LineRange(last=1), "one\n"),
        (LineRange(first=3, last=9), "three"),
        (LineRange(first=2, numbered=True), "2\ttwo\n3\tthree"),
        (LineRange(last=2, numbered=True), "1\tone\n2\ttwo\n"),
    ],
)
@pytest.mark.parametrize("max_bytes", [1000, 5])
async def test_lines_come_from_a_file_held_and_from_one_that_streams(
    tmp_path: Path, wanted: LineRange, shown: str, max_bytes: int
) -> None:
    (tmp_path / "f").write_text("one\ntwo\nthree")
    if wanted.whole and max_bytes == 5:
        with pytest.raises(ToolFailure) as caught:
            await read(tmp_path / "f", wanted, settings(max_bytes))
        assert caught.value.kind == "FileTooLarge"
        assert caught.value.message == (
            "f has 13 bytes; files over 5 bytes are not read whole. "
            "Read a part with startLine and endLine, or find the place with grep."
        )
        return
    found = await read(tmp_path / "f", wanted, settings(max_bytes))

    assert (found.text, found.notes) == (shown, ())
    assert found.content == (b"one\ntwo\nthree" if max_bytes == 1000 else None)
    assert found.count == count_lines(shown)


@pytest.mark.parametrize("max_bytes", [1000, 1])
@pytest.mark.parametrize(("text", "lines"), [("one\ntwo\n", "2 lines"), ("one", "1 line"), ("", "0 lines")])
async def test_a_range_past_the_end_is_refused(tmp_path: Path, text: str, lines: str, max_bytes: int) -> None:
    (tmp_path / "f").write_text(text)

    with pytest.raises(ToolFailure) as caught:
        await read(tmp_path / "f", LineRange(first=3), settings(max_bytes))
    assert caught.value.message == f"startLine 3 is past the end: f has {lines}."


async def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")

    assert await read(tmp_path / "f") == Excerpt(text="", count=0, content=b"")


async def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x7fELF\0\0")

    with pytest.raises(ToolFailure) as caught:
        await read(tmp_path / "f")
    assert (caught.value.kind, caught.value.message) == ("BinaryFile", "f is not text: it is an executable of 6 bytes.")


async def test_the_encoding_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfhi\n")

    found = await read(tmp_path / "f")
    assert (found.text, found.notes) == ("hi\n", ("encoding: utf-8 with byte order mark",))
    streamed = await read(tmp_path / "f", LineRange(last=1), settings(2))
    assert (streamed.text, streamed.notes) == ("hi\n", ("encoding: utf-8 with byte order mark",))


async def test_only_as_many_lines_as_fit_are_shown_and_where_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"{number}\n" for number in range(1, 21)))
    limits = settings(max_lines=NOTE_LINES + 4, max_chars=10_000)

    found = await read(tmp_path / "f", using=limits)
    assert found.text == "1\n2\n3\n4\n"
    assert found.notes == ("lines 1 to 4 of 20 are shown; read on with startLine 5",)
    assert found.count == 4
    later = await read(tmp_path / "f", LineRange(first=10), limits)
    assert later.notes == ("lines 10 to 13 of 20 are shown; read on with startLine 14",)
    streamed = await read(tmp_path / "f", LineRange(first=10), settings(5, max_lines=NOTE_LINES + 4, max_chars=10_000))
    assert streamed.text == "10\n11\n12\n13\n"
    assert streamed.notes == ("lines 10 to 13 are shown; read on with startLine 14",)


async def test_a_line_that_is_too_long_is_cut_and_said(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x" * 5000 + "\nend\n")

    found = await read(tmp_path / "f", using=settings(max_chars=NOTE_CHARS + 100, max_lines=100))
    assert found.text == "x" * 100
    assert found.notes == ("line 1 of 2 is too long and was cut here",)


async def test_long_lines_before_the_range_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("y" * 3_000_000 + "\n" + "z" * 2_000_000 + "\nwanted\nafter\n")

    found = await read(tmp_path / "f", LineRange(first=3, last=3), settings(1000))
    assert found.text == "wanted\n"


@given(st.text(alphabet="ab\n", max_size=60), st.integers(1, 8), st.none() | st.integers(0, 5))
def test_any_range_is_those_lines(text: str, first: int, more: int | None) -> None:
    wanted = LineRange(first=first, last=None if more is None else first + more)
    lines = text.splitlines(keepends=True)
    if first > max(len(lines), 1):
        with pytest.raises(ToolFailure, match="past the end"):
            render_lines("it", text, wanted, WIDE)
    else:
        assert render_lines("it", text, wanted, WIDE) == "".join(lines[first - 1 : wanted.last])


@pytest.mark.parametrize(
    ("text", "notes", "shown"),
    [
        ("a", (), "a"),
        ("a", ("n",), "a\n[n]"),
        ("a\n", ("n", "m"), "a\n[n]\n[m]"),
        ("", ("n",), "[n]"),
    ],
)
def test_notes_stand_below_the_text(text: str, notes: tuple[str, ...], shown: str) -> None:
    assert append_notes(Excerpt(text=text, count=1, notes=notes)) == shown

"""The text of a file, or a range of its lines, without reading more than is shown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import OutputSettings, ReadFileSettings, ToolSettings
from ollm.domain.errors import ToolFailure
from ollm.services.edit_ledger import EditLedger
from ollm.services.token_counting import TokenCounter
from ollm.tools.files.file_text import (
    NOTE_LINES,
    Encoding,
    Excerpt,
    LineRange,
    count_lines,
    detect_encoding,
    read_text,
    render_lines,
)
from tests.covers import covers
from tests.tools.drive import Driver, content

WHOLE = LineRange()
WIDE = OutputSettings(max_chars=10_000, max_lines=1_000)


def settings(max_bytes: int = 1_000_000, **limits: int) -> ToolSettings:
    return ToolSettings(read_file=ReadFileSettings(max_bytes=max_bytes), output=OutputSettings(**limits))


async def read(path: Path, wanted: LineRange = WHOLE, using: ToolSettings | None = None) -> Excerpt:
    with path.open("rb") as file:
        return await read_text("f", file, wanted, using or settings(), EditLedger())


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


def test_a_sample_may_be_cut_inside_a_character() -> None:
    data = "a€".encode()[:-1]

    assert detect_encoding(data, whole=False) == Encoding()
    assert detect_encoding(data) != Encoding()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_utf8_text_is_always_known(text: str) -> None:
    found = detect_encoding(text.encode())

    assert found is not None
    assert found.encode(found.decode(text.encode())) == text.encode()


COUNT = TokenCounter().count_text
LONG = "".join(f"def part_{number}(value):\n    return value + {number}\n\n\n" for number in range(300))


def reader(workspace: Path, max_tokens: int | None, **limits: int) -> Driver:
    driver = Driver(workspace, settings=ToolSettings(output=OutputSettings(**limits)))
    driver.services.result_tokens = max_tokens
    return driver


@covers("T9.1")
async def test_a_file_over_the_share_of_the_window_comes_as_head_notice_and_outline(workspace: Path) -> None:
    (workspace / "long.py").write_text(LONG)

    record = await reader(workspace, 1200)("read_file", path="long.py")

    text = content(record)
    head, _, outline = text.partition("[lines 1 to ")
    shown = int(outline.split(" ")[0])
    assert head == "".join(LONG.splitlines(keepends=True)[:shown])
    assert f"of 1,200 are shown; read on with startLine {shown + 1}, or name a symbol." in outline
    assert f"def part_{shown // 4 + 1}(value)" in outline
    assert "more definitions not shown" in outline
    assert 600 < COUNT(text) <= 1200
    assert record.result is not None
    assert record.result.full_output == LONG, "recall still reads all of it"


async def test_the_limits_of_output_hold_with_the_outline(workspace: Path) -> None:
    (workspace / "long.py").write_text(LONG)

    text = content(await reader(workspace, None, max_chars=6_000, max_lines=200)("read_file", path="long.py"))

    assert "Outline of the rest:" in text
    assert "omitted" not in text
    assert len(text) <= 6_000
    assert text.count("\n") < 200


async def test_what_fits_or_has_no_outline_stays_as_it_was(workspace: Path) -> None:
    (workspace / "short.py").write_text(LONG[:400])
    (workspace / "log.txt").write_text("word\n" * 3000)

    assert content(await reader(workspace, 1200)("read_file", path="short.py")) == LONG[:400]
    assert "Outline" not in content(await reader(workspace, 100)("read_file", path="log.txt"))


async def test_a_range_is_given_as_asked(workspace: Path) -> None:
    (workspace / "long.py").write_text(LONG)

    text = content(await reader(workspace, 200)("read_file", path="long.py", startLine=1, endLine=400))

    assert "Outline" not in text

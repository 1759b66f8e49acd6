"""T9: output within limits, clean, saying what was left out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import OutputSettings
from ollm.tools.framework.output import (
    MAX_KEPT_CHARS,
    StreamCleaner,
    clean_text,
    show_controls,
    trim_for_session,
    trim_output,
)
from tests.covers import covers

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def limits(chars: int = 30_000, lines: int = 1_000) -> OutputSettings:
    return OutputSettings(max_chars=chars, max_lines=lines)


@covers("T9.1", "T9.3")
def test_too_many_characters_are_cut_at_the_limit_and_counted() -> None:
    result = trim_output("x" * 50, limits(chars=20))

    assert result.text == "x" * 20 + "\n[… 1 line, 30 characters omitted …]"
    assert result.full == "x" * 50


@covers("T9.2", "T9.3")
def test_too_many_lines_are_cut_at_the_limit_and_counted() -> None:
    text = "".join(f"line {number}\n" for number in range(10))

    result = trim_output(text, limits(lines=3), way_back="read on with startLine LINE")

    assert result.text == "line 0\nline 1\nline 2\n[… 7 lines, 49 characters omitted; read on with startLine 4 …]"


@covers("T9.1", "T9.2")
def test_head_and_tail_are_kept_where_the_end_matters() -> None:
    text = "".join(f"{number}\n" for number in range(100))

    result = trim_output(text, limits(lines=4), keep="ends")

    assert result.text.splitlines()[:2] == ["0", "1"]
    assert result.text.splitlines()[-2:] == ["98", "99"]
    assert "96 lines" in result.text


@covers("T9.1")
def test_what_fits_is_left_as_it_is() -> None:
    text = "a\n" * 1_000

    assert trim_output(text, limits()).text == text
    assert trim_output(text, limits()).full is None


@covers("T9.1", "T9.2", "T9.3")
@given(
    text=st.text(alphabet="ab\n é漢", max_size=400),
    chars=st.integers(1, 100),
    lines=st.integers(2, 10),
    keep=st.sampled_from(["head", "ends"]),
)
def test_what_is_shown_and_what_is_counted_make_the_whole(text: str, chars: int, lines: int, keep) -> None:
    result = trim_output(text, limits(chars, lines), keep=keep)

    if result.full is None:
        assert result.text == text
        return
    note = re.search(r"\[… [\d,]+ lines?, ([\d,]+) characters omitted …\]", result.text)
    assert note is not None
    shown = result.text[: note.start()] + result.text[note.end() :].removeprefix("\n")
    assert len(text) - int(note[1].replace(",", "")) in {len(shown), len(shown) - 1}
    assert len(shown) <= chars + 1
    assert shown.count("\n") <= lines + 1


@covers("T9.5")
def test_escape_sequences_and_control_characters_do_not_get_through() -> None:
    assert clean_text("\x1b[31mred\x1b[0m \x1b]0;title\x07plain\r\nnext\x00") == "red plain\nnext␀"
    assert clean_text("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "link"
    assert clean_text("\x9b31mred \x90payload\x9c!") == "red !"
    assert clean_text("10%\r20%\r") == "10%\n20%\n"
    assert clean_text("\x1b]0;never ends\nnext line") == "\nnext line"
    assert clean_text("half\ud800") == "half\ufffd"


@covers("T9.5")
def test_what_makes_text_look_other_than_it_is_does_not_get_through() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")

    assert clean_text(f"ab\u202ecba\u202c \u2066x\u2069{hidden}!") == r"ab\u202ecba\u202c \u2066x\u2069!"
    assert (
        clean_text("👩\u200d💻 می\u200cخواهم \u05e9\u05dc\u05d5\u05dd")
        == "👩\u200d💻 می\u200cخواهم \u05e9\u05dc\u05d5\u05dd"
    )


@covers("T9.5")
@given(
    text=st.text(
        st.characters(codec=None, min_codepoint=0, max_codepoint=0x2FF) | st.sampled_from("\x1b[]0m;\x07\ud800")
    )
)
def test_clean_text_holds_no_control_character(text: str) -> None:
    assert not CONTROL.search(clean_text(text))
    assert not CONTROL.search(show_controls(text))
    assert clean_text(clean_text(text)) == clean_text(text)


@covers("T9.5")
def test_cleaning_is_linear() -> None:
    import time

    hostile = "\x1b]" * 500_000 + "\x1b[" * 500_000
    started = time.perf_counter()
    clean_text(hostile)

    assert time.perf_counter() - started < 15


@covers("T9.3")
def test_the_session_keeps_a_mebibyte_of_a_long_output() -> None:
    text = "é" * 2_000_000

    short = trim_for_session(text)

    assert len(short.encode()) <= MAX_KEPT_CHARS
    assert short.startswith("éé")
    assert short.endswith("éé")
    assert "characters omitted" in short


@covers("T9.4")
@given(
    pieces=st.lists(
        st.text(st.sampled_from("ab\n") | st.sampled_from("\x1b[]0m;\x07\\"), max_size=5)
        | st.sampled_from(["\x1b[31m", "\x1b]0;t\x07", "x\r\n"]),
        max_size=12,
    )
)
def test_a_sequence_split_between_two_pieces_is_taken_out_all_the_same(pieces: list[str]) -> None:
    shown: list[str] = []
    stream = StreamCleaner(shown.append)
    for piece in pieces:
        stream.feed(piece)
    stream.close()

    assert not CONTROL.search("".join(shown))


@covers("T9.4")
def test_colours_split_anywhere_leave_no_trace() -> None:
    text = "one \x1b[1;31mred\x1b[0m \x1b]0;title\x07two\r\nthree \x1b(Bfour"
    for place in range(len(text)):
        shown: list[str] = []
        stream = StreamCleaner(shown.append)
        stream.feed(text[:place])
        stream.feed(text[place:])
        stream.close()

        assert "".join(shown) == "one red two\nthree four"


@covers("T9.4")
def test_a_stream_without_end_stops_being_told() -> None:
    shown: list[str] = []
    stream = StreamCleaner(shown.append)
    for _ in range(3000):
        stream.feed("y\n" * 512)

    assert sum(len(text) for text in shown) < MAX_KEPT_CHARS + 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\x01b\x1fc", "a␁b␟c"),
        ("a\x00b", "a␀b"),
        ("a\x7fb", "a␡b"),
        ("a\x85b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_controls_are_shown_as_their_pictures(text: str, shown: str) -> None:
    assert show_controls(text) == shown

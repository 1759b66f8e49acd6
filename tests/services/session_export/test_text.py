"""Texts of any size, in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.services.session_export import text as module
from ollm.services.session_export.text import MIN_GATHERED_CHARS, format_time, gather_pieces, is_plain, slice_text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", True),
        ("abc\n", True),
        ("é\n漢", True),
        ("a\tb", False),
        ("a\rb", False),
        ("\x1b[0m", False),
        ("\x7f", False),
        ("é\x9b", False),
        ("é\u202e", False),
        ("é\t", False),
    ],
)
def test_only_printable_characters_and_line_ends_are_plain(text: str, plain: bool) -> None:
    assert is_plain(text) is plain


@given(st.lists(st.text(max_size=5)))
def test_gathered_pieces_are_the_same_text(pieces: list[str]) -> None:
    assert "".join(gather_pieces(pieces)) == "".join(pieces)


def test_pieces_are_gathered_up_to_a_size() -> None:
    half = "x" * (MIN_GATHERED_CHARS // 2)

    assert list(gather_pieces([half, half, "y"])) == [half + half, "y"]
    assert list(gather_pieces([half, half[1:], "y", "z"])) == [half + half[1:] + "y", "z"]
    assert list(gather_pieces([])) == [""]


def test_a_long_text_is_cut_behind_a_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SLICE_CHARS", 10)

    assert list(slice_text("12345678\nabc")) == ["12345678\n", "abc"]
    assert list(slice_text("1234567890")) == ["1234567890"]
    assert list(slice_text("12345678901")) == ["1234567890", "1"]
    assert list(slice_text("a\nb\n" + "c" * 12)) == ["a\nb\n", "c" * 10, "cc"]
    assert list(slice_text("")) == [""]


@given(st.text("ab\n", max_size=80))
def test_slices_joined_again_are_the_text(text: str) -> None:
    before, module.MAX_SLICE_CHARS = module.MAX_SLICE_CHARS, 7
    try:
        pieces = list(slice_text(text))
    finally:
        module.MAX_SLICE_CHARS = before
    assert "".join(pieces) == text
    assert all(len(piece) <= 7 for piece in pieces)


@pytest.mark.parametrize("code", range(160))
def test_each_sign_of_the_first_ones_is_plain_or_not(code: int) -> None:
    plain = code == 10 or 32 <= code < 127
    assert is_plain(chr(code)) is plain
    assert is_plain(f"{chr(code)}é") is plain


def test_pieces_wait_until_there_are_many_characters() -> None:
    piece = "x" * 32_767

    assert list(gather_pieces([piece, "y", "z"])) == [f"{piece}y", "z"]
    assert list(gather_pieces(["a", piece, piece, "y", "z"])) == [f"a{piece}", f"{piece}y", "z"]


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-11-16T16:30:25.035Z", "2026-11-16 16:30 UTC"),
        ("2026-11-16T16:30:25Z", "2026-11-16 16:30 UTC"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_stamp_is_shown_as_people_read_it(stamp: str, shown: str) -> None:
    assert format_time(stamp) == shown

"""A key that a server repeats, wherever its stream is cut."""

from hypothesis import given
from hypothesis import strategies as st

from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, TextPiece, ThinkingPiece
from ollm.providers.exchange import KeyHider

KEY = "abab-abac"


def clean(pieces: list[AnyPiece]) -> list[AnyPiece]:
    hider = KeyHider(KEY)
    return [*(one for piece in pieces for one in hider.clean_piece(piece)), *hider.flush()]


def join(pieces: list[AnyPiece], kind: type[TextPiece | ThinkingPiece] = TextPiece) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, kind))


@given(st.lists(st.text(alphabet="abc-", max_size=6) | st.just(KEY) | st.just("abab-ab"), max_size=12))
def test_the_key_never_comes_out_and_the_rest_stays(texts: list[str]) -> None:
    cleaned = join(clean([TextPiece(text) for text in texts]))

    assert KEY not in cleaned
    assert cleaned == "".join(texts).replace(KEY, "[redacted]")


def test_thoughts_in_between_do_not_help() -> None:
    pieces: list[AnyPiece] = [TextPiece("abab"), ThinkingPiece("hm"), TextPiece("-abac"), FinishPiece()]

    cleaned = clean(pieces)

    assert (join(cleaned), join(cleaned, ThinkingPiece)) == ("[redacted]", "hm")
    assert isinstance(cleaned[-1], FinishPiece)


def test_a_call_is_cleaned_whole() -> None:
    (plain, parsed, other) = clean(
        [CallPiece("a", f"x {KEY}"), CallPiece("b", {"path": ["k", KEY]}), CallPiece("c", {"path": "p"})]
    )

    assert plain == CallPiece("a", "x [redacted]")
    assert parsed == CallPiece("b", {"path": ["k", "[redacted]"]})
    assert other == CallPiece("c", {"path": "p"})

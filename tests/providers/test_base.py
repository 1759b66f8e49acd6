"""Relayed streams: in order, closed to the last, with explained errors."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from ollm.domain.errors import ModelError, OllmError
from ollm.providers.base import AnyPiece, PieceStream, TextPiece, relay


class Streams:
    """Streams that tell when they are closed."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    async def inner(self, *, broken: bool = False) -> PieceStream:
        try:
            yield TextPiece("b")
            if broken:
                raise ModelError("It broke.")
            yield TextPiece("c")
        finally:
            self.closed.append("inner")

    async def outer(self, *, broken: bool = False) -> AsyncGenerator[AnyPiece | PieceStream, None]:
        try:
            yield TextPiece("a")
            yield self.inner(broken=broken)
            yield TextPiece("d")
        finally:
            self.closed.append("outer")


async def test_streams_within_a_stream_are_passed_on_in_order() -> None:
    pieces = [piece async for piece in relay(Streams().outer())]

    assert pieces == [TextPiece("a"), TextPiece("b"), TextPiece("c"), TextPiece("d")]


async def test_closing_it_early_closes_every_stream_in_it() -> None:
    streams = Streams()

    async with aclosing(relay(streams.outer())) as pieces:
        assert [await anext(pieces), await anext(pieces)] == [TextPiece("a"), TextPiece("b")]

    assert streams.closed == ["inner", "outer"]


async def test_an_error_can_be_explained_and_stays_as_it_is_otherwise() -> None:
    async def explain(error: OllmError) -> OllmError | None:
        return ModelError(f"{error.message} The process died.")

    async def shrug(error: OllmError) -> OllmError | None:
        return None

    for explained, text in ((explain, "It broke. The process died."), (shrug, "It broke."), (None, "It broke.")):
        with pytest.raises(ModelError, match=text.replace(".", r"\.") + "$"):
            [piece async for piece in relay(Streams().outer(broken=True), explained)]

"""Keeps the key that a server was sent out of what it streams back, wherever the stream is cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import msgspec

from ollm.domain.messages import JsonObject
from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, PieceStream, TextPiece, ThinkingPiece

HIDDEN_KEY = "[redacted]"


async def hide_key_in_pieces(pieces: PieceStream, key: str) -> PieceStream:
    """The same pieces without the key. The end of a piece that may be the beginning of the key waits for the next."""
    hider = KeyHider(key)
    async with aclosing(pieces):
        async for piece in pieces:
            for clean in hider.clean_piece(piece):
                yield clean
        for clean in hider.flush():
            yield clean


class KeyHider:
    """Takes pieces in their order and gives them back clean. Text and thoughts are looked at each for itself: what
    comes in between is no part of them."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._waiting: dict[type[TextPiece | ThinkingPiece], str] = {}

    def clean_piece(self, piece: AnyPiece) -> Iterator[AnyPiece]:
        match piece:
            case TextPiece() | ThinkingPiece():
                text = (self._waiting.pop(type(piece), "") + piece.text).replace(self._key, HIDDEN_KEY)
                kept = self._find_beginning(text)
                if kept:
                    self._waiting[type(piece)] = text[-kept:]
                    text = text[:-kept]
                if text or not kept:
                    yield type(piece)(text)
            case CallPiece():
                yield CallPiece(self.clean_text(piece.name), self._clean_arguments(piece))
            case FinishPiece():
                yield from self.flush()
                yield piece
            case _:
                yield piece

    def flush(self) -> Iterator[AnyPiece]:
        """What waited for a continuation that did not come."""
        for kind, text in self._waiting.items():
            yield kind(text)
        self._waiting.clear()

    def clean_text(self, text: str) -> str:
        return text.replace(self._key, HIDDEN_KEY)

    def _find_beginning(self, text: str) -> int:
        """How many characters at the end of a text could begin the key."""
        most = min(len(text), len(self._key) - 1)
        return next((length for length in range(most, 0, -1) if text.endswith(self._key[:length])), 0)

    def _clean_arguments(self, piece: CallPiece) -> JsonObject | str:
        if isinstance(piece.arguments, str):
            return self.clean_text(piece.arguments)
        written = msgspec.json.encode(piece.arguments).decode()
        if self._key not in written:
            return piece.arguments
        clean: JsonObject = msgspec.json.decode(self.clean_text(written))
        return clean

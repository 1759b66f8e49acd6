"""Separates the thinking at the beginning of an answer from its text."""

from __future__ import annotations

from collections.abc import Iterator

from ollm.providers.base import AnyPiece, FinishPiece, TextPiece, ThinkingPiece

MAX_HELD_CHARACTERS = 100  # More blank space than this is no beginning of a thought.
OPENING, CLOSING = "<think>", "</think>"


class ThinkingSplitter:
    """Splits an answer at its thinking tags. `opened`: the prompt ends with the opening tag."""

    def __init__(self, *, opened: bool) -> None:
        self._opened = opened
        self._inside = opened
        self._decided = opened  # Set once it is known whether the answer begins with thinking.
        self._begun = True  # It is False right after the thinking, because blank lines follow.
        self._held = ""
        self._thought = ""

    def split(self, piece: AnyPiece) -> Iterator[AnyPiece]:
        if isinstance(piece, TextPiece):
            yield from self._feed(piece.text)
            return
        if isinstance(piece, FinishPiece):
            yield from self._finish(cut=piece.reason == "length")
        yield piece

    def _feed(self, text: str) -> Iterator[AnyPiece]:
        text, self._held = self._held + text, ""
        if not self._decided:
            begin = text.lstrip()
            if OPENING.startswith(begin) and len(text) < MAX_HELD_CHARACTERS:
                self._held = text
                return
            self._decided, self._inside = True, begin.startswith(OPENING)
            text = begin[len(OPENING) :] if self._inside else text
        if self._inside:
            thought, closed, text = text.partition(CLOSING)
            if closed:
                self._inside, self._begun = False, False
            else:
                kept = next((n for n in range(len(CLOSING) - 1, 0, -1) if thought.endswith(CLOSING[:n])), 0)
                thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
            self._thought += thought
            if thought:
                yield ThinkingPiece(thought, "text")
        text = text if self._begun else text.lstrip()
        if text:
            self._begun = True
            yield TextPiece(text)

    def _finish(self, *, cut: bool) -> Iterator[AnyPiece]:
        """Release held text. A complete answer without a closing tag was not thinking after all."""
        rest, self._held = self._held, ""
        is_answer = self._inside and self._opened and not cut
        rest = self._thought + rest if is_answer else rest
        if rest:
            yield ThinkingPiece(rest, "text") if self._inside and not is_answer else TextPiece(rest)

"""Workarounds for a server whose template drops system messages or leaves thinking in the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import AnyPiece, ChatRequest, FinishPiece, Provider, TextPiece, ThinkingPiece, join_messages

MAX_HELD_CHARACTERS = 100  # More blank space than this is no beginning of a thought.
OPENING, CLOSING = "<think>", "</think>"


class AdaptedProvider:
    """A provider with the workarounds that the facts ask for."""

    def __init__(self, provider: Provider, facts: ModelFacts) -> None:
        self._provider = provider
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        pieces = self._provider.stream(self._fold_messages(request))
        if self._facts.thinking not in ("tagged", "opened"):
            return pieces
        return separate_thinking(pieces, opened=self._facts.thinking == "opened")

    async def render(self, request: ChatRequest) -> str | None:
        return await self._provider.render(self._fold_messages(request))

    async def count_prompt(self, request: ChatRequest) -> int | None:
        return await self._provider.count_prompt(self._fold_messages(request))

    def _fold_messages(self, request: ChatRequest) -> ChatRequest:
        if self._facts.system_form == "system":
            return request
        return replace(request, messages=fold_system_messages(request.messages))


def fold_system_messages(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Put each system message in front of the user message after it, or make it a user message."""
    folded: list[PromptMessage] = []
    for message in messages:
        if message.role == "user" and folded and folded[-1].role == "system":
            folded[-1] = replace(join_messages(folded[-1], message), role="user")
        else:
            folded.append(message)
    return tuple(replace(message, role="user") if message.role == "system" else message for message in folded)


async def separate_thinking(pieces: AsyncGenerator[AnyPiece, None], *, opened: bool) -> AsyncGenerator[AnyPiece, None]:
    """Turn the thinking at the beginning of an answer into thinking pieces."""
    splitter = ThinkingSplitter(opened=opened)
    async with aclosing(pieces):
        async for piece in pieces:
            for part in splitter.split(piece):
                yield part


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

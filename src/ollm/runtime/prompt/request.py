"""The parts of a request, in a front that does not move: a message is named and counted once, when it is first sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ollm.domain.messages import PromptMessage
from ollm.services.prefix_ledger import Part, PrefixLedger
from ollm.services.token_counting import TokenCounter


class RequestParts:
    """What is sent is what was sent before and what is new. `ledger` says how much of it stood."""

    def __init__(self, counter: TokenCounter) -> None:
        self.ledger = PrefixLedger()
        self._counter = counter
        self._told: tuple[PromptMessage, ...] = ()
        self._front: list[Part] = []
        self._spoken: list[Part] = []

    def set_front(
        self, system: PromptMessage, records: Iterable[PromptMessage], as_sent: Sequence[PromptMessage]
    ) -> None:
        """What stands before the messages: system prompt and checkpoints. `as_sent` is the system prompt in the model's
        own form with the worked calls behind it: the ladder writes them, the ledger counts them."""
        first, *worked = as_sent
        self._told = (system, *records)
        self._front = [
            self._part("system prompt", first),
            *(self._part("worked call", found) for found in worked),
            *(self._part("checkpoint", found) for found in self._told[1:]),
        ]

    def restart(self) -> None:
        """The messages are others from here on."""
        self._spoken = []

    def send(self, messages: Sequence[PromptMessage], cause: str | None) -> tuple[PromptMessage, ...]:
        """The next request; `messages` begin with those of the last one."""
        self._spoken += [self._part(_named(found), spoken(found)) for found in messages[len(self._spoken) :]]
        self.ledger.record([*self._front, *self._spoken], cause)
        return (*self._told, *(part.message for part in self._spoken))

    def _part(self, name: str, message: PromptMessage) -> Part:
        return Part(name=name, message=message, tokens=self._counter.message(message))


def spoken(message: PromptMessage) -> PromptMessage:
    """Only the first message is a system message: many chat templates refuse a second one."""
    return msgspec.structs.replace(message, role="user") if message.role == "system" else message


def _named(message: PromptMessage) -> str:
    return f"message {message.sources[0]}" if message.sources else "message"

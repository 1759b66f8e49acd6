"""The parts of a request behind a prefix that does not change: a message is named and counted once, when it is first
sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

import msgspec

from ollm.domain.messages import PromptMessage
from ollm.services.prefix_ledger import PrefixLedger, PrefixPart
from ollm.services.token_counting import TokenCounter

_read_message = attrgetter("message")


class RequestBuilder:
    """What is sent is what was sent before and what is new. `ledger` says how much of it was unchanged."""

    def __init__(self, counter: TokenCounter) -> None:
        self.ledger = PrefixLedger()
        self._counter = counter
        self._prefix_messages: tuple[PromptMessage, ...] = ()
        self._prefix_parts: list[PrefixPart] = []
        self._message_parts: list[PrefixPart] = []

    def set_prefix(
        self, system: PromptMessage, records: Iterable[PromptMessage], as_sent: Sequence[PromptMessage]
    ) -> None:
        """What is before the messages: system prompt and checkpoints. `as_sent` is the system prompt in the model's
        own form with the worked calls behind it: the fallback writes them, the ledger counts them."""
        first, *worked = as_sent
        self._prefix_messages = (system, *records)
        self._prefix_parts = [
            self._make_part("system prompt", first),
            *(self._make_part("worked call", found) for found in worked),
            *(self._make_part("checkpoint", found) for found in self._prefix_messages[1:]),
        ]

    def restart(self) -> None:
        """The messages are others from here on."""
        self._message_parts = []

    def build_request_messages(self, messages: Sequence[PromptMessage], cause: str | None) -> tuple[PromptMessage, ...]:
        """The next request; `messages` begin with those of the last one."""
        self._message_parts += [
            self._make_part(_label_message(found), demote_system_message(found))
            for found in messages[len(self._message_parts) :]
        ]
        self.ledger.record([*self._prefix_parts, *self._message_parts], cause)
        return (*self._prefix_messages, *map(_read_message, self._message_parts))

    def preview_messages(self, messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
        """What the next request would be, without counting it as sent."""
        return (*self._prefix_messages, *map(demote_system_message, messages))

    def _make_part(self, name: str, message: PromptMessage) -> PrefixPart:
        return PrefixPart(name=name, message=message, tokens=self._counter.count_message(message))


def demote_system_message(message: PromptMessage) -> PromptMessage:
    """Only the first message is a system message: many chat templates refuse a second one."""
    return msgspec.structs.replace(message, role="user") if message.role == "system" else message


def _label_message(message: PromptMessage) -> str:
    return f"message {message.sources[0]}" if message.sources else "message"

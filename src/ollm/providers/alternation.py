"""Messages in turn: many chat templates refuse two messages of the user in a row."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ollm.domain.messages import PromptMessage


def in_turn(messages: Iterable[PromptMessage]) -> list[PromptMessage]:
    """The same messages, neighbours of the user joined into one."""
    found: list[PromptMessage] = []
    for message in messages:
        if found and message.role == found[-1].role == "user":
            found[-1] = joined(found[-1], message)
        else:
            found.append(message)
    return found


def joined(first: PromptMessage, second: PromptMessage) -> PromptMessage:
    return msgspec.structs.replace(
        first,
        content=f"{first.content}\n\n{second.content}",
        images=(*first.images, *second.images),
        sources=(*first.sources, *second.sources),
    )

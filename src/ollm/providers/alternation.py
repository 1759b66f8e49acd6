"""Messages in turn: many chat templates refuse two messages of the user in a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

import msgspec

from ollm.domain.messages import PromptMessage

_read_role = attrgetter("role")


def merge_user_messages(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """The same messages, neighbours of the user joined into one."""
    if ("user", "user") not in pairwise(map(_read_role, messages)):
        return list(messages)
    found: list[PromptMessage] = []
    for message in messages:
        if found and message.role == found[-1].role == "user":
            found[-1] = join_messages(found[-1], message)
        else:
            found.append(message)
    return found


def join_messages(first: PromptMessage, second: PromptMessage) -> PromptMessage:
    return msgspec.structs.replace(
        first,
        content=f"{first.content}\n\n{second.content}",
        images=(*first.images, *second.images),
        sources=(*first.sources, *second.sources),
    )

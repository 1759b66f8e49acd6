"""Where a context may be cut: between groups. A call and its results are one group and never parted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ollm.domain.messages import PromptMessage

Group = tuple[PromptMessage, ...]
Cost = Callable[[PromptMessage], int]


def group_messages(messages: Sequence[PromptMessage]) -> list[Group]:
    """An assistant message with calls and the results that follow it, or a message alone."""
    groups: list[Group] = []
    for message in messages:
        if message.role == "tool" and groups and _answers_group(message, groups[-1]):
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
    return groups


def _answers_group(message: PromptMessage, group: Group) -> bool:
    head = group[0]
    if not head.calls:
        return False
    return message.call_id is None or any(call.id == message.call_id for call in head.calls)


def find_recent_start(groups: Sequence[Group], cost: Cost, preserve: int) -> int:
    """Index of the first group of the recent window.

    Every message that lies whole within the newest `preserve` tokens is in it, with its group; so is the last group.
    """
    left = preserve
    for place in range(len(groups) - 1, -1, -1):
        for message in reversed(groups[place]):
            left -= cost(message)
            if left < 0:
                inside = message is not groups[place][-1]
                return place if inside or place == len(groups) - 1 else place + 1
    return 0


def is_user_group(group: Group) -> bool:
    return group[0].role == "user"


def list_numbers(messages: Sequence[PromptMessage]) -> tuple[int, ...]:
    """The recorded messages these stand for."""
    return tuple(sorted({number for message in messages for number in message.sources}))

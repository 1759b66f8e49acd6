"""User messages are never compressed; old ones that fill the window stand shortened, the very oldest as one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ollm.domain.context import Checkpoint, format_number_ranges
from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression.folding import cut_text, format_recall_call

SHORT_TOKENS = 48
USER_LINE_ID = "user-messages"
ASIDE = "\n\n<now>\n"
_ASIDE = r"(?s)\n\n<now>\n.*\n</now>\Z"

MessageCost = Callable[[PromptMessage], int]
TextCost = Callable[[str], int]


def add_aside(text: str, aside: str) -> str:
    """A user message with what is true at this moment only; `without_aside` takes it off when the message is old."""
    return f"{text}{ASIDE}{aside}\n</now>" if aside else text


def remove_aside(message: PromptMessage) -> PromptMessage:
    if message.role != "user" or ASIDE not in message.content:
        return message
    return msgspec.structs.replace(message, content=re.sub(_ASIDE, "", message.content))


def shorten_message(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """Head, tail and the way to the rest."""
    way = format_recall_call(message.sources[0] if message.sources else None)
    return msgspec.structs.replace(message, content=cut_text(message.content, tokens, cost, way))


class FoldedUserMessages(msgspec.Struct, frozen=True):
    """Old user messages as they now stand, by place; `gone` stand in the one line instead."""

    messages: dict[int, PromptMessage]
    gone: tuple[int, ...] = ()


def fold_user_messages(
    messages: Sequence[tuple[int, PromptMessage]], cap: int, costs: tuple[MessageCost, TextCost]
) -> FoldedUserMessages:
    """`messages` are the old user messages with their places. Over the cap they shrink to half of it, oldest first:
    enough for the next ones to come without doing this again at once."""
    cost, text_cost = costs
    standing = dict(messages)
    used = sum(map(cost, standing.values()))
    if used <= cap:
        return FoldedUserMessages(standing)
    for place, message in messages:
        if used <= cap // 2:
            return FoldedUserMessages(standing)
        standing[place] = msgspec.structs.replace(shorten_message(message, SHORT_TOKENS, text_cost), images=())
        used += cost(standing[place]) - cost(message)
    gone: list[int] = []
    for place, _ in messages:
        if used <= cap // 2:
            break
        used -= cost(standing.pop(place))
        gone.append(place)
    return FoldedUserMessages(standing, tuple(gone))


def make_user_line(
    earlier: Checkpoint | None, gone: Sequence[PromptMessage], moment: str, cost: TextCost
) -> Checkpoint:
    """The one line with the numbers of the very oldest user messages."""
    ids = {number for message in gone for number in message.sources} | set(earlier.message_ids if earlier else ())
    text = f"User messages {format_number_ranges(ids)} are kept in the archive in full."
    line = Checkpoint(
        id=USER_LINE_ID,
        text=text,
        message_ids=tuple(sorted(ids)),
        timestamp=moment,
        tokens=0,
        age="compact",
        engine_written=True,
    )
    return msgspec.structs.replace(line, tokens=cost(line.message.content))

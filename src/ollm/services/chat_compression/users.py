"""User messages: what rides with the newest one for a moment, and how a very long one stands."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression.folding import cut_text, format_recall_call

USER_LINE_ID = "user-messages"  # the record of an older version that cites the oldest of them
ASIDE = "\n\n<now>\n"
_ASIDE = r"(?s)\n\n<now>\n.*\n</now>\Z"

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

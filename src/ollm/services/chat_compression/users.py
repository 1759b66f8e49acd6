"""User messages: what rides with the newest one for a moment, and how a very long one is shortened."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression.folding import cut_text, format_recall_call

USER_LINE_ID = "user-messages"  # the record of an older version that cites the oldest of them
ASIDE = "\n\n<now>\n"
_ASIDE = r"(?s)\n\n<now>\n.*\n</now>\Z"
PRIMED = "\n\nFiles here: "
_PRIMED = r"(?s)\n\nFiles here: .*\Z"

TextCost = Callable[[str], int]


def add_aside(text: str, aside: str) -> str:
    """A user message with what is true at this moment only; `without_aside` takes it off when the message is old."""
    return f"{text}{ASIDE}{aside}\n</now>" if aside else text


def add_primed(text: str, primed: str) -> str:
    """A user message with the names and texts of files that go with it; they are dropped when it is old."""
    return f"{text}\n\n{primed}" if primed else text


def remove_aside(message: PromptMessage) -> PromptMessage:
    if message.role != "user" or not (ASIDE in message.content or PRIMED in message.content):
        return message
    content = re.sub(_PRIMED, "", re.sub(_ASIDE, "", message.content))
    return msgspec.structs.replace(message, content=content)


def shorten_message(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """Head, tail and the way to the rest."""
    way = format_recall_call(message.sources[0] if message.sources else None)
    return msgspec.structs.replace(message, content=cut_text(message.content, tokens, cost, way))

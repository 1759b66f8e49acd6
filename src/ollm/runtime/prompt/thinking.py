"""Thinking that goes back to its model: which of it is sent, and what gives way when room is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.messages import PromptMessage

if TYPE_CHECKING:
    from ollm.domain.context import PromptModel
    from ollm.services.token_counting import TokenCounter

INTERRUPTED = "[interrupted here]"


def adapt_message(message: PromptMessage, model: PromptModel) -> PromptMessage:
    """Remove from an answer what only another model or server understands: thinking and the ids of calls."""
    if model.origin and message.origin != model.origin:
        calls = tuple(replace(call, wire_id="") for call in message.calls)
        return (replace(message, calls=calls) if calls != message.calls else message).without_thinking()
    return message.without_thinking() if model.replay == "off" else message


def drop_answered_thinking(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Remove the thinking up to the last final answer. An interrupted turn keeps its own: its work goes on."""
    ends = (place for place in range(len(messages), 0, -1) if _is_final_answer(messages[place - 1]))
    end = next(ends, 0)
    return [*(message.without_thinking() for message in messages[:end]), *messages[end:]]


def _is_final_answer(message: PromptMessage) -> bool:
    return message.role == "assistant" and not message.calls and not message.content.endswith(INTERRUPTED)


def shed_thinking(messages: Sequence[PromptMessage], excess: int, counter: TokenCounter) -> tuple[PromptMessage, ...]:
    """Remove the thinking of earlier turns, then the oldest of this one until `excess` tokens are free. The prompt
    changes near its beginning anyway, so the earlier turns give up all."""
    kept = list(messages)
    asked = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    for place, message in enumerate(messages):
        if place > asked and excess <= 0:
            break
        kept[place] = message.without_thinking()
        excess -= counter.count_message(message) - counter.count_message(kept[place])
    return tuple(kept)

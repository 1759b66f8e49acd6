"""Thinking that goes back to its model: which of it is sent, and what gives way when room is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.messages import PromptMessage

if TYPE_CHECKING:
    from ollm.domain.context import PromptModel
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.services.token_counting import TokenCounter

INTERRUPTED = "[interrupted here]"


def adapt_message(message: PromptMessage, model: PromptModel) -> PromptMessage:
    """Remove what only another model or server understands: its thinking and the ids it gave to calls."""
    if message.role != "assistant":
        return message
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


def shed_thinking(prompt: Prompt, counter: TokenCounter, most: int) -> bool:
    """Remove the oldest thinking until the messages take at most `most` tokens. Return True if any was removed."""
    context, excess = prompt.get_active_context(), prompt.message_tokens - most
    messages = list(context.messages)
    for place, message in enumerate(messages):
        if excess <= 0:
            break
        messages[place] = message.without_thinking()
        excess -= counter.count_message(message) - counter.count_message(messages[place])
    if tuple(messages) == context.messages:
        return False
    prompt.replace_context(replace(context, messages=tuple(messages)), "thinking")
    return True

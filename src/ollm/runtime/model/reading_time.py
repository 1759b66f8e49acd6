"""How long a model will read before it answers, by the speed measured before: for servers that report no progress."""

from __future__ import annotations

from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.sequences import count_same_objects
from ollm.providers.base import ChatRequest, ProgressPiece
from ollm.runtime.model.request_format import format_request
from ollm.services.token_counting import TokenCounter

MIN_REPORTED_SECONDS = 2.0  # seconds


class ReadingTime:
    """Remembers what was sent last: that much the server has read already."""

    def __init__(self) -> None:
        self._sent: tuple[PromptMessage, ...] = ()

    def estimate(self, request: ChatRequest, facts: ModelFacts) -> ProgressPiece | None:
        """What is to be read and the seconds it takes; None where that is short or the speed is not known."""
        messages, tools = format_request(request.messages, request.tools, facts)
        fresh = self._find_unread(messages)
        self._sent = messages
        if not facts.prefill_per_second:
            return None
        counter = TokenCounter(facts.token_factor, facts.token_samples)
        tokens = counter.count_messages(fresh)
        if len(fresh) == len(messages):
            tokens += counter.count_schemas(tools)
        seconds = round(tokens / facts.prefill_per_second, 1)
        return ProgressPiece(total=tokens, seconds_left=seconds) if seconds >= MIN_REPORTED_SECONDS else None

    def _find_unread(self, messages: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
        """The messages from the first that differs on."""
        same = count_same_objects(messages, self._sent)
        pairs = enumerate(zip(messages[same:], self._sent[same:], strict=False), same)
        return messages[next((at for at, (one, other) in pairs if one != other), min(len(messages), len(self._sent))) :]

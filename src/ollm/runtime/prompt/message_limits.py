"""What one message may take of the window: it is cut to that as it is added, and the whole stands in the archive."""

from __future__ import annotations

import msgspec

from ollm.domain.context import Budget
from ollm.domain.messages import PromptMessage
from ollm.services import budget as rules
from ollm.services.chat_compression.folding import cut, folded_calls, is_line, recall_call
from ollm.services.chat_compression.users import shortened
from ollm.services.token_counting import TokenCounter

LEAST_RESULT = 60  # tokens a result always gets


class Fitting:
    """Cuts the messages of one context. The results of a step share what is left for it."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._step_left = 0

    def begin_step(self, budget: Budget) -> None:
        self._step_left = rules.step_cap(budget)

    def result(self, entry: PromptMessage, budget: Budget, waiting: int) -> PromptMessage:
        """A tool's result; `waiting` of them, with this one, are still to share what is left."""
        cap = max(LEAST_RESULT, min(rules.result_cap(budget), self._step_left // waiting))
        short = self._cut(entry, cap)
        self._step_left = max(0, self._step_left - self._counter.text(short.content))
        return short

    def user(self, entry: PromptMessage, budget: Budget) -> PromptMessage:
        """A user's message: as it is unless it takes more than half of what there is."""
        if self._counter.text(entry.content) <= rules.user_cap(budget):
            return entry
        return shortened(entry, max(LEAST_RESULT, budget.available // 4), self._counter.text)

    def shrunk(self, entry: PromptMessage, over: int, least: int) -> PromptMessage:
        """Smaller by `over` tokens, as far as that goes; `least` always stay."""
        if is_line(entry):
            return entry
        short = self._cut(entry, max(least, self._counter.text(entry.content) - over - least))
        return folded_calls(short, least, self._counter.text)

    def _cut(self, entry: PromptMessage, cap: int) -> PromptMessage:
        way = recall_call(entry.sources[0] if entry.sources else None, entry.call_id)
        return msgspec.structs.replace(entry, content=cut(entry.content, cap, self._counter.text, way))

"""What one message may take of the window: it is cut to that as it is added, and the whole stands in the archive."""

from __future__ import annotations

import msgspec

from ollm.domain.context import Budget
from ollm.domain.messages import PromptMessage
from ollm.services import budget as rules
from ollm.services.chat_compression.folding import cut_text, fold_calls, format_recall_call, is_folded_line
from ollm.services.chat_compression.users import shorten_message
from ollm.services.token_counting import TokenCounter

MIN_RESULT_TOKENS = 60  # tokens a result always gets


class MessageLimiter:
    """Cuts the messages of one context. The results of a step share what is left for it."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._step_left = 0

    def begin_step(self, budget: Budget) -> None:
        self._step_left = rules.compute_step_cap(budget)

    def limit_result(self, entry: PromptMessage, budget: Budget, waiting: int) -> PromptMessage:
        """A tool's result; `waiting` of them, with this one, are still to share what is left."""
        cap = max(MIN_RESULT_TOKENS, min(rules.compute_result_cap(budget), self._step_left // waiting))
        short = self._cut_message(entry, cap)
        self._step_left = max(0, self._step_left - self._counter.count_text(short.content))
        return short

    def limit_user_message(self, entry: PromptMessage, budget: Budget) -> PromptMessage:
        """A user's message: as it is unless it takes more than half of what there is."""
        if self._counter.count_text(entry.content) <= rules.compute_user_cap(budget):
            return entry
        return shorten_message(entry, max(MIN_RESULT_TOKENS, budget.available // 4), self._counter.count_text)

    def shrink_message(self, entry: PromptMessage, over: int, least: int) -> PromptMessage:
        """Smaller by `over` tokens, as far as that goes; `least` always stay."""
        if is_folded_line(entry):
            return entry
        short = self._cut_message(entry, max(least, self._counter.count_text(entry.content) - over - least))
        return fold_calls(short, least, self._counter.count_text)

    def _cut_message(self, entry: PromptMessage, cap: int) -> PromptMessage:
        way = format_recall_call(entry.sources[0] if entry.sources else None, entry.call_id)
        return msgspec.structs.replace(entry, content=cut_text(entry.content, cap, self._counter.count_text, way))

"""What one message may take of the window: it is cut to that as it is added, and the whole is in the archive."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ollm.domain.context import Budget
from ollm.domain.messages import PromptMessage
from ollm.services import budget as rules
from ollm.services.chat_compression.folding import cut_text, fold_calls, format_recall_call, is_folded_line
from ollm.services.chat_compression.users import shorten_message
from ollm.services.token_counting import TokenCounter

MIN_RESULT_TOKENS = 60  # tokens a result always gets
MESSAGE_TOKENS = 6  # that a message takes beside its text


class MessageLimiter:
    """Cuts the messages of one context. The results of a step share what is left for it."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._step_left = 0

    def begin_step(self, budget: Budget, messages: int) -> None:
        self._step_left = rules.compute_step_cap(budget, messages)

    def limit_result(self, entry: PromptMessage, budget: Budget, waiting: int, messages: int) -> PromptMessage:
        """A tool's result; `waiting` of them, with this one, are still to share what is left; `messages`
        tokens come before it."""
        cap = max(MIN_RESULT_TOKENS, min(rules.compute_result_cap(budget, messages), self._step_left // waiting))
        short = self._cut_message(entry, cap)
        self._step_left -= self._counter.count_text(short.content)
        return short

    def limit_user_message(self, entry: PromptMessage, budget: Budget) -> PromptMessage:
        """A user's message: as it is unless it takes more than half of what there is."""
        cap = rules.compute_user_cap(budget)
        if self._counter.count_text(entry.content) <= cap:
            return entry
        return shorten_message(entry, max(MIN_RESULT_TOKENS, cap // 2), self._counter.count_text)

    def _cut_message(self, entry: PromptMessage, cap: int) -> PromptMessage:
        return cut_message(entry, cap, self._counter)


def cut_message(entry: PromptMessage, cap: int, counter: TokenCounter) -> PromptMessage:
    """A message within so many tokens, with the way to the rest."""
    way = format_recall_call(entry.sources[0] if entry.sources else None, entry.call_id)
    return msgspec.structs.replace(entry, content=cut_text(entry.content, cap, counter.count_text, way))


def shrink_last_step(
    messages: Sequence[PromptMessage], over: int, hardness: int, counter: TokenCounter
) -> tuple[PromptMessage, ...]:
    """The last step smaller by `over` tokens: first its results share what is left, then they keep a line each, at last
    only the first and last of its calls stay. The user's words before it are never touched."""
    start = _find_last_step(messages)
    before, step = messages[:start], list(messages[start:])
    if not step:
        return tuple(before)
    available = sum(map(counter.count_message, step)) - over
    if hardness < 2:
        least = MIN_RESULT_TOKENS if hardness == 0 else MIN_RESULT_TOKENS // 4
        cap = max(least, _find_share([counter.count_text(entry.content) for entry in step], available))
        return (*before, *(_shrink_message(entry, cap, least, counter) for entry in step))
    return (*before, *_fold_pairs(step, available, counter))


def _find_last_step(messages: Sequence[PromptMessage]) -> int:
    """Where the last answer and its results begin; a user's message is no part of it."""
    place = len(messages)
    while place > 0 and messages[place - 1].role == "tool":
        place -= 1
    return place - 1 if place > 0 and messages[place - 1].role != "user" else place


def _find_share(sizes: Sequence[int], available: int) -> int:
    """The most each may take so that all together fit: short ones leave their part to the others."""
    waiting = len(sizes)
    left = available - waiting * MESSAGE_TOKENS
    for size in sorted(sizes):
        if size > left // waiting:
            return left // waiting
        left, waiting = left - size, waiting - 1
    return max(sizes)


def _shrink_message(entry: PromptMessage, cap: int, least: int, counter: TokenCounter) -> PromptMessage:
    return entry if is_folded_line(entry) else fold_calls(cut_message(entry, cap, counter), least, counter.count_text)


def _fold_pairs(step: Sequence[PromptMessage], available: int, counter: TokenCounter) -> list[PromptMessage]:
    """The first and the last calls with their results, and a line for the others between them."""
    if len(step[0].calls) < 3:
        return list(step)
    head, results = step[0], {entry.call_id: entry for entry in step[1:]}
    for kept in range(len(head.calls) - 1, 0, -max(1, len(head.calls) // 20)):
        folded = _keep_pairs(head, results, kept)
        if counter.count_messages(folded) <= available:
            return folded
    return _keep_pairs(head, results, 1)


def _keep_pairs(head: PromptMessage, results: dict[str | None, PromptMessage], kept: int) -> list[PromptMessage]:
    first, last = (kept + 1) // 2, kept // 2
    gone = head.calls[first : len(head.calls) - last]
    calls = (*head.calls[:first], *head.calls[len(head.calls) - last :])
    line = (
        f"[{len(gone)} more calls, {gone[0].id} to {gone[-1].id}, were made and are left out with their results; "
        f"{format_recall_call(None, gone[0].id)} reads one]"
    )
    content = "\n".join(filter(None, (head.content, line)))
    shown = msgspec.structs.replace(head, content=content, calls=calls)
    return [shown, *(results[call.id] for call in calls if call.id in results)]

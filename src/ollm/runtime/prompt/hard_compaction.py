"""The last resort of a compaction: a prompt over its limit is shortened without a model, whatever is lost from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.context import ActiveContext, ContextView
from ollm.domain.messages import PromptMessage
from ollm.runtime.prompt.messages import MIN_RESULT_TOKENS, cut_message, limit_user_message
from ollm.services.chat_compression.folding import fold_calls, format_recall_call, is_folded_line, remove_aside
from ollm.services.chat_compression.records import RecordCaps, age_checkpoints, count_tokens
from ollm.services.goals import GOALS_CHECKPOINT_ID, make_goals_checkpoint
from ollm.services.token_counting import TokenCounter

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

MAX_SHRINK_TRIES = 3
MESSAGE_TOKENS = 6  # A message takes these tokens beside its text.
STEP_HARDNESSES = 3  # Each further try shrinks the last step harder.


def shrink_to_limit(prompt: Prompt, counter: TokenCounter) -> bool:
    """Shrink the prompt to its limit as far as possible. Return True if anything changed."""
    standing = prompt.revision
    if prompt.used_tokens > prompt.compute_budget().limit:
        _put(prompt, settle_goals(prompt.view_context(), counter))
        _put(prompt, _shorten_requests(prompt.view_context(), counter))
    for hardness in range(STEP_HARDNESSES):
        _shrink_step(prompt, hardness, counter)
    if (over := _count_excess(prompt)) > 0:
        _put(prompt, shorten_records(prompt.get_active_context(), over, counter))
    return prompt.revision != standing


def _shrink_step(prompt: Prompt, hardness: int, counter: TokenCounter) -> None:
    """Shrink the last step. Repeats with a larger target if the estimate missed the server's count by a few tokens."""
    context, wanted = prompt.get_active_context(), 0
    for _ in range(MAX_SHRINK_TRIES):
        if (over := _count_excess(prompt)) <= 0:
            return
        wanted += over
        messages = shrink_last_step(context.messages, wanted, hardness, counter)
        _put(prompt, msgspec.structs.replace(context, messages=messages))


def shrink_last_step(
    messages: Sequence[PromptMessage], over: int, hardness: int, counter: TokenCounter
) -> tuple[PromptMessage, ...]:
    """Shrink the last step by `over` tokens: first its results share the available tokens, then each keeps a line, and
    finally only its first and last calls stay. The user's message before it is never changed."""
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
    """Return the index where the last answer and its results begin. A user message is not part of it."""
    place = len(messages)
    while place > 0 and messages[place - 1].role == "tool":
        place -= 1
    return place - 1 if place > 0 and messages[place - 1].role != "user" else place


def _find_share(sizes: Sequence[int], available: int) -> int:
    """Compute the largest size per message so that all fit. Short messages leave their share to the others."""
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
    """Keep the first and the last calls with their results, and replace the others with one line."""
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
    shown = msgspec.structs.replace(head, content=content, calls=calls, written="")
    return [shown, *(results[call.id] for call in calls if call.id in results)]


def _count_excess(prompt: Prompt) -> int:
    return prompt.used_tokens - prompt.compute_budget().limit


def _put(prompt: Prompt, context: ActiveContext) -> None:
    """Replace the context unless it is unchanged."""
    if context != prompt.get_active_context():
        prompt.replace_context(msgspec.structs.replace(context, folded=True), "compression")


def settle_goals(view: ContextView, counter: TokenCounter) -> ActiveContext:
    """Move the goals to a separate record, away from messages that were answered."""
    kept = [old for old in view.context.checkpoints if old.id != GOALS_CHECKPOINT_ID]
    working = view.request_messages
    messages = tuple(entry if entry in working else remove_aside(entry) for entry in view.context.messages)
    return msgspec.structs.replace(
        view.context, messages=messages, checkpoints=(*kept, *make_goals_checkpoint(view.context.goals, counter))
    )


def _shorten_requests(view: ContextView, counter: TokenCounter) -> ActiveContext:
    """Shorten the user's messages that take more than half of a reduced window."""
    messages = tuple(
        limit_user_message(entry, view.budget, counter) if entry.role == "user" else entry
        for entry in view.context.messages
    )
    return msgspec.structs.replace(view.context, messages=messages)


def shorten_records(context: ActiveContext, over: int, counter: TokenCounter) -> ActiveContext:
    """Shorten the records by `over` tokens, whatever is lost: the current message needs the space."""
    allowed = max(0, count_tokens(context.checkpoints) - over)
    words = allowed * 3 // 4
    records = age_checkpoints(context.checkpoints, RecordCaps(words, words, allowed - words), counter)
    return msgspec.structs.replace(context, checkpoints=records)

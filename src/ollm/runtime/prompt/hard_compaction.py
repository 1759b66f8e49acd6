"""The last resort of a compaction: a prompt over its limit is shortened without a model, whatever is lost from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.domain.context import ActiveContext, ContextView
from ollm.runtime.prompt.messages import MessageLimiter, shrink_last_step
from ollm.services.chat_compression.folding import remove_aside
from ollm.services.chat_compression.records import RecordCaps, age_checkpoints, count_tokens
from ollm.services.goals import GOALS_CHECKPOINT_ID, make_goals_checkpoint
from ollm.services.token_counting import TokenCounter

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

MAX_SHRINK_TRIES = 3
STEP_HARDNESSES = 3  # ways to make the last step smaller, one harder than the other


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
    limiter = MessageLimiter(counter)
    messages = tuple(
        limiter.limit_user_message(entry, view.budget) if entry.role == "user" else entry
        for entry in view.context.messages
    )
    return msgspec.structs.replace(view.context, messages=messages)


def shorten_records(context: ActiveContext, over: int, counter: TokenCounter) -> ActiveContext:
    """Shorten the records by `over` tokens, whatever is lost: the current message needs the space."""
    allowed = max(0, count_tokens(context.checkpoints) - over)
    words = allowed * 3 // 4
    records = age_checkpoints(context.checkpoints, RecordCaps(words, words, allowed - words), counter)
    return msgspec.structs.replace(context, checkpoints=records)

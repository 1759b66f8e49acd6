"""What is done where a compression left a prompt over its limit: no model is asked, and nothing but the words of the
message being worked on is spared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.domain.context import ActiveContext, ContextView
from ollm.runtime.prompt.message_limits import MessageLimiter, shrink_last_step
from ollm.services.chat_compression.users import remove_aside
from ollm.services.checkpoints import CheckpointManager, count_tokens
from ollm.services.goals import GOALS_CHECKPOINT_ID, make_goals_checkpoint
from ollm.services.token_counting import TokenCounter

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

STEP_HARDNESSES = 3  # ways to make the last step smaller, one harder than the other


def shrink_to_limit(prompt: Prompt, counter: TokenCounter) -> bool:
    """Makes the prompt smaller until it is within its limit, as far as that goes; whether anything was changed."""
    standing = prompt.revision
    if prompt.used_tokens > prompt.compute_budget().limit:
        _put(prompt, settle_goals(prompt.view_context(), counter))
        _put(prompt, _shorten_requests(prompt.view_context(), counter))
    for hardness in range(STEP_HARDNESSES + 1):
        over = prompt.used_tokens - prompt.compute_budget().limit
        if over > 0:
            context = prompt.get_active_context()
            if hardness < STEP_HARDNESSES:
                messages = shrink_last_step(context.messages, over, hardness, counter)
                _put(prompt, msgspec.structs.replace(context, messages=messages))
            else:
                _put(prompt, shorten_records(context, over, counter))
    return prompt.revision != standing


def _put(prompt: Prompt, context: ActiveContext) -> None:
    """Nothing that is the same counts as changed."""
    if context != prompt.get_active_context():
        prompt.replace_context(msgspec.structs.replace(context, folded=True), "compression")


def settle_goals(view: ContextView, counter: TokenCounter) -> ActiveContext:
    """The goals as a record of their own, no longer beside messages that were answered."""
    kept = [old for old in view.context.checkpoints if old.id != GOALS_CHECKPOINT_ID]
    working = view.request_messages
    messages = tuple(entry if entry in working else remove_aside(entry) for entry in view.context.messages)
    return msgspec.structs.replace(
        view.context, messages=messages, checkpoints=(*kept, *make_goals_checkpoint(view.context.goals, counter))
    )


def _shorten_requests(view: ContextView, counter: TokenCounter) -> ActiveContext:
    """The user's messages, where the window has become so small that one takes more than half of it."""
    limiter = MessageLimiter(counter)
    messages = tuple(
        limiter.limit_user_message(entry, view.budget) if entry.role == "user" else entry
        for entry in view.context.messages
    )
    return msgspec.structs.replace(view.context, messages=messages)


def shorten_records(context: ActiveContext, over: int, counter: TokenCounter) -> ActiveContext:
    """The records smaller by `over` tokens, whatever they lose: the message being worked on needs the room."""
    allowed = max(0, count_tokens(context.checkpoints) - over)
    aged = CheckpointManager(counter).age(context.checkpoints, allowed, allowed // 2)
    return msgspec.structs.replace(context, checkpoints=aged.checkpoints)

"""The arithmetic of a context window (H: compression triggers). Pure: tokens in, tokens out."""

from __future__ import annotations

import math

from ollm.domain.context import Budget

DEFAULT_THRESHOLD_SHARE = 0.80
OVERFLOW_SHARE = 0.95
MIN_ROOM_TURNS = 6  # a compression should make room for this many turns of a twentieth of the window each


def compute_budget(window: int, fixed: int, checkpoints: int = 0, threshold: float = DEFAULT_THRESHOLD_SHARE) -> Budget:
    """`fixed` is the system prompt with its context entries, the tool schemas and worked calls."""
    limit = compute_limit(window)
    available = max(0, limit - fixed - checkpoints)
    return Budget(
        window=window,
        limit=limit,
        fixed=fixed,
        checkpoints=checkpoints,
        available=available,
        trigger=compute_trigger(available, threshold),
    )


def compute_limit(window: int) -> int:
    """What a prompt may take: 85 % of the window, so that an answer has room."""
    return window * 85 // 100


def compute_trigger(available: int, threshold: float) -> int:
    """More message tokens than this start a compression. The tiny sum undoes the error of a binary fraction."""
    return math.floor(threshold * available + 1e-9)


def needs_compression(state: Budget, messages: int) -> bool:
    return messages > state.trigger


def compute_usage_share(state: Budget, messages: int) -> float:
    """Used part of the limit; above 1 the prompt is over it."""
    return (state.fixed + state.checkpoints + messages) / state.limit if state.limit else math.inf


def compute_recent_tokens(state: Budget, wanted: int) -> int:
    """The newest tokens no compression touches: what the settings say, at most a quarter of what is available."""
    return min(wanted, state.available // 4)


def compute_target_tokens(state: Budget) -> int:
    """What messages are compressed down to: half of *available*, or less where that leaves too little room."""
    room = MIN_ROOM_TURNS * state.window // 20
    return max(state.available // 4, min(state.available // 2, state.trigger - room))


def compute_result_cap(state: Budget) -> int:
    """One tool result."""
    return state.available // 4


def compute_step_cap(state: Budget) -> int:
    """All results of one step."""
    return state.available // 2


def compute_user_cap(state: Budget) -> int:
    """One user message, and all old ones together, before they stand as head, tail and id."""
    return state.available // 2


def compute_pressed_user_cap(state: Budget, recent: int) -> int:
    """The same for old ones where compressions follow each other too soon: what leaves room for a few turns."""
    left = state.trigger - recent - MIN_ROOM_TURNS * state.window // 20
    return max(state.available // 8, min(compute_user_cap(state), left))


def compute_checkpoints_cap(state: Budget, *, pressed: bool = False) -> int:
    """Checkpoints are merged when they would take more: a third, or half of that under pressure."""
    return state.limit // (6 if pressed else 3)


def compute_entries_cap(window: int) -> int:
    """Context entries beyond this are left out, lowest priority first."""
    return compute_limit(window) // 4


def compute_answer_tokens(state: Budget, prompt: int) -> int:
    """Tokens an answer may take."""
    return max(0, state.window - prompt)

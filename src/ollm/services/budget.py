"""The arithmetic of a context window (H: compression triggers). Pure: tokens in, tokens out."""

from __future__ import annotations

import math

from ollm.domain.context import Budget

USUAL_THRESHOLD = 0.80
OVERFLOW_SHARE = 0.95
TURNS_OF_ROOM = 6  # a compression should make room for this many turns of a twentieth of the window each


def budget(window: int, fixed: int, checkpoints: int = 0, threshold: float = USUAL_THRESHOLD) -> Budget:
    """`fixed` is the system prompt with its context entries, the tool schemas and worked calls."""
    limit = limit_of(window)
    available = max(0, limit - fixed - checkpoints)
    return Budget(
        window=window,
        limit=limit,
        fixed=fixed,
        checkpoints=checkpoints,
        available=available,
        trigger=trigger_of(available, threshold),
    )


def limit_of(window: int) -> int:
    """What a prompt may take: 85 % of the window, so that an answer has room."""
    return window * 85 // 100


def trigger_of(available: int, threshold: float) -> int:
    """More message tokens than this start a compression. The tiny sum undoes the error of a binary fraction."""
    return math.floor(threshold * available + 1e-9)


def needs_compression(state: Budget, messages: int) -> bool:
    return messages > state.trigger


def usage_share(state: Budget, messages: int) -> float:
    """Used part of the limit; above 1 the prompt is over it."""
    return (state.fixed + state.checkpoints + messages) / state.limit if state.limit else math.inf


def recent_tokens(state: Budget, wanted: int) -> int:
    """The newest tokens no compression touches: what the settings say, at most a quarter of what is available."""
    return min(wanted, state.available // 4)


def target_tokens(state: Budget) -> int:
    """What messages are compressed down to: half of *available*, or less where that leaves too little room."""
    room = TURNS_OF_ROOM * state.window // 20
    return max(state.available // 4, min(state.available // 2, state.trigger - room))


def result_cap(state: Budget) -> int:
    """One tool result."""
    return state.available // 4


def step_cap(state: Budget) -> int:
    """All results of one step."""
    return state.available // 2


def user_cap(state: Budget) -> int:
    """One user message, and all old ones together, before they stand as head, tail and id."""
    return state.available // 2


def pressed_user_cap(state: Budget, recent: int) -> int:
    """The same for old ones where compressions follow each other too soon: what leaves room for a few turns."""
    left = state.trigger - recent - TURNS_OF_ROOM * state.window // 20
    return max(state.available // 8, min(user_cap(state), left))


def checkpoints_cap(state: Budget, *, pressed: bool = False) -> int:
    """Checkpoints are merged when they would take more: a third, or half of that under pressure."""
    return state.limit // (6 if pressed else 3)


def entries_cap(window: int) -> int:
    """Context entries beyond this are left out, lowest priority first."""
    return limit_of(window) // 4


def answer_room(state: Budget, prompt: int) -> int:
    """Tokens an answer may take."""
    return max(0, state.window - prompt)

"""The arithmetic of a context window (H: compression triggers). Pure: tokens in, tokens out."""

from __future__ import annotations

import math
from functools import lru_cache

from ollm.domain.context import Budget

DEFAULT_THRESHOLD_SHARE = 0.80
MIN_ANSWER_TOKENS = 64
SMALL_RESULT_TOKENS = 256  # that a result may take in a small window, however near a compression is
MIN_SUMMARY_SECONDS = 8.0
SUMMARY_SECONDS_RATIO = 4.0  # of what a summary should take, before it is given up


@lru_cache(maxsize=4)
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
    """Compute the limit of a prompt: 85 % of the window, so that an answer has room."""
    return window * 85 // 100


def compute_trigger(available: int, threshold: float) -> int:
    """More message tokens than this start a compression. The tiny sum undoes the error of a binary fraction."""
    return math.floor(threshold * available + 1e-9)


def needs_compression(state: Budget, messages: int) -> bool:
    return messages > state.trigger


def compute_working_trigger(state: Budget) -> int:
    """The same while results of a turn are being read: three quarters of what the threshold leaves may be used first.
    Compression then waits for the next message, when nothing that was just read has to stay."""
    return (state.trigger + 3 * state.available) // 4


def compute_recent_tokens(state: Budget, wanted: int) -> int:
    """The newest tokens no compression touches: what the settings say, at most a 16th of what is available. The fewer
    stay, the rarer a compression breaks what the server has read."""
    return min(wanted, state.available // 16)


def compute_target_tokens(state: Budget) -> int:
    """Compute the tokens to compress messages down to: the newest, with room for as many turns as possible."""
    return state.available // 16


def compute_result_cap(state: Budget, messages: int = 0) -> int:
    """One tool result: a quarter of *available*, or as much of what is left before a compression, down to a 24th of the
    window. So a file is read whole where there is room, and one read does not cost the server its cache."""
    left = (state.trigger - messages) // 4
    return min(state.available // 4, max(left, _compute_least_result(state.window)))


def compute_step_cap(state: Budget, messages: int = 0) -> int:
    """All results of one step: half of *available*, or half of what is left before a compression, down to twice
    what one result always gets."""
    left = (state.trigger - messages) // 2
    return min(state.available // 2, max(left, 2 * _compute_least_result(state.window)))


def _compute_least_result(window: int) -> int:
    """A 24th of the window; a 16th of a small one, where that would be too little to work with."""
    return max(window // 24, min(window // 16, SMALL_RESULT_TOKENS))


def compute_user_cap(state: Budget) -> int:
    """One user message, before it is cut to head, tail and id: half of what is there beside the instructions. Records
    make room for it."""
    return (state.available + state.checkpoints) // 2


def compute_words_share(state: Budget) -> int:
    """Tokens that the user's earlier words always have: 30 % of what is there beside the instructions."""
    return (state.limit - state.fixed) * 30 // 100


def compute_words_cap(state: Budget, others: int) -> int:
    """Tokens of the user's earlier words that stay as they are: their share, and in any case as many as leave the
    request, with its `others`, under 60 % of the window."""
    return max(compute_words_share(state), state.window * 60 // 100 - state.fixed - others)


def compute_summaries_cap(state: Budget) -> int:
    """Tokens of the summaries in all records."""
    return state.limit * 6 // 100


def compute_records_room(state: Budget, request: int) -> int:
    """Tokens that records leave the message being worked on: half as much again as it takes itself."""
    return max(state.limit // 12, state.limit - state.fixed - request * 3 // 2)


def compute_summary_cap(state: Budget, wanted: int) -> int:
    """One summary: what the settings say, at most a 20th of the limit."""
    return min(wanted, max(40, state.limit // 20))


def compute_summary_seconds(
    most: float, read_tokens: int, written_tokens: int, speeds: tuple[float | None, float | None]
) -> float:
    """Compute the timeout of a summary: several times what this model needs at its measured speeds (tokens a second,
    reading and writing), at most the configured one."""
    reading, writing = speeds
    if not reading or not writing:
        return most
    needed = read_tokens / reading + written_tokens / writing
    return min(most, max(MIN_SUMMARY_SECONDS, SUMMARY_SECONDS_RATIO * needed))


def compute_entries_cap(window: int) -> int:
    """Context entries beyond this are left out, lowest priority first."""
    return compute_limit(window) // 4


def compute_answer_tokens(state: Budget, prompt: int, doubt: int = 0) -> int:
    """Tokens an answer may take: with the prompt, and what it may be counted short by, it stays within the window."""
    return max(0, min(MIN_ANSWER_TOKENS, state.window - prompt), state.window - prompt - doubt)

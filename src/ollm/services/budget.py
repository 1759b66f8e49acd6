"""Token arithmetic of a context window (H: compression triggers). Pure functions."""

from __future__ import annotations

import math
from functools import lru_cache

from ollm.domain.context import Budget

DEFAULT_THRESHOLD_SHARE = 0.80
MIN_ANSWER_TOKENS = 64
SMALL_RESULT_TOKENS = 256  # A result in a small window may take this much, even if compression is near.
MIN_SUMMARY_SECONDS = 8.0
SUMMARY_SECONDS_RATIO = 4.0  # A summary may take this many times its expected duration.


@lru_cache(maxsize=4)
def compute_budget(window: int, fixed: int, checkpoints: int = 0, threshold: float = DEFAULT_THRESHOLD_SHARE) -> Budget:
    """Compute the budget. `fixed` covers the system prompt with its entries, the tool schemas and worked calls."""
    limit = compute_limit(window)
    available = max(0, limit - fixed - checkpoints)
    return Budget(
        window=window,
        limit=limit,
        fixed=fixed,
        checkpoints=checkpoints,
        available=available,
        trigger=math.floor(threshold * available + 1e-9),  # The addend cancels binary rounding.
    )


def compute_limit(window: int) -> int:
    """Compute the prompt limit: 85 % of the window, to leave room for an answer."""
    return max(1, window * 85 // 100)


def needs_compression(state: Budget, messages: int) -> bool:
    return messages > state.trigger


def compute_working_trigger(state: Budget) -> int:
    """Compute the trigger within a turn: tool results may use three quarters of the tokens above the threshold.
    Compression then waits for the next message, when these results may be dropped."""
    return (state.trigger + 3 * state.available) // 4


def compute_recent_tokens(state: Budget, wanted: int) -> int:
    """Compute how many of the newest tokens compression never touches: the configured number, at most a 16th of the
    available tokens. A small number makes it rarer that compression breaks the server's prompt cache."""
    return min(wanted, state.available // 16)


def compute_target_tokens(state: Budget) -> int:
    """Compute the target size of compressed messages: the newest ones, with room for many more turns."""
    return state.available // 16


def compute_result_cap(state: Budget, messages: int = 0) -> int:
    """Compute the cap of one tool result: a quarter of *available* or of the tokens left before a compression, but
    at least a 24th of the window. A file is read whole if there is room, and one read does not cost the server its
    cache."""
    left = (state.trigger - messages) // 4
    return min(state.available // 4, max(left, _compute_least_result(state.window)))


def compute_step_cap(state: Budget, messages: int = 0) -> int:
    """Compute the cap of all results of one step: half of *available* or of the tokens left before a compression, but
    at least twice the minimum of one result."""
    left = (state.trigger - messages) // 2
    return min(state.available // 2, max(left, 2 * _compute_least_result(state.window)))


def _compute_least_result(window: int) -> int:
    """Compute the minimum for a tool result: a 24th of the window, or up to a 16th if the window is small."""
    return max(window // 24, min(window // 16, SMALL_RESULT_TOKENS))


def compute_user_cap(state: Budget) -> int:
    """Compute the cap of one user message: half of the tokens beside the instructions. A longer one is cut to head,
    tail and id. Records make room for it."""
    return (state.available + state.checkpoints) // 2


def compute_words_share(state: Budget) -> int:
    """Compute the guaranteed tokens for the user's earlier words: 30 % of the tokens beside the instructions."""
    return (state.limit - state.fixed) * 30 // 100


def compute_words_cap(state: Budget, others: int) -> int:
    """Compute how many tokens of the user's earlier words stay verbatim: their share, or more if the request, with its
    `others`, stays under 60 % of the window."""
    return max(compute_words_share(state), state.window * 60 // 100 - state.fixed - others)


def compute_summaries_cap(state: Budget) -> int:
    """Compute the token cap of the summaries in all records."""
    return state.limit * 6 // 100


def compute_records_room(state: Budget, request: int) -> int:
    """Compute the tokens for records: they leave the current message one and a half times its own size."""
    return max(state.limit // 12, state.limit - state.fixed - request * 3 // 2)


def compute_summary_cap(state: Budget, wanted: int) -> int:
    """Compute the cap of one summary: the configured number, at most a 20th of the limit."""
    return min(wanted, max(40, state.limit // 20))


def compute_summary_seconds(
    most: float, read_tokens: int, written_tokens: int, speeds: tuple[float | None, float | None]
) -> float:
    """Compute the timeout of a summary: several times what the model needs at its measured speeds (tokens a second,
    reading and writing), at most the configured timeout."""
    reading, writing = speeds
    if not reading or not writing:
        return most
    needed = read_tokens / reading + written_tokens / writing
    return min(most, max(MIN_SUMMARY_SECONDS, SUMMARY_SECONDS_RATIO * needed))


def compute_entries_cap(window: int) -> int:
    """Compute the token cap of context entries; the lowest priorities are left out first."""
    return compute_limit(window) // 4


def compute_answer_tokens(state: Budget, prompt: int, doubt: int = 0) -> int:
    """Compute the tokens left for an answer; `doubt` is the margin of error of the prompt's token count."""
    return max(0, min(MIN_ANSWER_TOKENS, state.window - prompt), state.window - prompt - doubt)

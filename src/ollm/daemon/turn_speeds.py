"""How quick the last turns of an open session were: the wait for the first word, words a second, what was reused."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ollm.domain.events import AnyEvent, MessageRecorded, TextDelta, ThinkingDelta, TurnFinished, TurnStarted
from ollm.domain.struct import Data

MAX_TURNS = 30
MIN_WRITING_SECONDS = 0.05


class TurnSpeed(Data, frozen=True):
    """One turn. Times are null where nothing was written; the share is of the tokens of all its prompts."""

    message_id: int
    first_word_seconds: float | None
    tokens_per_second: float | None
    prompt_tokens: int
    completion_tokens: int
    reused_share: float | None


class TurnSpeeds:
    """Fed with every event of a session."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.turns: deque[TurnSpeed] = deque(maxlen=MAX_TURNS)
        self._clock = clock
        self._started: tuple[int, float] | None = None
        self._first_word: float | None = None
        self._writing_since: float | None = None
        self._writing_seconds = 0.0

    def record_event(self, event: AnyEvent) -> None:
        if isinstance(event, TurnStarted):
            self._started = (event.message_id, self._clock())
            self._first_word = self._writing_since = None
            self._writing_seconds = 0.0
        elif isinstance(event, TextDelta | ThinkingDelta) and self._writing_since is None:
            self._writing_since = self._clock()
            self._first_word = self._first_word or self._writing_since
        elif isinstance(event, MessageRecorded) and self._writing_since is not None:
            self._writing_seconds += self._clock() - self._writing_since
            self._writing_since = None
        elif isinstance(event, TurnFinished) and self._started is not None:
            self.turns.append(self._make_speed(*self._started, event))
            self._started = None

    def _make_speed(self, message_id: int, started: float, event: TurnFinished) -> TurnSpeed:
        usage = event.usage
        quick = usage.completion_tokens and self._writing_seconds >= MIN_WRITING_SECONDS
        return TurnSpeed(
            message_id=message_id,
            first_word_seconds=self._first_word - started if self._first_word is not None else None,
            tokens_per_second=usage.completion_tokens / self._writing_seconds if quick else None,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            reused_share=usage.reused_tokens / usage.prompt_tokens if usage.prompt_tokens else None,
        )

"""Loop detection (S4): repeated calls, cycles, outputs and text, and too many steps.

Everything counts from the user's last message (`reset`). The runtime records each step in the order it happens:
`record_turn`, `record_text` while the answer streams, `record_output` when it is complete, `record_tool_call` for each
call before it runs, then `check_for_loop`, and `record_tool_result` when there is a result. A detected loop stays
until `reset`. `check_for_warning` reports a loop about to form, so that the model can be warned."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ollm.config.settings import LoopSettings
from ollm.domain.events import Event, LoopDetected, LoopWarning
from ollm.domain.struct import Data
from ollm.domain.text import shorten_line

LoopType = Literal["repeated-tool", "repeated-output", "repeated-cycle", "repeated-text", "turn-limit"]
MAX_SHOWN_CHARS = 120


class LoopPattern(Data, frozen=True):
    """A loop: its kind, the repeated content and the count."""

    type: LoopType
    details: str
    count: int


CYCLE_PERIODS = range(2, 6)
POLLING_FACTOR = 3
_log = logging.getLogger("ollm.loop_detection")


class TrackedCall(msgspec.Struct):
    """One call: digests of its name and arguments and, once known, of its result."""

    key: bytes
    label: str
    result: bytes | None = None


class CallTracker:
    """The calls since the user's last message, as far back as a pattern can reach."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._calls: deque[TrackedCall] = deque(maxlen=max(POLLING_FACTOR, *CYCLE_PERIODS) * threshold)
        self._seen: set[bytes] = set()
        self._streak = 0
        self._results: set[bytes] = set()

    def add(self, name: str, args: Mapping[str, Any]) -> bool:
        """Add a call. Returns False if the same call was made before."""
        text = _encode_canonical(args)
        key = _compute_digest(name.encode() + b"\0" + text)
        if self._calls and self._calls[-1].key == key:
            self._streak += 1
        else:
            self._streak, self._results = 1, set()
        self._calls.append(
            TrackedCall(key, f"{name} {shorten_line(text[:500].decode('utf-8', 'replace'), MAX_SHOWN_CHARS)}")
        )
        return self._is_new(key)

    def complete(self, name: str, args: Mapping[str, Any], result: str) -> bool:
        """Add the result to the earliest such call without one. Returns True if the result is new."""
        key = _compute_digest(name.encode() + b"\0" + _encode_canonical(args))
        brought = _compute_digest(result.encode("utf-8", "replace"))
        call = next((call for call in self._calls if call.key == key and call.result is None), None)
        if call is None:
            return False
        call.result = brought
        if self._calls[-1].key == key:
            self._results.add(brought)
        return self._is_new(key + brought)

    def find_loop(self) -> LoopPattern | None:
        limit = self._threshold * (POLLING_FACTOR if self._is_polling else 1)
        return self._find_repetition(limit) or self._find_cycle(self._threshold)

    def find_warning(self) -> LoopPattern | None:
        """Find a loop one repetition early. If results differ, warn at the number that would otherwise be a loop."""
        limit = self._threshold if self._is_polling else self._threshold - 1
        if self._streak == limit and limit > 1:
            return self._find_repetition(limit)
        return self._find_cycle(self._threshold - 1)

    @property
    def _is_polling(self) -> bool:
        return len(self._results) > 1

    def _is_new(self, key: bytes) -> bool:
        before = len(self._seen)
        self._seen.add(key)
        return len(self._seen) > before

    def _find_repetition(self, limit: int) -> LoopPattern | None:
        if self._streak < limit:
            return None
        changing = ", with a different result each time" if self._is_polling else ""
        details = f"{self._calls[-1].label} was called {self._streak} times in a row{changing}"
        return LoopPattern(type="repeated-tool", details=details, count=self._streak)

    def _find_cycle(self, rounds: int) -> LoopPattern | None:
        calls = list(self._calls)
        for period in CYCLE_PERIODS:
            tail = calls[-period * rounds :]
            if len(tail) == period * rounds and rounds > 1 and _is_cycle(tail, period):
                names = " → ".join(call.label for call in tail[:period])
                details = f"the same {period} calls were repeated {rounds} times: {names}"
                return LoopPattern(type="repeated-cycle", details=details, count=rounds)
        return None


def _is_cycle(tail: list[TrackedCall], period: int) -> bool:
    """Return True for the same calls in the same order, with the same known results."""
    keys = [call.key for call in tail]
    if keys[period:] != keys[:-period] or len({*keys[:period]}) == 1:
        return False
    return all(len({call.result for call in tail[position::period]} - {None}) < 2 for position in range(period))


def _encode_canonical(args: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(args, order="sorted")
    except (TypeError, ValueError, RecursionError) as error:
        _log.warning("arguments of a call cannot be compared exactly: %s", error)
        return repr(args)[:100_000].encode("utf-8", "replace")


def _compute_digest(data: bytes) -> bytes:
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


MIN_SIMILARITY_PERCENT = 95.0
COMPARED_CHARS = 2_000


class OutputTracker:
    """The text of the last step, and the number of times it was repeated in a row."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._streak = 0
        self._called = False
        self._news = False

    def add(self, text: str) -> None:
        if not text.strip() and self._called:
            self._called = False  # A step with calls alone has no text to compare.
            return
        alike = self._last is not None and not self._news and are_alike(self._last, text)
        self._streak = self._streak + 1 if alike else 1
        self._last, self._called, self._news = text, False, False

    def record_call(self, *, brought_news: bool) -> None:
        self._called = True
        self._news = self._news or brought_news

    def find_repetition(self, times: int) -> LoopPattern | None:
        if self._last is None or self._streak < max(times, 2):
            return None
        details = f"the same text {self._streak} times in a row: “{shorten_line(self._last, MAX_SHOWN_CHARS)}”"
        return LoopPattern(type="repeated-output", details=details, count=self._streak)


def are_alike(one: str, other: str) -> bool:
    """Return True if the texts are equal, or their first and last 2,000 characters are at least 95 % similar."""
    if one == other:
        return True
    if min(len(one), len(other)) < 0.9 * max(len(one), len(other)):
        return False
    from rapidfuzz.fuzz import ratio

    heads = ratio(one[:COMPARED_CHARS], other[:COMPARED_CHARS], score_cutoff=MIN_SIMILARITY_PERCENT)
    return (
        heads >= MIN_SIMILARITY_PERCENT
        and ratio(one[-COMPARED_CHARS:], other[-COMPARED_CHARS:], score_cutoff=MIN_SIMILARITY_PERCENT)
        >= MIN_SIMILARITY_PERCENT
    )


PROBE_CHARS = 32
CHECK_EVERY_CHARS = 64
MIN_STRETCH_CHARS = 800
WINDOW_CHARS = 16_384


class StreamTracker:
    """The end of one streamed text."""

    def __init__(self, channel: str, threshold: int) -> None:
        self._what = "the answer" if channel == "text" else "the thinking"
        self._times = threshold + 1
        self._text = ""
        self._unchecked = 0

    def add(self, delta: str) -> LoopPattern | None:
        """Add text. Returns a pattern if the same text came `threshold` + 1 times, for at least 800 characters."""
        self._text += delta
        self._unchecked += len(delta)
        if self._unchecked < CHECK_EVERY_CHARS:
            return None
        self._unchecked = 0
        if len(self._text) > 2 * WINDOW_CHARS:
            self._text = self._text[-WINDOW_CHARS:]
        return self._find_repetition()

    def _find_repetition(self) -> LoopPattern | None:
        text = self._text
        before = text.rfind(text[-PROBE_CHARS:], 0, len(text) - 1)
        period = len(text) - PROBE_CHARS - before
        stretch = max(self._times * period, MIN_STRETCH_CHARS)
        if before < 0 or stretch > len(text) or text[-stretch:-period] != text[period - stretch :]:
            return None
        unit = shorten_line(text[-period:], MAX_SHOWN_CHARS) or "blank space"
        count = stretch // period
        details = f"{self._what} repeats the same text at least {count} times: “{unit}”"
        return LoopPattern(type="repeated-text", details=details, count=count)


Channel = Literal["text", "thinking"]


class LoopDetectionService:
    """Watches one conversation. Emits `LoopDetected` once per loop, `LoopWarning` once per warning."""

    def __init__(self, settings: LoopSettings | None = None, emit: Callable[[Event], None] | None = None) -> None:
        self._emit = emit or (lambda _: None)
        self.configure(settings or LoopSettings())

    def configure(self, config: LoopSettings) -> None:
        """Use these limits from now on, and reset all state."""
        self.settings = config
        self.reset()

    def reset(self) -> None:
        """Reset all state after a message from the user."""
        self._turns = 0
        self._calls = CallTracker(self.settings.repeat_threshold)
        self._outputs = OutputTracker()
        self._texts: dict[Channel, StreamTracker] = {}
        self._found: LoopPattern | None = None
        self._warned: set[str] = set()

    def record_turn(self) -> None:
        """Record the start of a step: one more request to the model."""
        self._turns += 1
        self._texts = {}

    def record_tool_call(self, tool_name: str, args: Mapping[str, Any]) -> None:
        """Record a call that the model requested."""
        is_new = self._calls.add(tool_name, args)
        self._outputs.record_call(brought_news=is_new)

    def record_tool_result(self, tool_name: str, args: Mapping[str, Any], result: str) -> None:
        """Record the result of the earliest such call without one."""
        if self._calls.complete(tool_name, args, result):
            self._outputs.record_call(brought_news=True)

    def record_output(self, output: str) -> None:
        """Record the complete text of a step."""
        self._outputs.add(output)

    def record_text(self, delta: str, channel: Channel = "text") -> LoopPattern | None:
        """Record streamed text of an answer or thought. Returns a pattern as soon as it repeats."""
        if channel not in self._texts:
            self._texts[channel] = StreamTracker(channel, self.settings.repeat_threshold)
        pattern = self._texts[channel].add(delta)
        return self.record_loop(pattern) if pattern and self.settings.enabled else None

    def check_for_loop(self) -> LoopPattern | None:
        """Return the current loop, or None. It stays until `reset`: no more calls may run."""
        if not self.settings.enabled:
            return None
        repeated = self._outputs.find_repetition(self.settings.repeat_threshold)
        return self.record_loop(self._check_turn_limit() or self._calls.find_loop() or repeated)

    def check_for_warning(self) -> LoopPattern | None:
        """Return a loop that is about to form, each only once, or None."""
        if not self.settings.enabled or self._found:
            return None
        repeated = self._outputs.find_repetition(self.settings.repeat_threshold - 1)
        if (pattern := self._calls.find_warning() or repeated) is None:
            return None
        key = pattern.type if pattern.type == "repeated-cycle" else pattern.details
        if key in self._warned:
            return None
        self._warned.add(key)
        self._emit(LoopWarning(pattern=pattern.type, details=pattern.details, count=pattern.count))
        return pattern

    def _check_turn_limit(self) -> LoopPattern | None:
        if self._turns <= self.settings.max_turns:
            return None
        details = f"{self.settings.max_turns} model requests for one message"
        return LoopPattern(type="turn-limit", details=details, count=self._turns)

    def record_loop(self, pattern: LoopPattern | None) -> LoopPattern | None:
        """Record and report a loop found here or by the caller. Returns the first one of the turn."""
        if pattern is not None and self._found is None:
            self._found = pattern
            self._emit(LoopDetected(pattern=pattern.type, details=pattern.details, count=pattern.count))
        return self._found


def format_advice(pattern: LoopPattern) -> str:
    """Format the warning to a model that is about to loop, or that continues after a loop."""
    return f"You are repeating yourself: {pattern.details}. Try something else, or say what is blocking you."

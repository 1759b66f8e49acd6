"""Repeated calls and cycles of calls. Two calls are the same when tool and arguments are, nested values included."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from ollm.services.loop_detection.pattern import LoopPattern, shorten_text

CYCLE_PERIODS = range(2, 6)
POLLING_FACTOR = 3
_log = logging.getLogger("ollm.loop_detection")


class TrackedCall(msgspec.Struct):
    """One call: what it is known by, and what its result is known by once there is one."""

    key: bytes
    shown: str
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
        """Whether no such call was made before."""
        text = _encode_canonical(args)
        key = _compute_digest(name.encode() + b"\0" + text)
        if self._calls and self._calls[-1].key == key:
            self._streak += 1
        else:
            self._streak, self._results = 1, set()
        self._calls.append(TrackedCall(key, f"{name} {shorten_text(text[:500].decode('utf-8', 'replace'))}"))
        return self._is_new(key)

    def complete(self, name: str, args: Mapping[str, Any], result: str) -> bool:
        """Give the earliest such call without a result this one; whether it is news."""
        key, brought = (
            _compute_digest(name.encode() + b"\0" + _encode_canonical(args)),
            _compute_digest(result.encode("utf-8", "replace")),
        )
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
        """One repetition before a loop; when results differ, at the number that would be a loop without them."""
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
        details = f"{self._calls[-1].shown} was called {self._streak} times in a row{changing}"
        return LoopPattern(type="repeated-tool", details=details, count=self._streak)

    def _find_cycle(self, rounds: int) -> LoopPattern | None:
        calls = list(self._calls)
        for period in CYCLE_PERIODS:
            tail = calls[-period * rounds :]
            if len(tail) == period * rounds and rounds > 1 and _is_cycle(tail, period):
                names = " → ".join(call.shown for call in tail[:period])
                details = f"the same {period} calls were repeated {rounds} times: {names}"
                return LoopPattern(type="repeated-cycle", details=details, count=rounds)
        return None


def _is_cycle(tail: list[TrackedCall], period: int) -> bool:
    """The same calls in the same order, with the same results as far as they are known."""
    first = tail[:period]
    if len({call.key for call in first}) == 1:
        return False
    for position, call in enumerate(tail):
        known = {one.result for one in tail[position % period :: period]} - {None}
        if call.key != first[position % period].key or len(known) > 1:
            return False
    return True


def _encode_canonical(args: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(args, order="sorted")
    except (TypeError, ValueError, RecursionError) as error:
        _log.warning("arguments of a call cannot be compared exactly: %s", error)
        return repr(args)[:100_000].encode("utf-8", "replace")


def _compute_digest(data: bytes) -> bytes:
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()

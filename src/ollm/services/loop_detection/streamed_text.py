"""An answer or a thought that repeats itself while it streams.

The end of the text is looked up in the text before it: the distance is what would repeat, and one comparison says
whether it does. Short things repeat in honest text (rules, tables, zeros), so a stretch must be long as well.
"""

from __future__ import annotations

from ollm.services.loop_detection.pattern import LoopPattern, shorten_text

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
        """A pattern once the same text has come `threshold` + 1 times and for 800 characters at least."""
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
        unit = shorten_text(text[-period:]) or "blank space"
        count = stretch // period
        details = f"{self._what} repeats the same text at least {count} times: “{unit}”"
        return LoopPattern(type="repeated-text", details=details, count=count)

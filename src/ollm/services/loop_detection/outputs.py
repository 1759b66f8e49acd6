"""Steps that say the same again, though what they did in between brought nothing new."""

from __future__ import annotations

from ollm.services.loop_detection.pattern import LoopPattern, shorten_text

MIN_SIMILARITY_PERCENT = 95.0
COMPARED_CHARS = 2_000


class OutputTracker:
    """The text of the last step, and how often it was said in a row."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._last: str | None = None
        self._streak = 0
        self._called = False
        self._news = False

    def add(self, text: str) -> None:
        if not text.strip() and self._called:
            self._called = False  # a step that only made calls said nothing
            return
        alike = self._last is not None and not self._news and are_alike(self._last, text)
        self._streak = self._streak + 1 if alike else 1
        self._last, self._called, self._news = text, False, False

    def record_call(self, *, brought_news: bool) -> None:
        """A call was made since the last text."""
        self._called = True
        self._news = self._news or brought_news

    def find_loop(self) -> LoopPattern | None:
        return self._find_repetition(self._threshold)

    def find_warning(self) -> LoopPattern | None:
        return self._find_repetition(self._threshold - 1) if self._threshold > 2 else None

    def _find_repetition(self, limit: int) -> LoopPattern | None:
        if self._last is None or self._streak < limit:
            return None
        details = f"the same text {self._streak} times in a row: “{shorten_text(self._last)}”"
        return LoopPattern(type="repeated-output", details=details, count=self._streak)


def are_alike(one: str, other: str) -> bool:
    """Equal, or alike in at least 95 % of the first and of the last 2,000 characters."""
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

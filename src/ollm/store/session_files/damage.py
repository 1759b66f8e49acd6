"""What a reader could not use, gathered while it reads, told in one sentence."""

from __future__ import annotations

MAX_BYTES = 500_000_000
MAX_DEPTH = 100
SECONDS = 6.0  # of this process, so that a busy machine does not make a file unreadable
MAX_LOST = 2000
MAX_NOTES = 5


class Damage:
    """Grows while files are read. `too_large` means: can be looked at, must not be written."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lost = 0
        self.too_large = False

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def lose(self, text: str) -> None:
        """One more entry that could not be read."""
        self.lost += 1
        self.note(text)

    def refuse(self, text: str) -> None:
        self.too_large = True
        if text not in self.notes:
            self.notes.insert(0, text)

    @property
    def hopeless(self) -> bool:
        """So much cannot be read that reading on is not worth anybody's time."""
        return self.lost >= MAX_LOST

    @property
    def text(self) -> str | None:
        """None when everything was read."""
        if not self.notes:
            return None
        counted = f" ({self.lost} {'entry' if self.lost == 1 else 'entries'} could not be read)" if self.lost else ""
        return "; ".join(self.notes) + counted

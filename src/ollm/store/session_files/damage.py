"""What a reader could not use, gathered while it reads, told in one sentence."""

from __future__ import annotations

import time

MAX_BYTES = 500_000_000
MAX_DEPTH = 100
FIND_SECONDS = 4.5  # to find the entries; of this process, so that a busy machine does not make a file unreadable
LOADING_SECONDS = 6.5  # to read all of them
MAX_NOTES = 5


class DamageReport:
    """Grows while files are read. `too_large` means: can be looked at, must not be written.

    With more `patience` reading may take that many times as long.
    """

    def __init__(self, patience: float = 1) -> None:
        self.notes: list[str] = []
        self.lost = 0
        self.too_large = False
        self.size = 0  # of the files that are read, in bytes
        begun = time.process_time()
        self.find_until = begun + FIND_SECONDS * patience
        self._until = begun + LOADING_SECONDS * patience

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def count_lost_entry(self, text: str) -> None:
        """One more entry that could not be read."""
        self.lost += 1
        self.note(text)

    def refuse(self, text: str) -> None:
        self.too_large = True
        if text not in self.notes:
            self.notes.insert(0, text)

    def refuse_depth(self) -> None:
        self.refuse(f"too large to read ({_format_size(self.size)}, nested deeper than {MAX_DEPTH} levels)")

    def extend_time(self, seconds: float) -> None:
        """Somebody works on the entries while they are read: that much more time."""
        self._until += seconds

    def is_late(self, entries: int) -> bool:
        """Whether reading what is damaged took too long; asked now and then. Then it must not be written.

        What is whole is read to its end, however long that takes.
        """
        if not self.notes or time.process_time() < self._until:
            return False
        self.refuse(f"the file takes too long to read; entries after {entries} are not shown")
        return True

    @property
    def text(self) -> str | None:
        """None when everything was read."""
        if not self.notes:
            return None
        counted = f" ({self.lost} {'entry' if self.lost == 1 else 'entries'} could not be read)" if self.lost else ""
        return "; ".join(self.notes) + counted


class DamageFoundError(Exception):
    """Something is wrong: whoever wants to know what has to read on."""


class StrictDamageReport(DamageReport):
    """Ends the reading with a `DamageFoundError` at the first thing that is wrong."""

    def note(self, text: str) -> None:
        raise DamageFoundError(text)

    def refuse(self, text: str) -> None:
        raise DamageFoundError(text)


def _format_size(size: int) -> str:
    return f"{size} bytes" if size < 1_000_000 else f"{size // 1_000_000} MB"

"""Streamed Markdown cut into blocks: a finished one is printed once, only the open one is painted again."""

from __future__ import annotations

FENCES = ("```", "~~~")


class Blocks:
    """Feed it text as it comes; `open` is what may still change."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""

    @property
    def open(self) -> str:
        return "\n".join([*self._lines, self._rest])

    def feed(self, text: str) -> list[str]:
        """The blocks that are finished now."""
        *lines, self._rest = (self._rest + text).split("\n")
        finished = [self._take(line) for line in lines]
        return [block for block in finished if block]

    def end(self) -> str:
        """The text is over: what was open, without blank lines around it."""
        block = self.open.strip("\n")
        self._lines, self._rest, self._fence = [], "", ""
        return block

    def _take(self, line: str) -> str:
        """Add a line; the block it finishes, or nothing."""
        mark = line.lstrip()[:3]
        if self._fence:
            self._lines.append(line)
            return self._close() if mark == self._fence and not line.strip().strip(mark[0]) else ""
        if mark in FENCES:
            before = self._close()
            self._fence = mark
            self._lines = [line]
            return before
        if line.strip():
            self._lines.append(line)
            return ""
        return self._close() if not self._in_list() else self._blank()

    def _blank(self) -> str:
        """A list may go on after a blank line; two of them end it."""
        if self._lines and not self._lines[-1].strip():
            return self._close()
        self._lines.append("")
        return ""

    def _in_list(self) -> bool:
        first = self._lines[0].lstrip() if self._lines else ""
        return first[:2] in ("- ", "* ", "+ ") or first[:1].isdigit()

    def _close(self) -> str:
        block = "\n".join(self._lines).strip("\n")
        self._lines, self._fence = [], ""
        return block

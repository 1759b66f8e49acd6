"""Streamed Markdown cut into blocks: a finished one is printed once, only the open one is painted again."""

from __future__ import annotations

FENCES = ("```", "~~~")


class MarkdownBlocks:
    """Feed it text as it comes; `open` is what may still change."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""
        self._head = ""  # the line that opened the code
        self._inside = False  # whether that code is part of a list

    @property
    def open(self) -> str:
        return "\n".join([*self._lines, self._rest])

    def render_tail(self, lines: int) -> str:
        """The end of what is open, as Markdown of its own: code stays code, however long it is."""
        last = [*self._lines, self._rest][-lines:]
        cut = self._fence and self._head not in last
        return "\n".join([self._head.lstrip(), *last] if cut else last)

    def feed(self, text: str) -> list[str]:
        """The blocks that are finished now."""
        *lines, self._rest = (self._rest + text).split("\n")
        finished = [self._add_line(line) for line in lines]
        return [block for block in finished if block]

    def finish(self) -> str:
        """The text is over: what was open, without blank lines around it."""
        block = self.open.strip("\n")
        self._lines, self._rest, self._fence = [], "", ""
        return block

    def _add_line(self, line: str) -> str:
        """Add a line; the block it finishes, or nothing."""
        mark = line.lstrip()[:3]
        if self._fence:
            return self._add_code_line(line, mark)
        if mark in FENCES:
            return self._open_code(line, mark)
        if line.strip():
            before = self._close() if self._ends_list(line) else ""
            self._lines.append(line)
            return before
        return self._close() if not self._is_in_list() else self._add_blank_line()

    def _open_code(self, line: str, mark: str) -> str:
        """Code is a block of its own, unless it is indented below an item."""
        self._inside = self._is_in_list() and line.startswith(" ")
        before = "" if self._inside else self._close()
        self._fence, self._head = mark, line
        self._lines.append(line)
        return before

    def _add_code_line(self, line: str, mark: str) -> str:
        self._lines.append(line)
        if mark != self._fence or line.strip().strip(mark[0]):
            return ""
        self._fence = ""
        return "" if self._inside else self._close()

    def _add_blank_line(self) -> str:
        """A list may go on after a blank line; two of them end it."""
        if self._lines and not self._lines[-1].strip():
            return self._close()
        self._lines.append("")
        return ""

    def _ends_list(self, line: str) -> bool:
        """After a blank line a list continues with an item or something indented; anything else is a new block."""
        after_blank = bool(self._lines) and not self._lines[-1].strip()
        return self._is_in_list() and after_blank and not line.startswith(" ") and not _is_list_item(line)

    def _is_in_list(self) -> bool:
        return bool(self._lines) and _is_list_item(self._lines[0].lstrip())

    def _close(self) -> str:
        block = "\n".join(self._lines).strip("\n")
        self._lines, self._fence = [], ""
        return block


def _is_list_item(line: str) -> bool:
    number, dot, _ = line.partition(". ")
    return line[:2] in ("- ", "* ", "+ ") or (bool(dot) and number.isdigit())

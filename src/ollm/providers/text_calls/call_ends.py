"""Find ends in streamed text, looking at each character once."""

from __future__ import annotations

from ollm.domain.lazy import compile_late


class JsonEndScanner:
    """The end of the first JSON value; brackets inside quotes do not count."""

    _OUTSIDE = compile_late(r"[\"{}\[\]]")
    _INSIDE = compile_late(r"[\"\\]")

    def __init__(self) -> None:
        self.closed = False
        self.quoted = False
        self._escaped = False
        self._depth = 0

    def scan(self, text: str) -> int | None:
        """The place behind the bracket that closes it; None while it is open."""
        place = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while found := (self._INSIDE if self.quoted else self._OUTSIDE).search(text, place):
            place = found.end()
            match found[0]:
                case "\\":
                    place += 1
                    self._escaped = place > len(text)
                case '"':
                    self.quoted = not self.quoted
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth <= 0:
                        self.closed = True
                        return place
        return None


class MarkEndScanner:
    """The end of the first place where a mark is."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._tail = ""

    def scan(self, text: str) -> int | None:
        whole = self._tail + text
        at = whole.find(self._mark)
        if at >= 0:
            return at + len(self._mark) - len(self._tail)
        self._tail = whole[-(len(self._mark) - 1) :]
        return None


def ends_inside_quotes(text: str) -> bool:
    """True if the text ends inside quotes: a value that is not whole must not be used."""
    scan = JsonEndScanner()
    while (end := scan.scan(text)) is not None:
        text, scan = text[end:], JsonEndScanner()
    return scan.quoted

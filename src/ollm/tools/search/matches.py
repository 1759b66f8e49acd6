"""What ripgrep says in JSON, read into lines with their place, long ones cut around the match."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ollm.domain.counting import format_count

_MAX_LINE_CHARS = 400  # characters of a line that are shown
_CHARS_BEFORE_MATCH = 120
_MAX_RECORD_BYTES = 64 << 20  # bytes of one line of output
MAX_COUNTED_MATCHES = 10_000


class FoundLine(NamedTuple):
    """A line of a file: one that matches, or one near it. A match over several lines `starts` with the first."""

    number: int
    text: str
    matches: bool
    starts: bool


class MatchCollector:
    """Fed with ripgrep's output as it comes. Stops wanting more when far more was found than anyone reads. What it says
    of files that were not to be searched is passed over."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._paths = wanted
        self.files: dict[str, list[FoundLine]] = {}
        self.binary: set[str] = set()
        self.count = 0
        self.too_long = 0
        self._waiting: list[bytes] = []
        self._size = 0
        self._decode = msgspec.json.Decoder().decode

    @cached_property
    def _wanted(self) -> frozenset[str]:
        """Only asked for when something was found."""
        return frozenset(self._paths)

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_COUNTED_MATCHES

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._buffer_part(first)
        for part in others:
            self._finish_line()
            self._buffer_part(part)

    def _buffer_part(self, part: bytes) -> None:
        """A part of a line. One that is far too long is forgotten, not gathered."""
        self._size += len(part)
        if self._size <= _MAX_RECORD_BYTES:
            self._waiting.append(part)

    def _finish_line(self) -> None:
        if self._size > _MAX_RECORD_BYTES:
            self.too_long += 1
        elif self._size:
            self._take_record(self._decode(b"".join(self._waiting)))
        self._waiting, self._size = [], 0

    def _take_record(self, record: Any) -> None:
        kind, data = record["type"], record["data"]
        if kind in ("match", "context"):
            path = _decode_text(data["path"], "surrogateescape").removeprefix("./")
            if path not in self._wanted:
                return
            start = data["submatches"][0]["start"] if data["submatches"] else 0
            lines = self.files.setdefault(path, [])
            lines.extend(_make_lines(data, start, matches=kind == "match"))
            self.count += kind == "match"
        elif kind == "end" and data["binary_offset"] is not None:
            self._drop_binary(_decode_text(data["path"], "surrogateescape").removeprefix("./"))

    def _drop_binary(self, path: str) -> None:
        lines = self.files.pop(path, None)
        if lines:
            self.binary.add(path)
            self.count -= sum(line.starts for line in lines)


def _make_lines(data: Any, start: int, *, matches: bool) -> list[FoundLine]:
    text = _decode_text(data["lines"], "replace")
    texts = text.removesuffix("\n").split("\n")
    first = data["line_number"]
    return [
        FoundLine(first + at, _trim_line(line.removesuffix("\r"), 0 if at else start), matches, matches and not at)
        for at, line in enumerate(texts)
    ]


def _trim_line(line: str, start: int) -> str:
    """A line of readable length, with the match in it. `start` is in bytes, which is near enough."""
    if len(line) <= _MAX_LINE_CHARS:
        return line
    begin = max(min(start, len(line)) - _CHARS_BEFORE_MATCH, 0)
    end = begin + _MAX_LINE_CHARS
    left = f"… {format_count(begin, 'character')} … " if begin else ""
    right = f" … {format_count(len(line) - end, 'character')} …" if end < len(line) else ""
    return left + line[begin:end] + right


def _decode_text(record: dict[str, str], errors: str) -> str:
    return record["text"] if "text" in record else base64.b64decode(record["bytes"]).decode("utf-8", errors)

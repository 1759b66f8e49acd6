"""The text of a file, or a range of its lines, without reading more than is shown (T2.1-2.7)."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import AsyncIterator
from typing import BinaryIO

import msgspec

from ollm.config.settings import OutputSettings, ToolSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.tools.files.encoding import SAMPLE_BYTES, Encoding, detect_encoding
from ollm.tools.files.pictures import describe_kind
from ollm.tools.framework.output import show_controls, take_head

CHUNK_BYTES = 1024 * 1024
NOTE_CHARS, NOTE_LINES = 400, 3


class LineRange(Data, frozen=True):
    """Lines from `first` to `last`, both included, counting from 1. `numbered` puts its number before each."""

    first: int = 1
    last: int | None = None
    numbered: bool = False

    @property
    def whole(self) -> bool:
        return self.first == 1 and self.last is None

    @property
    def words(self) -> str:
        if self.last is None:
            return "" if self.first == 1 else f" from line {self.first}"
        return f", lines {self.first} to {self.last}"


class Excerpt(Data, frozen=True):
    """What was read, as it is shown. `content` holds the file's bytes when all of it was read."""

    text: str
    count: int
    notes: tuple[str, ...] = ()
    content: bytes | None = None


async def read_text(given: str, file: BinaryIO, wanted: LineRange, settings: ToolSettings) -> Excerpt:
    """Raises ToolFailure: BinaryFile, FileTooLarge, InvalidLineRange."""
    size, limit = os.fstat(file.fileno()).st_size, settings.read_file.max_bytes
    if size > limit:
        if wanted.whole:
            raise make_too_large_failure(given, size, limit)
        return await _read_stream(given, file, wanted, settings.output)
    content = file.read(limit + 1)
    if len(content) > limit:
        raise make_too_large_failure(given, len(content), limit)
    encoding = detect_text_encoding(given, content, len(content))
    part = _slice_text(encoding.decode(content), wanted)
    return msgspec.structs.replace(_make_excerpt(given, part, wanted, settings.output, encoding), content=content)


async def _read_stream(given: str, file: BinaryIO, wanted: LineRange, limits: OutputSettings) -> Excerpt:
    sample = file.read(SAMPLE_BYTES)
    encoding = detect_text_encoding(given, sample, os.fstat(file.fileno()).st_size, whole=False)
    part = await _slice_stream(_decode_stream(encoding, sample, file), wanted, limits)
    return _make_excerpt(given, part, wanted, limits, encoding)


def render_lines(what: str, text: str, wanted: LineRange, limits: OutputSettings) -> str:
    """A range of lines of any text, within the limits, with where to read on. Raises InvalidLineRange."""
    return append_notes(_make_excerpt(what, _slice_text(text, wanted), wanted, limits, Encoding()))


def append_notes(excerpt: Excerpt) -> str:
    """The text as it is, and below it what else there is to say."""
    if not excerpt.notes:
        return excerpt.text
    end = "" if excerpt.text.endswith("\n") or not excerpt.text else "\n"
    return excerpt.text + end + "\n".join(f"[{note}]" for note in excerpt.notes)


def detect_text_encoding(given: str, data: bytes, size: int, *, whole: bool = True) -> Encoding:
    encoding = detect_encoding(data, whole=whole)
    if encoding is None:
        raise ToolFailure("BinaryFile", f"{given} is not text: it is {describe_kind(data)} of {size:,} bytes.")
    return encoding


def make_too_large_failure(given: str, size: int, limit: int) -> ToolFailure:
    return ToolFailure(
        "FileTooLarge",
        f"{given} has {size:,} bytes; files over {limit:,} bytes are not read whole. "
        "Read a part with startLine and endLine, or find the place with grep.",
    )


class _LineSlice(Data, frozen=True):
    """The lines asked for, or as many as can be shown; `total` is known when the end of the file was seen."""

    text: str
    total: int | None


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _slice_text(text: str, wanted: LineRange) -> _LineSlice:
    if wanted.whole:
        return _LineSlice(text=text, total=count_lines(text))
    start = _find_offset(text, wanted.first - 1)
    end = len(text) if wanted.last is None else _find_offset(text, wanted.last - wanted.first + 1, start)
    return _LineSlice(text=text[start:end], total=count_lines(text))


def _find_offset(text: str, lines: int, start: int = 0) -> int:
    """Where the text is after so many lines."""
    for _ in range(lines):
        found = text.find("\n", start)
        if found < 0:
            return len(text)
        start = found + 1
    return start


async def _decode_stream(encoding: Encoding, sample: bytes, file: BinaryIO) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    yield decoder.decode(sample.removeprefix(encoding.mark))
    while chunk := file.read(CHUNK_BYTES):
        yield decoder.decode(chunk)
        await asyncio.sleep(0)  # a long file can be cancelled
    yield decoder.decode(b"", final=True)


async def _slice_stream(chunks: AsyncIterator[str], wanted: LineRange, limits: OutputSettings) -> _LineSlice:
    passed, taken, ended = 0, "", True  # whole lines passed before `taken` starts
    most = limits.max_lines + 1  # one more than is shown tells that there are more
    wanted_lines = most if wanted.last is None else min(wanted.last - wanted.first + 1, most)
    async for chunk in chunks:
        taken += chunk
        skip = min(wanted.first - 1 - passed, taken.count("\n"))
        if skip > 0:
            taken, passed = _drop_lines(taken, skip), passed + skip
        at_start = passed == wanted.first - 1
        if at_start and (taken.count("\n") >= wanted_lines or len(taken) > limits.max_chars):
            ended = False
            break
        if not at_start:
            taken = taken[-1:]  # the middle of a long line that is not wanted
    total = passed + count_lines(taken) if ended else None
    inside = passed == wanted.first - 1
    return _LineSlice(text=taken[: _find_offset(taken, wanted_lines)] if inside else "", total=total)


def _drop_lines(text: str, count: int) -> str:
    return text.split("\n", count)[count]


def _make_excerpt(
    given: str, part: _LineSlice, wanted: LineRange, limits: OutputSettings, encoding: Encoding
) -> Excerpt:
    if part.total is not None and wanted.first > max(part.total, 1):
        lines = "1 line" if part.total == 1 else f"{part.total:,} lines"
        raise ToolFailure("InvalidLineRange", f"startLine {wanted.first} is past the end: {given} has {lines}.")
    text = show_controls(part.text)
    if wanted.numbered:
        text = _number_lines(text, wanted.first)
    chars, lines_allowed = max(limits.max_chars - NOTE_CHARS, 1), max(limits.max_lines - NOTE_LINES, 1)
    count = part.total if part.total is not None and wanted.whole else count_lines(text)
    fits = len(text) <= chars and count <= lines_allowed
    shown = text if fits else take_head(text, chars, lines_allowed)
    notes = [] if fits else [_describe_cut(shown, wanted.first, part.total)]
    if encoding.label:
        notes.append(f"encoding: {encoding.label}")
    return Excerpt(text=shown, count=count if fits else count_lines(shown), notes=tuple(notes))


def _number_lines(text: str, first: int) -> str:
    if not text:
        return ""
    end = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first)) + end


def _describe_cut(shown: str, first: int, total: int | None) -> str:
    of = f" of {total:,}" if total is not None else ""
    if not shown.endswith("\n"):
        line = first + shown.count("\n")
        return f"line {line:,}{of} is too long and was cut here"
    last = first + shown.count("\n") - 1
    return f"lines {first:,} to {last:,}{of} are shown; read on with startLine {last + 1}"

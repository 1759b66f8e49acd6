"""The text of a file, or a range of its lines, without reading more than is shown (T2.1-2.7)."""

from __future__ import annotations

import asyncio
import base64
import codecs
import io
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ollm.config.settings import OutputSettings, ToolSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.messages import ImagePart
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.tools.framework.output import append_notes, show_controls, take_head

if TYPE_CHECKING:
    from ollm.services.edit_ledger import EditLedger

SAMPLE_BYTES = 64 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Bytes that text in a single-byte encoding does not hold; tab, line ends, form feed and escape may occur.
_BINARY = frozenset(range(0x20)) - {0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B} | {0x7F}


# A guess between Western European tables is a toss on a short text, wider ones are wrong: the commonest is taken.
_WESTERN = (
    "cp1250",
    "cp1252",
    "cp1254",
    "cp1257",
    "cp1258",
    "latin",
    "iso8859_",
    "mac_",
    "cp437",
    "cp85",
    "cp77",
    "hp_",
    "utf_",  # A guess of UTF-16 without a mark or a zero byte is as uncertain.
)


class Encoding(Data, frozen=True):
    """The encoding of a file's text. `exact` is False if decoding lost data, so that it must not be written back."""

    name: str = "utf-8"
    mark: bytes = b""
    exact: bool = True

    @property
    def label(self) -> str:
        """Name for display, empty for plain UTF-8."""
        if not self.exact:
            return f"{self.name} with invalid bytes"
        if self.mark:
            return f"{self.name} with byte order mark"
        return "" if self.name == "utf-8" else self.name

    def decode(self, data: bytes) -> str:
        return data.removeprefix(self.mark).decode(self.name, "strict" if self.exact else "replace")

    def encode(self, text: str) -> bytes:
        """Encode the text. Raises UnicodeEncodeError for a character this encoding lacks."""
        return self.mark + text.encode(self.name)


def detect_encoding(data: bytes, *, whole: bool = True) -> Encoding | None:
    """Detect the encoding, or None if it is not text. A sample (not `whole`) may end inside a character."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            text = _try_decode(data.removeprefix(mark), name, whole=whole)
            return None if text and "\0" in text else Encoding(name=name, mark=mark, exact=text is not None)
    if b"\0" in data:
        return None
    if _try_decode(data, "utf-8", whole=whole) is not None:
        return Encoding()
    return _detect_legacy(data)


def _try_decode(data: bytes, name: str, *, whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)().decode(data, final=whole)
    except UnicodeDecodeError:
        return None


def _detect_legacy(data: bytes) -> Encoding | None:
    sample = data[:SAMPLE_BYTES]
    if sum(byte in _BINARY for byte in sample) > len(sample) * 0.01:
        return None
    if _is_mostly_utf8(sample):
        return Encoding(exact=False)
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    guess = best.encoding if best and not best.encoding.startswith(_WESTERN) else "cp1252"
    for name in (guess, "cp1252", "latin-1"):
        try:
            if data.decode(name).encode(name) == data:
                return Encoding(name=name)
        except (UnicodeError, LookupError):
            continue
    return None


def _is_mostly_utf8(sample: bytes) -> bool:
    """Return True for UTF-8 with a few bad bytes: most of the non-ASCII bytes decode well."""
    text = sample.decode("utf-8", "replace")
    spoilt = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - spoilt
    return good > 4 * spoilt


def detect_newline(text: str) -> str:
    """Detect the line end of a text: CRLF only if every line has it."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf and crlf == text.count("\n") else "\n"


MAX_PICTURE_BYTES = 5 * 1024 * 1024
_KINDS = (  # First bytes, description, and the media type if models can read the image.
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", "image/png"),
    (b"\xff\xd8\xff", "a JPEG picture", "image/jpeg"),
    (b"GIF87a", "a GIF picture", "image/gif"),
    (b"GIF89a", "a GIF picture", "image/gif"),
    (b"%PDF-", "a PDF document", None),
    (b"PK\x03\x04", "a ZIP archive (or an office document)", None),
    (b"\x1f\x8b", "gzip data", None),
    (b"BZh", "bzip2 data", None),
    (b"\xfd7zXZ", "xz data", None),
    (b"\x28\xb5\x2f\xfd", "zstandard data", None),
    (b"\x7fELF", "an executable", None),
    (b"SQLite format 3\0", "an SQLite database", None),
    (b"\0asm", "a WebAssembly module", None),
)


def _find_kind(data: bytes) -> tuple[str, str | None]:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "a WebP picture", "image/webp"
    return next(((words, media) for start, words, media in _KINDS if data.startswith(start)), ("binary data", None))


def describe_kind(data: bytes) -> str:
    return _find_kind(data)[0]


def find_media_type(data: bytes) -> str | None:
    """Find the media type of an image that models can read, by its first bytes. Returns None for other data."""
    return _find_kind(data)[1]


def read_picture(file: BinaryIO) -> tuple[str, ImagePart] | None:
    """Return a description and the image, or None. Rewinds the file."""
    start = file.read(16)
    media = find_media_type(start)
    data = start + file.read(MAX_PICTURE_BYTES) if media else b""
    file.seek(0)
    if media is None or len(data) > MAX_PICTURE_BYTES:
        return None
    part = ImagePart(media_type=media, data=base64.b64encode(data).decode("ascii"))
    return f"{describe_kind(start)} of {len(data):,} bytes", part


MAX_PIECE_CHARS = 1024 * 1024  # A long line is read in pieces of this size.
NOTE_CHARS, NOTE_LINES = 400, 3


class LineRange(Data, frozen=True):
    """Lines from `first` to `last`, inclusive, counting from 1. `numbered` puts a number before each line."""

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
    """The text that was read, as displayed. `content` holds the file's bytes if all of it was read."""

    text: str
    count: int
    notes: tuple[str, ...] = ()
    content: bytes | None = None

    def render(self) -> str:
        return append_notes(self.text, self.notes)


async def read_text(
    given: str, file: BinaryIO, wanted: LineRange, settings: ToolSettings, ledger: EditLedger
) -> Excerpt:
    """Read a range of lines for the model. Raises ToolFailure: BinaryFile, FileTooLarge, InvalidLineRange."""
    limit, content = settings.read_file.max_bytes, None
    if os.fstat(file.fileno()).st_size > limit and not wanted.whole:
        excerpt = await _read_stream(given, file, wanted, settings.output)
    else:
        content = read_whole(given, file, limit)
        encoding = detect_text_encoding(given, content, len(content))
        part = _slice_text(encoding.decode(content), wanted)
        excerpt = _make_excerpt(given, part, wanted, settings.output, encoding)
    ledger.remember_file(Path(file.name), os.fstat(file.fileno()), content)
    return msgspec.structs.replace(excerpt, content=content)


def read_whole(given: str, file: BinaryIO, limit: int) -> bytes:
    """Read a file to its end. Raises ToolFailure("FileTooLarge")."""
    content = file.read(limit + 1)
    if len(content) > limit:
        size = max(len(content), os.fstat(file.fileno()).st_size)
        raise ToolFailure(
            "FileTooLarge",
            f"{given} has {size:,} bytes; files over {limit:,} bytes are not read whole. "
            "Read a part with startLine and endLine, or find the place with grep.",
        )
    return content


def read_whole_text(given: str, file: BinaryIO, limit: int) -> str:
    """Read the text of a file to its end. Raises ToolFailure: BinaryFile, FileTooLarge."""
    content = read_whole(given, file, limit)
    return detect_text_encoding(given, content, len(content)).decode(content)


async def _read_stream(given: str, file: BinaryIO, wanted: LineRange, limits: OutputSettings) -> Excerpt:
    sample = file.read(SAMPLE_BYTES)
    encoding = detect_text_encoding(given, sample, os.fstat(file.fileno()).st_size, whole=False)
    file.seek(len(encoding.mark))
    reader = io.TextIOWrapper(file, encoding.name, "replace", newline="\n")
    part = await _take_lines(reader, wanted, limits)
    reader.detach()  # The caller closes the file.
    return _make_excerpt(given, part, wanted, limits, encoding)


async def _take_lines(reader: io.TextIOWrapper, wanted: LineRange, limits: OutputSettings) -> tuple[str, int | None]:
    """Take as many of the wanted lines as can be shown, and the number of all lines, or None before the end."""
    end = wanted.first + limits.max_lines + 1  # One line more than shown tells that more follow.
    end = end if wanted.last is None else min(end, wanted.last + 1)
    number, text, piece = 1, "", "\n"
    while number < end and len(text) <= limits.max_chars:
        if not (following := reader.readline(MAX_PIECE_CHARS)):
            return text, number - piece.endswith("\n")
        piece = following
        if number >= wanted.first:
            text += piece
        number += piece.endswith("\n")
        if number % 1000 == 0:
            await asyncio.sleep(0)  # This lets the reading of a long file be cancelled.
    return text, None


def render_lines(what: str, text: str, wanted: LineRange, limits: OutputSettings) -> str:
    """Render a range of lines within the limits, with where to continue reading. Raises InvalidLineRange."""
    return _make_excerpt(what, _slice_text(text, wanted), wanted, limits, Encoding()).render()


def detect_text_encoding(given: str, data: bytes, size: int, *, whole: bool = True) -> Encoding:
    encoding = detect_encoding(data, whole=whole)
    if encoding is None:
        raise ToolFailure("BinaryFile", f"{given} is not text: it is {describe_kind(data)} of {size:,} bytes.")
    return encoding


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _slice_text(text: str, wanted: LineRange) -> tuple[str, int | None]:
    """Return the requested lines and the number of all lines."""
    if wanted.whole:
        return text, count_lines(text)
    first, last = (min(number, len(text)) for number in (wanted.first - 1, wanted.last or len(text)))
    return "".join(islice(io.StringIO(text, newline="\n"), first, last)), count_lines(text)


def _make_excerpt(
    given: str, part: tuple[str, int | None], wanted: LineRange, limits: OutputSettings, encoding: Encoding
) -> Excerpt:
    text, total = show_controls(part[0]), part[1]
    if wanted.last is not None and wanted.last < wanted.first:
        raise ToolFailure("InvalidLineRange", f"startLine {wanted.first} is after endLine {wanted.last}.")
    if total is not None and wanted.first > max(total, 1):
        lines = format_count(total, "line")
        raise ToolFailure("InvalidLineRange", f"startLine {wanted.first} is past the end: {given} has {lines}.")
    if wanted.numbered:
        text = _number_lines(text, wanted.first)
    chars, lines_allowed = max(limits.max_chars - NOTE_CHARS, 1), max(limits.max_lines - NOTE_LINES, 1)
    count = total if total is not None and wanted.whole else count_lines(text)
    fits = len(text) <= chars and count <= lines_allowed
    shown = text if fits else take_head(text, chars, lines_allowed)
    notes = [] if fits else [_describe_cut(shown, wanted.first, total)]
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

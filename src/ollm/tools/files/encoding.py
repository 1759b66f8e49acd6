"""Bytes of a file as text, and back exactly (T2.7, T2.9): byte order marks, UTF-16, legacy encodings, line ends."""

from __future__ import annotations

import codecs

from ollm.domain.struct import Data

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
    "utf_",  # without a mark and without a zero byte
)


class Encoding(Data, frozen=True):
    """How text is in a file. `exact` is False when decoding lost something, so that it must not be written back."""

    name: str = "utf-8"
    mark: bytes = b""
    exact: bool = True

    @property
    def label(self) -> str:
        """For people and models; empty for plain UTF-8."""
        if not self.exact:
            return f"{self.name} with invalid bytes"
        if self.mark:
            return f"{self.name} with byte order mark"
        return "" if self.name == "utf-8" else self.name

    def decode(self, data: bytes) -> str:
        return data.removeprefix(self.mark).decode(self.name, "strict" if self.exact else "replace")

    def encode(self, text: str) -> bytes:
        """Raises UnicodeEncodeError for a character this encoding does not have."""
        return self.mark + text.encode(self.name)


def detect_encoding(data: bytes, *, whole: bool = True) -> Encoding | None:
    """How these bytes are text, or None when they are not. A sample (not `whole`) may be cut inside a character."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _check_encoding(Encoding(name=name, mark=mark), data, whole=whole)
    if b"\0" in data:
        return _detect_utf16(data, whole=whole)
    if _try_decode(data, "utf-8", whole=whole) is not None:
        return Encoding()
    return _detect_legacy(data)


def _check_encoding(encoding: Encoding, data: bytes, *, whole: bool) -> Encoding | None:
    text = _try_decode(data.removeprefix(encoding.mark), encoding.name, whole=whole)
    if text is None:
        return Encoding(name=encoding.name, mark=encoding.mark, exact=False)
    return None if "\0" in text else encoding


def _try_decode(data: bytes, name: str, *, whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)().decode(data, final=whole)
    except UnicodeDecodeError:
        return None


def _detect_utf16(data: bytes, *, whole: bool) -> Encoding | None:
    """UTF-16 without a mark: text in which every second byte of most characters is zero."""
    even, odd = data[0::2].count(0), data[1::2].count(0)
    half = len(data) // 2
    for name, here, there in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if half >= 4 and here > half * 0.7 and not there and len(data) % 2 == 0:
            return _check_encoding(Encoding(name=name), data, whole=whole)
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
    """UTF-8 with a few bytes spoilt, rather than another encoding: most of what is not ASCII decodes well."""
    text = sample.decode("utf-8", "replace")
    spoilt = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - spoilt
    return good > 4 * spoilt


def detect_newline(text: str) -> str:
    """The line end a text uses: CRLF only when every line has it."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf and crlf == text.count("\n") else "\n"

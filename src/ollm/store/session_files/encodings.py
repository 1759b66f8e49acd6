"""Session files that another program saved in another encoding: read as the UTF-8 they were before."""

from __future__ import annotations

import codecs
import os
from typing import BinaryIO

from ollm.store.session_files.damage import MAX_BYTES

_CHUNK_BYTES = 1 << 20
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_BYTES = ((b"{\0\0\0", "utf-32-le"), (b"\0\0\0{", "utf-32-be"), (b"{\0", "utf-16-le"), (b"\0{", "utf-16-be"))


def detect_encoding(beginning: bytes) -> tuple[str, int] | None:
    """The encoding of a file that begins so, and the length of its mark; None for plain UTF-8."""
    for mark, name in _MARKS:
        if beginning.startswith(mark):
            return name, len(mark)
    return next(((name, 0) for first, name in _FIRST_BYTES if beginning.startswith(first)), None)


def convert_to_utf8(file: BinaryIO) -> BinaryIO | None:
    """The same text as UTF-8 in a file without a name; None when it is UTF-8 without a mark already."""
    descriptor = file.fileno()
    found = detect_encoding(os.pread(descriptor, 4, 0))
    if found is None:
        return None
    import tempfile

    name, place = found
    decoder = codecs.getincrementaldecoder(name)("replace")
    converted = tempfile.TemporaryFile()  # noqa: SIM115 - the reader closes it
    while place < MAX_BYTES and (chunk := os.pread(descriptor, _CHUNK_BYTES, place)):
        place += len(chunk)
        converted.write(decoder.decode(chunk).encode("utf-8", "replace"))
    converted.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
    converted.flush()
    return converted

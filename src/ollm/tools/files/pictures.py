"""Files that are not text: what they are by their first bytes, and pictures a model can be shown (T2.7)."""

from __future__ import annotations

import base64
from typing import BinaryIO

from ollm.domain.messages import ImagePart
from ollm.domain.struct import Data

MAX_PICTURE_BYTES = 5 * 1024 * 1024
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF87a", "a GIF picture"),
    (b"GIF89a", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an office document)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
    (b"\x7fELF", "an executable"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
)
_MEDIA = {
    "a PNG picture": "image/png",
    "a JPEG picture": "image/jpeg",
    "a GIF picture": "image/gif",
    "a WebP picture": "image/webp",
}


class Picture(Data, frozen=True):
    words: str
    part: ImagePart


def describe_kind(data: bytes) -> str:
    """What bytes are, in words."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "a WebP picture"
    return next((words for start, words in _KINDS if data.startswith(start)), "binary data")


def find_media_type(data: bytes) -> str | None:
    """The media type of a picture that models read, by its first bytes; None for anything else."""
    return _MEDIA.get(describe_kind(data))


def read_picture(file: BinaryIO) -> Picture | None:
    """The file as a picture, or None (and then it is at its start again)."""
    start = file.read(16)
    media = find_media_type(start)
    data = start + file.read(MAX_PICTURE_BYTES) if media else b""
    file.seek(0)
    if media is None or len(data) > MAX_PICTURE_BYTES:
        return None
    part = ImagePart(media_type=media, data=base64.b64encode(data).decode("ascii"))
    return Picture(words=f"{describe_kind(start)} of {len(data):,} bytes", part=part)

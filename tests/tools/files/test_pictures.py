"""Files that are not text: what they are by their first bytes, and pictures a model can be shown."""

import base64
import io

import pytest

from ollm.tools.files.pictures import MAX_PICTURE_BYTES, describe_kind, read_picture

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PNG, "a PNG picture"),
        (b"\xff\xd8\xff\xe0", "a JPEG picture"),
        (b"GIF87a", "a GIF picture"),
        (b"GIF89a", "a GIF picture"),
        (b"RIFF1234WEBPxx", "a WebP picture"),
        (b"RIFF1234WAVExx", "binary data"),
        (b"%PDF-1.7", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive (or an office document)"),
        (b"\x1f\x8b\x08", "gzip data"),
        (b"BZh9", "bzip2 data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"\x28\xb5\x2f\xfd", "zstandard data"),
        (b"\x7fELF", "an executable"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0asm", "a WebAssembly module"),
        (b"", "binary data"),
        (b"\0\0\0", "binary data"),
    ],
)
def test_bytes_are_named_by_how_they_begin(data: bytes, words: str) -> None:
    assert describe_kind(data) == words


@pytest.mark.parametrize(
    ("start", "media"),
    [(PNG, "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF89a", "image/gif"), (b"RIFF1234WEBP", "image/webp")],
)
def test_a_picture_is_handed_over_whole(start: bytes, media: str) -> None:
    data = start + b"x" * 100

    found = read_picture(io.BytesIO(data))

    assert found is not None
    assert (found.part.media_type, base64.b64decode(found.part.data)) == (media, data)
    assert found.words == f"{describe_kind(start)} of {len(data)} bytes"


@pytest.mark.parametrize("data", [b"", b"text", b"%PDF-1.7", b"\x7fELF"])
def test_what_is_no_picture_is_at_its_start_again(data: bytes) -> None:
    file = io.BytesIO(data)

    assert read_picture(file) is None
    assert file.tell() == 0


@pytest.mark.parametrize(("size", "shown"), [(MAX_PICTURE_BYTES, True), (MAX_PICTURE_BYTES + 1, False)])
def test_so_large_a_picture_may_be(size: int, shown: bool) -> None:
    file = io.BytesIO(PNG + b"x" * (size - len(PNG)))

    assert (read_picture(file) is not None) is shown
    assert file.tell() == 0
    assert MAX_PICTURE_BYTES == 5 * 1024 * 1024

"""Files as an editor has them: what differs from disk counts, in the file's own encoding."""

from pathlib import Path

import msgspec
import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Location
from ollm.system.paths import Boundary
from ollm.tools.files.file_change import load_buffers, write_buffer
from ollm.tools.framework.base import ToolContext


class Buffers:
    """An editor with these texts, by the name of the file."""

    writes = True

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.written: dict[str, str] = {}
        self.silent_about: set[str] = set()

    def withholds(self, path: Path) -> bool:
        return path.name in self.silent_about

    async def read(self, path: Path) -> str | None:
        return self.texts.get(path.name)

    async def write(self, path: Path, text: str) -> bool:
        self.written[path.name] = text
        return True


def context(directory: Path, editor: Buffers) -> ToolContext:
    return ToolContext(boundary=Boundary.around(directory), editor=editor)


@pytest.mark.parametrize(
    ("saved", "shown", "unsaved"),
    [
        (b"a\n", "a\n", None),
        (b"a\r\n", "a\n", None),
        (b"\xef\xbb\xbfa\n", "a\n", None),
        (b"a\n", "b\n", b"b\n"),
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("Grüße aus Köln\n".encode("latin-1"), "Köln!\n", "Köln!\n".encode("latin-1")),
        ("Grüße aus Köln\n".encode("latin-1"), "→\n", "→\n".encode()),
    ],
)
async def test_what_is_not_saved_is_bytes_of_that_file(
    tmp_path: Path, saved: bytes, shown: str, unsaved: bytes | None
) -> None:
    (tmp_path / "f").write_bytes(saved)
    found = await load_buffers(context(tmp_path, Buffers(f=shown)), [Location(target="f")])

    assert found.buffers == {tmp_path / "f": unsaved}
    with found.open_file("f") as file:
        assert file.read() == (saved if unsaved is None else unsaved)


async def test_no_text_no_file_and_no_buffer_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0\1\2\3" * 50)
    (tmp_path / "unknown").write_text("x")
    places = [Location(target=name) for name in ("binary", "unknown", "missing", ".", "../outside", "https://x")]
    found = await load_buffers(context(tmp_path, Buffers(binary="text", missing="x")), places)

    assert found.buffers == {}


async def test_only_a_file_the_editor_has_is_changed_there(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    editor = Buffers(f="a")
    found = await load_buffers(context(tmp_path, editor), [Location(target="f")])

    assert await write_buffer(found, tmp_path / "f", "ä\n".encode())
    assert not await write_buffer(found, tmp_path / "g", b"x")
    assert not await write_buffer(msgspec.structs.replace(found, editor=None), tmp_path / "f", b"x")
    assert editor.written == {"f": "ä\n"}
    editor.silent_about.add("f")
    with pytest.raises(ToolFailure, match="does not answer"):
        await write_buffer(found, tmp_path / "f", b"y")
    assert editor.written == {"f": "ä\n"}

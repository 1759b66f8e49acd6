"""T3: write_file through dispatch, on disk and in an editor that has the file open."""

from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Location
from ollm.services.edit_ledger import EditLedger
from ollm.system.paths import Boundary
from ollm.tools.files.file_change import (
    MAX_DIFF_LINES,
    MAX_SHOWN_CHARS,
    load_buffers,
    make_diff,
    read_current,
    refuse_stale,
    write_change,
)
from ollm.tools.framework.base import ToolContext
from tests.covers import covers
from tests.tools.drive import Driver, content, error


@pytest.fixture
def ledger(tmp_path: Path) -> EditLedger:
    return EditLedger(lambda: tmp_path / "undo")


@pytest.fixture
def drive(workspace: Path, ledger: EditLedger) -> Driver:
    driver = Driver(workspace)
    driver.services.edits = ledger
    return driver


@covers("T3.1")
async def test_a_new_file_is_created_with_the_content(drive: Driver, workspace: Path) -> None:
    record = await drive("write_file", path="a.txt", content="one\ntwo\n")

    assert (workspace / "a.txt").read_bytes() == b"one\ntwo\n"
    assert content(record) == "Created a.txt: 2 lines, 8 bytes."
    assert record.result is not None
    assert "+one" in record.result.return_display
    assert [details.diff for details in drive.person.asked] == [record.result.diff]


@covers("T3.2")
async def test_an_existing_file_is_not_overwritten_unasked(drive: Driver, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old", encoding="utf-8")

    kind, message = error(await drive("write_file", path="a.txt", content="new"))

    assert kind == "FileExists"
    assert message == "a.txt exists, and overwrite is not set. Read it, then change it with edit_file."
    assert (workspace / "a.txt").read_text(encoding="utf-8") == "old"


@covers("T3.3")
async def test_overwrite_replaces_and_keeps_mode_and_line_ends(drive: Driver, workspace: Path) -> None:
    path = workspace / "run.sh"
    path.write_bytes(b"a\r\nb\r\n")
    path.chmod(0o754)

    await drive("write_file", path="run.sh", content="x\ny\n", overwrite=True)

    assert path.read_bytes() == b"x\r\ny\r\n"
    assert path.stat().st_mode & 0o777 == 0o754


@covers("T3.3", "T2.9")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
async def test_overwrite_keeps_the_encoding(drive: Driver, workspace: Path, encoding: str) -> None:
    path = workspace / "a.txt"
    path.write_bytes("Grüße, schöne Welt über alles\n".encode(encoding))

    await drive("write_file", path="a.txt", content="Ärger\n", overwrite=True)

    assert path.read_bytes() == "Ärger\n".encode(encoding)


@covers("T3.3")
async def test_text_the_encoding_does_not_have_is_refused_and_nothing_written(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.txt"
    old = "Grüße, schöne Welt über alles\n".encode("cp1252")
    path.write_bytes(old)

    kind, message = error(await drive("write_file", path="a.txt", content="漢字", overwrite=True))

    assert kind == "EncodingError"
    assert "漢" in message
    assert path.read_bytes() == old


async def test_half_a_surrogate_pair_is_refused_and_nothing_written(drive: Driver, workspace: Path) -> None:
    kind, _ = error(await drive("write_file", path="a.txt", content="x\ud800"))

    assert kind == "EncodingError"
    assert not (workspace / "a.txt").exists()


@covers("T3.4")
async def test_missing_parents_are_created(drive: Driver, workspace: Path) -> None:
    await drive("write_file", path="a/b/c.txt", content="x")

    assert (workspace / "a/b/c.txt").read_text(encoding="utf-8") == "x"


async def test_a_file_changed_since_it_was_read_is_not_overwritten(drive: Driver, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one", encoding="utf-8")
    await drive("read_file", path="a.txt")
    path.write_text("two", encoding="utf-8")

    kind, message = error(await drive("write_file", path="a.txt", content="x", overwrite=True))
    assert kind == "FileChanged"
    assert "two" in message
    assert path.read_text(encoding="utf-8") == "two"

    content(await drive("write_file", path="a.txt", content="x", overwrite=True))
    assert path.read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize(("size", "shown"), [(MAX_SHOWN_CHARS, True), (MAX_SHOWN_CHARS + 1, False)])
def test_a_long_file_that_others_changed_is_to_be_read_again(
    context: ToolContext, workspace: Path, ledger: EditLedger, size: int, shown: bool
) -> None:
    path = workspace / "f"
    path.write_bytes(b"before")
    ledger.remember_file(path, path.stat(), b"before")
    path.write_bytes(b"x" * size)
    now = read_current(context, "f")
    assert now is not None

    with pytest.raises(ToolFailure) as caught:
        refuse_stale(context, ledger, "f", now)
    assert caught.value.message.endswith("x" if shown else "Read it again, then redo the change.")


async def test_a_change_that_fails_leaves_no_copy_to_undo_with(
    context: ToolContext, workspace: Path, ledger: EditLedger, tmp_path: Path
) -> None:
    (workspace / "f").write_bytes(b"there already")

    with pytest.raises(ToolFailure):
        await write_change(context, ledger, "f", None, b"new")
    assert (workspace / "f").read_bytes() == b"there already"
    assert [path for path in (tmp_path / "undo").rglob("*") if path.is_file()] == []


def test_a_diff_that_nobody_would_read_is_counted() -> None:
    before = "".join(f"a{number}\n" for number in range(MAX_DIFF_LINES + 1))

    assert make_diff("f", before, "x\n") == "--- f\n+++ f\n(4,001 lines become 1)\n"
    assert make_diff("f", "same\n", "same\n") == ""
    assert make_diff("f", "", "new\n") == "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+new\n"


class Buffers:
    """An editor with these texts, by the name of the file."""

    writes = True

    def __init__(self, **texts: str) -> None:
        self.texts = texts

    def withholds(self, path: Path) -> bool:
        return False

    async def read(self, path: Path) -> str | None:
        return self.texts.get(path.name)

    async def write(self, path: Path, text: str) -> bool:
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

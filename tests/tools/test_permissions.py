"""What an ordinary user may not touch is answered by path and reason (T12.2)."""

import asyncio
from pathlib import Path

from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.tools.drive import Driver, error


@covers("T12.2")
def test_a_file_that_may_not_be_read_is_named_with_the_reason() -> None:
    def body(workspace: Path) -> None:
        (workspace / "secret.txt").write_text("x", encoding="utf-8")
        (workspace / "secret.txt").chmod(0)
        drive = Driver(workspace)

        for tool, more in (("read_file", {}), ("edit_file", {"edits": [{"target": "x", "replacement": "y"}]})):
            kind, message = error(asyncio.run(drive(tool, path="secret.txt", **more)))
            assert kind == "PermissionDenied"
            assert "secret.txt" in message
            assert "permission denied" in message

    as_ordinary_user(body)


@covers("T12.2", "T3.8")
def test_a_directory_that_may_not_be_written_keeps_its_files() -> None:
    def body(workspace: Path) -> None:
        (workspace / "locked").mkdir()
        (workspace / "locked" / "a.txt").write_text("old", encoding="utf-8")
        (workspace / "locked").chmod(0o500)
        drive = Driver(workspace)

        for path in ("locked/new.txt", "locked/a.txt", "locked/sub/new.txt"):
            kind, message = error(asyncio.run(drive("write_file", path=path, content="x", overwrite=True)))
            assert kind == "PermissionDenied"
            assert path in message
        assert [found.name for found in (workspace / "locked").iterdir()] == ["a.txt"]
        assert (workspace / "locked" / "a.txt").read_text(encoding="utf-8") == "old"

    as_ordinary_user(body)

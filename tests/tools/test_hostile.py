"""Calls that aim at what is not there, not theirs or not a file."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ollm.services.background_jobs import BackgroundJobs
from ollm.system.processes import ProcessHost
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.tools.drive import Driver, content, error

EDITS = [{"target": "a", "replacement": "b"}]

CALLS: dict[str, Any] = {
    "read_file": lambda path: {"path": path},
    "read_many_files": lambda path: {"paths": [path]},
    "write_file": lambda path: {"path": path, "content": "y", "overwrite": True},
    "edit_file": lambda path: {"path": path, "edits": EDITS},
    "glob": lambda path: {"pattern": "*", "path": path},
    "grep": lambda path: {"pattern": "x", "path": path},
    "ls": lambda path: {"path": path},
    "shell": lambda path: {"command": "touch ran", "cwd": path},
}

FILES = ("read_file", "read_many_files", "write_file", "edit_file")

READERS = ("read_file", "read_many_files", "glob", "grep", "ls")

WRITERS = ("write_file", "edit_file", "shell")


@pytest.fixture
async def drive(workspace: Path, tmp_path: Path) -> AsyncIterator[Driver]:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("a secret x\n", encoding="utf-8")
    (workspace / "dir").mkdir()
    (workspace / "file.txt").write_text("a text x\n", encoding="utf-8")
    (workspace / "out").symlink_to(tmp_path / "outside")
    (workspace / "loop").symlink_to("loop")
    (workspace / "zero").symlink_to("/dev/zero")
    os.mkfifo(workspace / "pipe")
    driver, host = Driver(workspace), ProcessHost()
    driver.services.jobs = jobs = BackgroundJobs(host)
    yield driver
    await jobs.close()
    await host.close()


def repr_of(value: object) -> str:
    return repr(value)[:20]


def state(workspace: Path) -> list[tuple[str, int, int]]:
    """Every name with its size and time; links are not followed."""
    found = sorted(workspace.parent.rglob("*"))
    return [(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in found]


async def refused(drive: Driver, tool: str, path: str) -> str:
    """The kind of error, given soon and without a trace on the disk."""
    before = state(drive.workspace)
    async with asyncio.timeout(20):
        kind, message = error(await drive(tool, **CALLS[tool](path)))
    assert state(drive.workspace) == before
    assert "secret" not in message.replace("secret.txt", "")
    return kind


@covers("T12.1")
@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("path", ["a\0b", "", "x" * 5000])
async def test_what_is_no_path_is_a_validation_error(drive: Driver, tool: str, path: str) -> None:
    assert await refused(drive, tool, path) == "ValidationError"


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("path", ["missing", "~", "$HOME", "file.txt/below", "loop"])
async def test_what_is_not_there_is_not_found(drive: Driver, tool: str, path: str) -> None:
    if tool == "write_file" and path not in ("file.txt/below", "loop"):
        assert content(await drive(tool, **CALLS[tool](path)))
        assert (drive.workspace / path).read_text(encoding="utf-8") == "y"
    else:
        assert await refused(drive, tool, path) == "FileNotFound"


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("path", ["pipe", "zero"])
async def test_pipes_and_devices_are_never_opened(drive: Driver, tool: str, path: str) -> None:
    outside = path == "zero" and tool in WRITERS
    expected = "OutsideWorkspace" if outside else "ValidationError" if tool == "shell" else "NotARegularFile"

    assert await refused(drive, tool, path) == expected


@pytest.mark.parametrize(("tool", "path"), [*((tool, "dir") for tool in FILES), ("write_file", "new/")])
async def test_a_directory_is_no_file(drive: Driver, tool: str, path: str) -> None:
    assert await refused(drive, tool, path) == "IsDirectory"


WRONG: list[tuple[str, dict[str, Any], str]] = [
    *((tool, {}, "ValidationError") for tool in CALLS if tool != "ls"),
    ("glob", {"pattern": ""}, "ValidationError"), ("glob", {"pattern": "*", "sort": "size"}, "ValidationError"),
    ("glob", {"pattern": "*", "path": "file.txt"}, "ValidationError"), ("glob", {"pattern": "["}, "InvalidPattern"),
    ("glob", {"pattern": "a\0b"}, "InvalidPattern"), ("glob", {"pattern": "../*"}, "InvalidPattern"),
    ("glob", {"pattern": "/etc/*"}, "OutsideWorkspace"), ("grep", {"pattern": ""}, "ValidationError"),
    ("grep", {"pattern": "x", "contextLines": -1}, "ValidationError"), ("grep", {"pattern": "("}, "InvalidPattern"),
    ("grep", {"pattern": "x", "output": "all"}, "ValidationError"), ("grep", {"pattern": "a\0b"}, "InvalidPattern"),
    ("grep", {"pattern": "x", "fileType": "pythn"}, "ValidationError"),
    ("grep", {"pattern": "x", "filePattern": "["}, "InvalidPattern"), ("read_many_files", {"paths": []}, "ValidationError"),
    ("read_many_files", {"paths": ["*.nothing"]}, "FileNotFound"), ("read_many_files", {"paths": ["x["]}, "InvalidPattern"),
    ("shell", {"command": "touch ran", "timeout": float("inf")}, "ValidationError"),
    ("shell", {"command": "touch ran", "timeout": "NaN"}, "ValidationError"),
    ("shell", {"command": "touch ran", "id": "job-1"}, "ValidationError"),
    ("shell", {"command": "touch ran", "action": "stop"}, "ValidationError"),
    ("shell", {"command": "  "}, "ValidationError"), ("shell", {"command": "touch ran\0"}, "ValidationError"),
    ("shell", {"command": "touch ran #" + "x" * 200_000}, "ValidationError"),
    ("shell", {"command": ["touch", "ran"]}, "ValidationError"), ("shell", {"action": "read"}, "ValidationError"),
    ("shell", {"id": "job-1", "action": "burn"}, "ValidationError"),
]  # fmt: skip


@covers("T12.1")
@pytest.mark.parametrize(("tool", "arguments", "kind"), WRONG, ids=repr_of)
async def test_arguments_that_make_no_sense_run_nothing(
    drive: Driver, tool: str, arguments: dict[str, Any], kind: str
) -> None:
    before = state(drive.workspace)

    assert error(await drive(tool, **arguments))[0] == kind
    assert state(drive.workspace) == before


@covers("T12.2", "T3.8")
@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("way", ["out", "../outside", "dir/../out"])
async def test_a_way_out_is_asked_about_for_reading_and_refused_for_the_rest(
    drive: Driver, tool: str, way: str
) -> None:
    drive.person.approves = False

    kind = await refused(drive, tool, f"{way}/secret.txt" if tool in FILES else way)

    assert kind == ("Denied" if tool in READERS else "OutsideWorkspace")
    assert len(drive.person.asked) == (tool in READERS)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("glob", {"pattern": "*", "maxResults": "N"}),
        ("grep", {"pattern": "x", "maxResults": "N"}),
        ("ls", {"recursive": True, "maxDepth": "N"}),
        ("read_many_files", {"paths": ["file.txt"], "maxTokens": "N"}),
        ("read_file", {"path": "file.txt", "startLine": "N"}),
        ("shell", {"command": "touch ran", "timeout": "N"}),
        ("shell", {"command": "touch ran", "idleTimeout": "N"}),
    ],
)
@pytest.mark.parametrize("number", [0, -1, float("nan"), "many", None, [], 10**400], ids=repr_of)
async def test_a_number_that_makes_no_sense_runs_nothing(
    drive: Driver, tool: str, arguments: dict[str, Any], number: Any
) -> None:
    before = state(drive.workspace)
    given = {name: number if value == "N" else value for name, value in arguments.items()}

    record = await drive(tool, **given)

    if number is None or (number == 10**400 and tool != "shell"):
        assert record.error is None or record.error.type == "InvalidLineRange"  # unset, or more than there is
    else:
        assert error(record)[0] == "ValidationError"
        assert state(drive.workspace) == before


@pytest.mark.parametrize("tool", FILES)
async def test_bytes_that_are_no_text_are_shown_as_such_or_left_alone(drive: Driver, tool: str) -> None:
    (drive.workspace / "odd.txt").write_bytes(b"caf\xe9 \xff\xfe a \x81 \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n")
    (drive.workspace / "binary").write_bytes(bytes(range(256)) * 8)
    drive.person.approves = tool != "write_file"

    record = await drive(tool, **CALLS[tool]("binary"))

    assert error(record)[0] in ("BinaryFile", "Denied")
    assert (drive.workspace / "binary").read_bytes() == bytes(range(256)) * 8
    if tool.startswith("read"):
        assert "caf" in content(await drive(tool, **CALLS[tool]("odd.txt")))


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

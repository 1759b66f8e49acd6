"""`sessions delete`, `clear`, `cleanup`, `restore`, `rename` and `archive`."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.sessions.samples import json_of
from tests.covers import covers
from tests.store.sessions.support import Home, said


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


@covers("H491", "S1.6", "H113")
def test_delete_asks_and_without_a_terminal_needs_yes(home):
    session_id = home.recorded("x")
    refused = ollm("sessions", "delete", session_id, home=home.root)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert home.document(session_id).exists()
    assert ollm("sessions", "delete", session_id, "--yes", home=home.root).returncode == 0
    assert list(home.sessions.iterdir()) == []
    assert ollm("sessions", "view", session_id, home=home.root).returncode == 1


def test_a_session_in_use_is_not_deleted_and_its_owner_named(home):
    async def work() -> None:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("x"))
        done = ollm("sessions", "delete", session_id, "--yes", home=home.root)
        assert done.returncode == 1
        assert f"process {os.getpid()}" in done.stderr
        (line,) = json_of("sessions", "list", "--json", home=home)
        assert line["status"] == "active"

    asyncio.run(work())


def test_what_somebody_else_put_beside_a_session_is_neither_deleted_nor_moved(home):
    session_id, other = home.recorded("x"), home.recorded("y")
    own = [
        f"{session_id}.json.damaged-2026-01-27T100000-000Z",
        f"{session_id}.journal.replaced-2026-01-27T100000-000Z-2",
    ]
    names = ["json.bak", "notes.md", "json~", "json.damaged-mine", "json.gz"]
    mine = {home.sessions / f"{found}.{end}" for found in (session_id, other) for end in names}
    mine |= {home.sessions / f".{session_id}.json.swp", home.sessions / "README"}
    for path in (*mine, *(home.sessions / name for name in own)):
        path.write_text("mine")
    (home.sessions / f"{session_id}.d").mkdir()
    done = ollm("sessions", "delete", session_id, "--yes", home=home.root)
    assert done.returncode == 0, done.stderr
    assert f"{session_id}.notes.md" in done.stderr
    home.recorded("z")
    home.settings = Home(home.root, max_sessions=1).settings
    assert home.library().enforce_limit() == [other]
    assert all(path.exists() for path in mine)
    assert ollm("sessions", "clear", "--all", "--yes", home=home.root).returncode == 0
    assert {path for path in home.sessions.iterdir() if path.is_file()} == mine
    assert {path.read_text() for path in mine} == {"mine"}


@covers("S9.4")
def test_a_session_that_goes_to_the_trash_again_takes_no_byte_from_the_one_that_is_there(home):
    old = home.recorded("old")
    trash = home.root / "trash"
    trash.mkdir()
    earlier = {trash / f"{old}.json": b"{}", trash / f"{old}.journal": b"an earlier journal\n"}
    for path, data in earlier.items():
        path.write_bytes(data)
    home.recorded("new")
    home.settings = Home(home.root, max_sessions=1).settings
    assert home.library().enforce_limit() == [old]
    assert {path.read_bytes() for path in trash.iterdir()} >= set(earlier.values())
    assert ollm("sessions", "restore", old, home=home.root).returncode == 0
    assert home.texts(old) == ["old"]


@covers("H496", "H501", "H508")
def test_clear_and_cleanup_say_what_they_take(home):
    ids = [home.recorded(str(number)) for number in range(4)]
    assert ollm("sessions", "clear", home=home.root).returncode == 2
    assert ollm("sessions", "clear", "--all", home=home.root).returncode == 2
    assert ollm("sessions", "cleanup", "--keep", "-1", home=home.root).returncode == 2
    assert ollm("sessions", "cleanup", "--keep", "2", "--yes", home=home.root).returncode == 0
    assert {line["sessionId"] for line in json_of("sessions", "list", "--json", home=home)} == set(ids[2:])
    assert ollm("sessions", "clear", "--all", "--yes", home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home) == []


@covers("S9.4", "H114", "H507")
def test_what_the_limit_removed_is_in_the_trash_and_can_be_restored(home):
    old, new = home.recorded("old"), home.recorded("new")
    home.settings = Home(home.root, max_sessions=1).settings
    assert home.library().enforce_limit() == [old]
    assert [line["sessionId"] for line in json_of("sessions", "list", "--json", home=home)] == [new]
    assert [line["sessionId"] for line in json_of("sessions", "list", "--trash", "--json", home=home)] == [old]
    assert ollm("sessions", "restore", old[:8], home=home.root).returncode == 0
    assert home.texts(old) == ["old"]
    assert ollm("sessions", "restore", old, home=home.root).returncode == 1


@covers("H533")
def test_a_deleted_session_is_gone_from_the_trash_too(home):
    old, _ = home.recorded("old"), home.recorded("new")
    home.settings = Home(home.root, max_sessions=1).settings
    home.library().enforce_limit()
    assert ollm("sessions", "delete", old, "--yes", home=home.root).returncode == 0
    assert list((home.root / "trash").iterdir()) == []


def test_rename_and_archive(home):
    session_id = home.recorded("x")
    assert ollm("sessions", "rename", session_id, "A new name", home=home.root).returncode == 0
    assert ollm("sessions", "archive", session_id, home=home.root).returncode == 0
    (line,) = json_of("sessions", "list", "--json", home=home)
    assert (line["title"], line["status"], line["messageCount"]) == ("A new name", "archived", 1)
    assert ollm("sessions", "unarchive", session_id, home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home)[0]["status"] == "closed"


def test_archive_without_an_id_means_the_newest_session_of_the_workspace(home: Home, tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    older = home.recorded("older", workspace=str(place))
    newest = home.recorded("newest", workspace=str(place))
    for verb, status in (("archive", "archived"), ("unarchive", "closed")):
        assert ollm("sessions", verb, home=home.root, cwd=place).returncode == 0
        lines = {line["sessionId"]: line["status"] for line in json_of("sessions", "list", "--json", home=home)}
        assert lines == {older: "closed", newest: status}
    nowhere = ollm("sessions", "archive", home=home.root, cwd=tmp_path)
    assert nowhere.returncode == 1
    assert "No session in" in nowhere.stderr


@pytest.fixture
def stored(inside: Inside) -> Home:
    return Home(inside.home)


def test_what_is_not_in_the_trash_cannot_be_restored(inside: Inside, stored: Home) -> None:
    session = stored.recorded("hi")

    assert "ollm sessions list --trash" in inside.fail("sessions", "restore", session, code=1)

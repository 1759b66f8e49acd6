"""Names on disk of everything that belongs to one session."""

import asyncio
from pathlib import Path

import pytest

from ollm.domain.errors import NotFoundError, StorageError, UsageError
from ollm.store.session_files.places import (
    SessionPlaces,
    list_ids_in,
    make_unreadable_error,
    match_prefix,
    parse_id,
)
from tests.store.sessions.support import Home


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "", "a" * 5000, "%2e%2e/x", "\0", "*", "C:\\x"])
async def test_an_id_that_is_no_uuid_touches_no_path(tmp_path, name):
    service = Home(tmp_path).service()
    assert await service.get_session(name) is None
    for attempt in (service.open_session, service.delete_session):
        with pytest.raises(NotFoundError, match="not a session id"):
            await attempt(name)
    assert list(tmp_path.iterdir()) == []


async def test_a_symlink_in_place_of_a_session_file_is_not_followed(tmp_path):
    home = Home(tmp_path)
    session_id = await asyncio.to_thread(home.recorded, "real")
    secret = tmp_path / "elsewhere.json"
    home.document(session_id).rename(secret)
    home.document(session_id).symlink_to(secret)
    assert "symbolic link" in home.files.read(session_id).damage
    assert [line["damaged"] for line in home.index().list_sessions()] == [
        f"{session_id}.json is a symbolic link and is not followed"
    ]
    with pytest.raises(Exception, match="not continued"):
        await home.service().open_session(session_id)
    await home.service().delete_session(session_id)
    assert secret.exists()


ONE = "aaaa0000-0000-4000-8000-000000000001"
TWO = "aaaa0000-0000-4000-8000-000000000002"
OTHER = "bbbb0000-0000-4000-8000-000000000003"


@pytest.fixture
def places(tmp_path: Path) -> SessionPlaces:
    found = SessionPlaces(directory=tmp_path / "own", legacy=tmp_path / "old", trash=tmp_path / "trash")
    for directory in (found.directory, tmp_path / "old", tmp_path / "trash"):
        directory.mkdir()
    return found


@pytest.mark.parametrize("text", ["", ONE[:-1], ONE + "0", ONE.replace("a", "g"), f"{ONE}\n{ONE}"])
def test_what_is_no_uuid_is_no_id(text: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        parse_id(text)
    assert caught.value.message == f"{text[:80]!r} is not a session id."
    assert caught.value.action == "List them with `ollm sessions list`."


def test_ids_are_listed_once_from_both_directories(places: SessionPlaces) -> None:
    assert places.legacy is not None
    for path in (places.directory / f"{ONE}.json", places.directory / f"{ONE}.journal", places.legacy / f"{ONE}.json"):
        path.write_text("")
    (places.legacy / f"{OTHER}.journal").write_text("")
    for name in ("notes.json", f"{TWO}.lock", f"{TWO}.json.damaged-1", f"x{TWO}.json"):
        (places.directory / name).write_text("")

    assert places.list_ids() == [ONE, OTHER]
    assert SessionPlaces(directory=places.directory).list_ids() == [ONE]
    assert places.shorten_id(OTHER) == OTHER[:8]
    assert places.shorten_id(TWO) == TWO


def test_every_file_with_the_name_is_found_in_every_directory(places: SessionPlaces) -> None:
    assert places.legacy is not None
    assert places.trash is not None
    wanted = [
        places.directory / f"{ONE}.json",
        places.directory / f".{ONE}.json.1-0af3.tmp",
        places.legacy / f"{ONE}.json.damaged-2026-01-27T100000-000Z-2",
        places.trash / f"{ONE}.journal",
    ]
    others = [places.directory / name for name in (f"{ONE}.json.bak", f".{ONE}.json.swp", f"{ONE}.json.damaged-mine")]
    for path in (*wanted, *others, places.directory / f"{TWO}.json"):
        path.write_text("")

    assert sorted(places.iter_files(ONE)) == sorted(wanted)
    assert list(SessionPlaces(directory=places.directory / "none").iter_files(ONE)) == []


def test_a_session_in_the_trash_is_said_to_be_there(places: SessionPlaces) -> None:
    assert places.trash is not None
    (places.directory / f"{ONE}.json").write_text("")
    (places.trash / f"{OTHER}.json").write_text("")

    assert places.find("AAAA") == ONE
    with pytest.raises(NotFoundError) as caught:
        places.find("bbbb")
    assert caught.value.message == "Session bbbb is in the trash."
    assert caught.value.action == "Restore it with `ollm sessions restore bbbb`."
    with pytest.raises(NotFoundError, match="No session starts with cccc"):
        places.find("cccc")
    with pytest.raises(NotFoundError, match="No session starts with bbbb"):
        SessionPlaces(directory=places.directory).find("bbbb")


def test_a_prefix_finds_the_one_session() -> None:
    assert match_prefix([ONE, OTHER], " BBBB ") == OTHER
    assert match_prefix([ONE, ONE], ONE) == ONE
    with pytest.raises(NotFoundError) as missing:
        match_prefix([ONE], "ffff", shown_by="ollm trash")
    assert (missing.value.message, missing.value.action) == (
        "No session starts with ffff.",
        "List them with `ollm trash`.",
    )
    with pytest.raises(UsageError) as several:
        match_prefix([TWO, ONE, OTHER], "aaaa")
    assert several.value.message == f"aaaa matches 2 sessions:\n  {ONE}\n  {TWO}"
    with pytest.raises(UsageError) as many:
        match_prefix([f"aaaa0000-0000-4000-8000-{number:012}" for number in range(30)], "aaaa")
    assert many.value.message.startswith("aaaa matches 30 sessions:")
    assert many.value.message.count("\n") == 20


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert list_ids_in(tmp_path / "missing") == []
    with pytest.raises(StorageError) as caught:
        list_ids_in(tmp_path / "file")
    assert caught.value.message == f"Cannot read {tmp_path / 'file'}: Not a directory."
    assert caught.value.action == "Move the file away, or set `sessions.dataDir` to a directory."
    refused = make_unreadable_error(tmp_path, PermissionError(13, "Permission denied"))
    assert refused.message == f"Cannot read {tmp_path}: Permission denied."
    assert refused.action == "Check the permissions of the directory."

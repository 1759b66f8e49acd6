"""Where session files are, and how damaged ones are rescued."""

import asyncio
import errno
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, NotFoundError, StorageError, UsageError, suggest_storage_fix
from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.services.chat_recording.library import check_sessions
from ollm.store.session_files import recovery
from ollm.store.session_files.places import (
    SessionPlaces,
    match_prefix,
)
from ollm.store.session_files.store import SessionFiles
from ollm.store.session_files.writer import (
    LOOK_EVERY_SECONDS,
    SessionWriter,
    make_unsaved_error,
    write_rescue_copy,
)
from tests.covers import covers
from tests.store.sessions.support import AT, Home, call, run, said


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
    with pytest.raises(Exception, match="cannot be opened"):
        await home.service().open_session(session_id)
    await home.service().delete_session(session_id)
    assert secret.exists()


ONE = "aaaa0000-0000-4000-8000-000000000001"

TWO = "aaaa0000-0000-4000-8000-000000000002"

OTHER = "bbbb0000-0000-4000-8000-000000000003"


@pytest.fixture
def places(tmp_path: Path) -> SessionPlaces:
    found = SessionPlaces(directory=tmp_path / "own", trash=tmp_path / "trash")
    for directory in (found.directory, tmp_path / "trash"):
        directory.mkdir()
    return found


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


SESSION_ID = "aaaa0000-0000-4000-8000-000000000001"


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionWriter:
    """One message on disk, one only in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    writer = Home(tmp_path).files.create({"sessionId": SESSION_ID, "startTime": AT, "lastActivity": AT})
    record(writer, 1)
    writer.deferred = True
    record(writer, 2)
    return writer


def record(writer: SessionWriter, number: int) -> None:
    import msgspec

    writer.record_message(AT, msgspec.structs.replace(said(f"message {number}"), id=number), 1)


def refusal(writer: SessionWriter) -> StorageError:
    error = StorageError("words of the error.")
    error.__cause__ = OSError(28, "No space left on device")
    return error


def test_the_copy_holds_what_is_on_disk_and_what_is_only_in_memory(writer: SessionWriter) -> None:
    path = write_rescue_copy(writer)

    assert path is not None
    assert path.parent.name.startswith("ollm-unsaved-")
    found = json.loads(path.read_bytes())
    assert [message["id"] for message in found["messages"]] == [1, 2]
    assert SESSION_ID != found["sessionId"] == path.stem, "moved to the sessions it replaces none"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_copy_that_cannot_be_written_leaves_no_folder(
    writer: SessionWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        copy = write_rescue_copy(writer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert copy is None
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_too_many_open_files_are_not_answered_with_free_disk_space() -> None:
    assert "open files" in suggest_storage_fix(OSError(errno.EMFILE, "Too many open files"))
    assert "disk" not in suggest_storage_fix(OSError(errno.EMFILE, "Too many open files"))


@pytest.mark.parametrize(("more", "what"), [(0, "1 message"), (1, "2 messages")])
def test_the_error_says_how_much_is_not_saved_and_why(writer: SessionWriter, more: int, what: str) -> None:
    for number in range(more):
        record(writer, 3 + number)

    error = make_unsaved_error(writer, refusal(writer), rescue=False)

    assert error.message == (
        f"Not saved: {what} of session {SESSION_ID}. {writer.directory} refuses it: No space left on device."
    )
    assert error.action == "Free disk space, then try again; it is kept in memory."


def test_for_a_session_that_ends_the_copy_is_named(writer: SessionWriter) -> None:
    error = make_unsaved_error(writer, refusal(writer), rescue=True)

    [copy] = Path(tempfile.gettempdir()).glob("ollm-unsaved-*/*.json")
    assert error.action == (
        f"The whole session is in {copy}; move that file to {writer.directory}: it becomes another session."
    )


def test_the_copy_is_whole_when_the_place_of_the_session_is_gone(writer: SessionWriter, tmp_path: Path) -> None:
    writer.deferred = False
    writer.fold()
    shutil.rmtree(writer.directory)
    writer.directory.write_text("a file where the directory was")
    time.sleep(2 * LOOK_EVERY_SECONDS)

    with pytest.raises(StorageError):
        record(writer, 3)
    assert not writer.is_saved
    path = write_rescue_copy(writer)

    assert path is not None
    assert [message["id"] for message in json.loads(path.read_bytes())["messages"]] == [1, 2, 3]


def test_a_session_whose_place_is_gone_while_nothing_waits_is_not_saved(writer: SessionWriter) -> None:
    writer.fold()
    shutil.rmtree(writer.directory)
    writer.directory.write_text("a file where the directory was")

    with pytest.raises(StorageError):
        writer.close()
    assert not writer.is_saved


TURNS = 60

LAST = 3 * TURNS


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session counts as large."""
    monkeypatch.setattr(recovery, "LARGE_BYTES", 0)


def asking(text: str, call_id: str) -> Message:
    return Message("assistant", (TextPart(text), ToolCallPart(call_id)), AT)


def recorded(home: Home) -> str:
    async def work() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for turn in range(1, TURNS + 1):
            await service.record_message(session_id, said(f"question {turn}"))
            answer = await service.record_message(session_id, asking(f"looking {turn}", f"c{turn}"))
            await service.record_tool_call(session_id, call(f"c{turn}", result="found", message_id=answer.id))
            await service.record_message(session_id, Message("tool", (ToolResultPart(id=f"c{turn}"),), AT))
        await service.close_session(session_id)
        return session_id

    return run(work)


def hurt(home: Home, session_id: str, old: bytes, new: bytes) -> bytes:
    data = home.document(session_id).read_bytes()
    assert old in data
    home.document(session_id).write_bytes(data.replace(old, new, 1))
    return data.replace(old, new, 1)


@covers("S10.2", "D606", "D607")
@pytest.mark.parametrize("place", ["question 2", "question 59", "found"])
def test_a_large_damaged_session_is_mended_and_gone_on_with_from_its_end(tmp_path, large, place):
    home = Home(tmp_path)
    session_id = recorded(home)
    before = hurt(home, session_id, f'"{place}"'.encode(), b'"\xff\xff"')

    async def work():
        service = home.service()
        loaded = await service.open_session(session_id)
        last = await service.record_message(session_id, said("afterwards"))
        await service.close_session(session_id)
        return loaded, last

    loaded, last = run(work)
    assert loaded.damage
    assert loaded.skipped > 0
    assert [message.id for message in loaded.session.messages] == list(range(loaded.skipped + 1, LAST + 1))
    assert {found.id for found in loaded.session.tool_calls} >= {f"c{TURNS}", f"c{TURNS - 9}"}
    assert (last.id, loaded.calls_so_far) == (LAST + 1, TURNS)
    written = json.loads(home.document(session_id).read_bytes())
    assert [message["id"] for message in written["messages"]] == list(range(1, LAST + 2))
    assert len(written["toolCalls"]) == TURNS
    (kept,) = home.sessions.glob(f"{session_id}.json.damaged-*")
    assert kept.read_bytes() == before


@covers("S9.3")
@pytest.mark.parametrize("since", [0, 7, 119])
def test_of_a_large_whole_session_what_follows_the_number_asked_for_is_given(tmp_path, large, since):
    home = Home(tmp_path)
    session_id = recorded(home)
    writer, loaded = home.files.open(session_id, since=since)
    assert loaded.skipped <= (since or LAST)
    assert [message.id for message in loaded.session.messages] == list(range(loaded.skipped + 1, LAST + 1))
    assert writer.last_number == LAST
    writer.close()


@covers("D607")
def test_the_answer_under_way_and_the_open_call_of_a_large_session_are_told_when_it_is_gone_on_with(tmp_path, large):
    home = Home(tmp_path)
    session_id = recorded(home)

    async def work():
        service = home.service()
        await service.open_session(session_id)
        answer = await service.record_message(session_id, asking("again", "c99"))
        await service.record_tool_call(session_id, call("c99", message_id=answer.id))

    run(work)  # and the process is gone
    shutil.copytree(home.root, tmp_path / "after")
    later = Home(tmp_path / "after")
    later.places.get_lock_path(session_id).unlink()
    writer, loaded = later.files.open(session_id)
    writer.close()
    assert loaded.session.messages[-1].role == "tool"
    assert loaded.session.messages[-1].id == loaded.session.messages[-2].id + 1
    assert {found.id: found.status for found in loaded.session.tool_calls}["c99"] == "interrupted"


@pytest.mark.parametrize("end", ["whole", "journal", "calls"])
def test_repairing_large_sessions_leaves_whole_ones_alone_and_mends_damaged_ones(tmp_path, large, end):
    home = Home(tmp_path)
    session_id = recorded(home)
    if end == "calls":
        hurt(home, session_id, b'"llmContent":"found"', b'"llmContent":"\xfe"')
    elif end == "journal":
        record = b'{"at":"2026-01-27T10:00:00.000Z","partial":[{"type":"text","text":"half an answ"}]}\n'
        home.journal(session_id).write_bytes(record)
    before = home.document(session_id).read_bytes()

    found = check_sessions(home.files, repair=True)

    kept = list(home.sessions.glob("*.damaged-*"))
    assert [finding.outcome for finding in found] == (["mended"] if end == "calls" else [])
    assert [path.read_bytes() for path in kept] == ([before] if end == "calls" else [])
    assert (home.document(session_id).read_bytes() == before) == (end != "calls")
    assert home.texts(session_id)[-1] == ("half an answ" if end == "journal" else "")
    assert check_sessions(home.files, repair=False) == []
    assert not list(home.sessions.glob(".*.tmp"))


@pytest.mark.parametrize("damaged", [True, False])
def test_a_large_session_that_is_open_is_reported_only_when_something_is_wrong_with_it(tmp_path, large, damaged):
    home = Home(tmp_path)
    session_id = recorded(home)
    if damaged:
        hurt(home, session_id, b'"found"', b'"\xfe"')
    holder = SessionFiles(home.places).create({"sessionId": session_id})
    holder.lock()
    try:
        with pytest.raises(BusyError):
            home.files.open(session_id)
        found = check_sessions(home.files, repair=True)
    finally:
        holder.abandon()
    assert [("not repaired" in finding.problem, finding.outcome) for finding in found] == (
        [(True, "damaged")] if damaged else []
    )


def test_a_large_session_of_a_newer_version_is_left_alone(tmp_path, large):
    home = Home(tmp_path)
    session_id = recorded(home)
    before = hurt(home, session_id, b'"schemaVersion":1', b'"schemaVersion":99')
    assert check_sessions(home.files, repair=True) == []
    assert home.document(session_id).read_bytes() == before


def test_going_on_with_a_session_takes_time_that_grows_with_its_calls_and_not_with_their_square(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded("a question")
    lines = [json.dumps(call_of(number), separators=(",", ":")) for number in range(30_000)]
    hurt(home, session_id, b'"toolCalls":[\n]', b'"toolCalls":[\n' + ",\n".join(lines).encode() + b"\n]")
    begun = time.process_time()
    writer, loaded = home.files.open(session_id)
    writer.close()
    assert len(loaded.session.tool_calls) == 30_000
    assert time.process_time() - begun < 6


def call_of(number: int) -> dict:
    known = {"id": f"c{number}", "name": "ls", "args": {}, "result": {"llmContent": "x"}, "messageId": 1}
    return {**known, "timestamp": "2026-01-27T10:00:00.000Z", "status": "ok", "error": None}


@pytest.mark.parametrize("is_large", [False, True])
def test_a_whole_session_is_opened_without_being_written(tmp_path, monkeypatch, is_large):
    if is_large:
        monkeypatch.setattr(recovery, "LARGE_BYTES", 1)
    home = Home(tmp_path)
    session_id = recorded(home)
    before = home.document(session_id).stat().st_mtime_ns

    writer, loaded = home.files.open(session_id)

    assert home.document(session_id).stat().st_mtime_ns == before
    whole = home.files.read(session_id).session
    assert writer.last_number == whole.messages[-1].id
    assert loaded.session.messages == whole.messages[loaded.skipped :]
    assert (loaded.skipped > 0) is is_large
    writer.close()
    assert home.document(session_id).stat().st_mtime_ns == before

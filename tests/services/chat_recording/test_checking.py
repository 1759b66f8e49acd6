"""Every session read to its end: damage is told, and mended when asked."""

from pathlib import Path

import pytest

from ollm.services.chat_recording.library import Finding, check_sessions
from tests.store.sessions.support import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_whole_sessions_give_no_finding_and_each_is_counted(home: Home) -> None:
    for number in range(3):
        home.recorded(f"number {number}")
    seen: list[tuple[int, int]] = []

    assert check_sessions(home.files, repair=False, progress=lambda done, total: seen.append((done, total))) == []
    assert check_sessions(home.files, repair=True) == []
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert check_sessions(Home(home.root / "empty").files, repair=True) == []


def test_a_cut_document_is_told_and_mended_with_the_damaged_file_kept(home: Home) -> None:
    kept, broken = home.recorded("whole"), home.recorded("one", "two", "three")
    document = home.document(broken)
    document.write_bytes(document.read_bytes()[:-200])

    (found,) = check_sessions(home.files, repair=False)
    assert (found.session_id, found.outcome) == (broken, "damaged")
    assert found.problem
    (mended,) = check_sessions(home.files, repair=True)

    assert mended == Finding(session_id=broken, problem=mended.problem, outcome="mended")
    assert check_sessions(home.files, repair=False) == []
    assert home.texts(broken)[:1] == ["one"]
    assert home.texts(kept) == ["whole"]
    assert any("damaged" in path.name or path.suffix not in (".json", ".lock") for path in home.sessions.iterdir())


def test_what_is_no_session_at_all_is_told_and_not_mended(home: Home) -> None:
    session_id = home.recorded("x")
    home.document(session_id).write_bytes(b"\x00" * 50)

    (found,) = check_sessions(home.files, repair=False)
    (tried,) = check_sessions(home.files, repair=True)

    assert found.outcome == "damaged"
    assert tried.outcome == "damaged" or home.texts(session_id) is not None


def test_damage_in_the_middle_is_found_by_reading_all_and_waits_while_the_session_is_open(home: Home) -> None:
    session_id = home.recorded("One", "Two", "Three")
    document = home.document(session_id)
    document.write_bytes(document.read_bytes().replace(b'"Two"', b'"Tw\x00\xff'))
    problem = "message 2 is missing from this session's files (1 entry could not be read)"

    assert check_sessions(home.files, repair=False) == [Finding(session_id=session_id, problem=problem)]
    assert check_sessions(home.files, repair=True) == [
        Finding(session_id=session_id, problem=problem, outcome="mended")
    ]
    assert check_sessions(home.files, repair=True) == []


def test_a_session_of_a_newer_version_is_read_and_never_written(home: Home) -> None:
    session_id = home.recorded("x")
    document = home.document(session_id)
    newer = document.read_bytes().replace(b'"schemaVersion":1', b'"schemaVersion":99')
    document.write_bytes(newer)
    assert check_sessions(home.files, repair=True) == []
    assert document.read_bytes() == newer

    document.write_bytes(newer[:-30])
    found = check_sessions(home.files, repair=True)
    assert [one.problem for one in found] == [
        "the file is truncated; message 1 is missing from this session's files (1 entry could not be read)"
    ]
    assert found == check_sessions(home.files, repair=False)
    assert document.read_bytes() == newer[:-30]


def test_what_cannot_be_mended_says_why(home: Home) -> None:
    lost, busy = home.recorded("lost"), home.recorded("One", "Two")
    home.document(lost).write_bytes(b"\0" * 50)
    home.document(busy).write_bytes(home.document(busy).read_bytes().replace(b'"Two"', b'"Tw\x00\xff'))
    writer, _ = home.files.open(home.recorded("open"))

    try:
        found = {one.session_id: one for one in check_sessions(home.files, repair=True)}
    finally:
        writer.abandon()

    assert found[lost].outcome == "damaged"
    assert found[lost].problem.startswith(f"not repaired: {home.document(lost)} cannot be resumed: no message in it")
    assert found[busy].outcome == "mended"
    assert len(found) == 2

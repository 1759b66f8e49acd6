"""Every session read to its end: damage is told, and mended when asked."""

from pathlib import Path

import pytest

from ollm.services.chat_recording.checking import Finding, check_sessions
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

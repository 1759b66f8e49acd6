"""Records become a session again, and what a hostile archive holds does no harm."""

import json
from pathlib import Path

import pytest

from ollm.domain.errors import DamagedError
from ollm.services.archive_shipping.pulling import write_fork, write_pulled
from ollm.store.session_files import SessionFiles, SessionPlaces
from ollm.store.team_archive.records import ArchiveRecord

SESSION = "00000000-0000-4000-8000-000000000001"
HEAD = ArchiveRecord("head", "", b'{"sessionId":"../../../etc/passwd","metadata":{"title":"T"}}')


@pytest.fixture
def files(tmp_path: Path) -> SessionFiles:
    return SessionFiles(SessionPlaces(directory=tmp_path / "sessions"))


def make(number: int, body: bytes) -> ArchiveRecord:
    return ArchiveRecord("message", str(number), body, number)


def test_a_line_that_would_break_the_document_is_left_out(files: SessionFiles) -> None:
    good = b'{"role":"user","id":1,"parts":[{"type":"text","text":"hi"}],"timestamp":""}'
    records = [HEAD, make(1, good), make(2, b'"no object"'), make(3, b"\xff\x00"), make(4, b'{"role":\n"user","id":4}')]

    write_pulled(files, SESSION, records)

    document = json.loads(files.places.get_document_path(SESSION).read_bytes())
    assert document["sessionId"] == SESSION
    assert [message["id"] for message in document["messages"]] == [1, 4]


def test_a_fork_has_its_own_id_and_says_where_it_comes_from(files: SessionFiles) -> None:
    write_fork(files, SESSION, [ArchiveRecord("file", ".json:0", b"{"), HEAD], {"sessionId": "x", "owner": "bob"})

    document = json.loads(files.places.get_document_path(SESSION).read_bytes())
    assert document["sessionId"] == SESSION
    assert document["metadata"] == {"title": "T", "forkedFrom": {"sessionId": "x", "owner": "bob"}}


def test_an_archive_that_holds_nothing_makes_no_session(files: SessionFiles) -> None:
    with pytest.raises(DamagedError):
        write_pulled(files, SESSION, [make(1, b"{}")._replace(body=None)])

    assert files.places.list_ids() == []


def test_what_breaks_off_leaves_the_session_that_was_there(files: SessionFiles) -> None:
    write_pulled(files, SESSION, [HEAD])
    before = files.places.get_document_path(SESSION).read_bytes()

    def records() -> object:
        yield HEAD
        raise ConnectionError("cut")

    with pytest.raises(ConnectionError):
        write_pulled(files, SESSION, records())  # type: ignore[arg-type]

    assert files.places.get_document_path(SESSION).read_bytes() == before
    assert [path.name for path in files.places.directory.iterdir()] == [f"{SESSION}.json"]

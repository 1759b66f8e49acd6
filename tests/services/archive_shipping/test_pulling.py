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


def test_what_was_sent_comes_back_byte_for_byte_with_gone_entries_left_out(files: SessionFiles) -> None:
    head = b'{ "sessionId":"%s" ,"metadata":{}}' % SESSION.encode()
    calls = [ArchiveRecord("call", "c1", b'{"id":"c1" }'), ArchiveRecord("call", "c2", None)]

    write_pulled(files, SESSION, [ArchiveRecord("head", "", head), make(1, b'{"id":1 }'), make(2, b"{}"), *calls])

    text = files.places.get_document_path(SESSION).read_bytes()
    assert text.startswith(head[:-1])
    assert b'{"id":1 }' in text
    assert b'{"id":"c1" }' in text
    assert b"c2" not in text
    document = json.loads(text)
    assert (len(document["messages"]), len(document["toolCalls"])) == (2, 1)


def test_a_head_on_several_lines_is_written_anew_on_one_and_none_is_made_up(files: SessionFiles) -> None:
    head = b'{"sessionId":"%s",\n"metadata":"odd","model":"m"}' % SESSION.encode()

    write_pulled(files, SESSION, [ArchiveRecord("head", "", head)])
    document = json.loads(files.places.get_document_path(SESSION).read_bytes())
    assert (document["model"], document["metadata"], document["messages"]) == ("m", {}, [])

    write_pulled(files, SESSION, [make(1, b'{"id":1}')])
    document = json.loads(files.places.get_document_path(SESSION).read_bytes())
    assert (document["sessionId"], document["messages"]) == (SESSION, [{"id": 1}])


@pytest.mark.parametrize("ends", [(".json", ".journal"), (".json",), (".journal",)])
def test_files_come_back_from_their_pieces(files: SessionFiles, ends: tuple[str, ...]) -> None:
    pieces = [ArchiveRecord("file", f"{end}:{n:08d}", f"{end} {n};".encode(), n) for end in ends for n in range(2)]

    write_pulled(files, SESSION, [*pieces, HEAD])

    found = {path.suffix: path.read_text() for path in files.places.directory.iterdir()}
    assert found == {end: f"{end} 0;{end} 1;" for end in ends}

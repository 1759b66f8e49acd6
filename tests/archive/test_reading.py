"""Reading the archive, leases, records that become a session again, and the state of a machine."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ollm.archive.connection import ArchiveTarget, open_connection
from ollm.archive.pulling import write_pulled
from ollm.archive.reading import (
    LEASE_SECONDS,
    refuse_held_lease,
    release_lease,
    take_lease,
)
from ollm.archive.sending import ArchiveRecord, Machine
from ollm.archive.state import ArchiveState
from ollm.domain.errors import BusyError, DamagedError
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from tests.servers.archive_machine import MakeMachine


def test_a_search_takes_any_text_literally(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session = laptop.record("100% of foo_bar(x) | y & !z :* costs $5 \\ 'quoted' <b>", "Ünïcode straße 日本語の文章")
    laptop.run("push")

    for wanted in ("foo_bar(x) |", "100%", "& !z :*", "'quoted'", "\\ 'quo", "straße", "日本語", "quoted costs"):
        assert [hit["sessionId"] for hit in laptop.json("search", wanted)][:1] == [session], wanted
    for unwanted in ("fo%ar", "f__r", "nowhere", "%", "__"):
        assert laptop.json("search", unwanted) == [], unwanted


def test_paths_and_ideographs_are_found_by_their_parts_and_whole(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    blob = "".join(f"{number:03}" for number in range(300))
    session = laptop.record(
        "See https://example.org/shop and src/Cart.py:12", "日本語の文章", blob + "x" * 3000 + " ÉTÉ"
    )
    laptop.run("push")

    for wanted in (
        "cart",
        "cart.py",
        "CART.PY:12",
        "(src/cart.py)",
        "shop",
        "語",
        "本語",
        "été",
        blob,
        blob[401:460],
        "x ét",
        "rt.p",
    ):
        assert [hit["sessionId"] for hit in laptop.json("search", wanted)] == [session], wanted
    for unwanted in ("語本", "py.cart", "cart.org"):
        assert laptop.json("search", unwanted) == [], unwanted


def test_hits_have_a_snippet_with_the_word_and_can_be_narrowed(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("lorem " * 3000 + "needle in the hay", "The needle is found.")
    laptop.run("push")

    hits = laptop.json("search", "needle")
    assert {hit["role"] for hit in hits} == {"user", "assistant"}
    assert all("needle" in hit["snippet"] and len(hit["snippet"]) < 200 for hit in hits)
    assert [hit["role"] for hit in laptop.json("search", "needle", "--role", "user")] == ["user"]
    assert laptop.json("search", "needle", "--since", "2099-01-01") == []
    assert len(laptop.json("search", "needle", "--limit", "1")) == 1


SESSION = "00000000-0000-4000-8000-000000000001"
LAPTOP, DESKTOP = Machine(id="1", host="laptop"), Machine(id="2", host="desktop")


@pytest.fixture
def connection(archive_url: str) -> Iterator[psycopg.Connection]:
    with contextlib.closing(open_connection(ArchiveTarget(url=archive_url))) as opened:
        opened.execute(
            "INSERT INTO ollm.sessions (session_id, owner, writer, host) VALUES (%s, ollm.viewer(), '1', 'laptop')",
            (SESSION,),
        )
        yield opened


def test_one_machine_holds_it_and_the_other_is_told_which(connection: psycopg.Connection) -> None:
    take_lease(connection, SESSION, LAPTOP)
    take_lease(connection, SESSION, LAPTOP)

    with pytest.raises(BusyError, match="in use on laptop"):
        take_lease(connection, SESSION, DESKTOP)
    with pytest.raises(BusyError, match="--fork"):
        refuse_held_lease(connection, SESSION, DESKTOP)
    refuse_held_lease(connection, SESSION, LAPTOP)


def test_it_ends_with_the_heartbeat_or_when_it_is_released(connection: psycopg.Connection) -> None:
    take_lease(connection, SESSION, LAPTOP)
    connection.execute("UPDATE ollm.leases SET seen = now() - %s * interval '1 second'", (LEASE_SECONDS + 1,))
    take_lease(connection, SESSION, DESKTOP)

    release_lease(connection, SESSION, LAPTOP)
    with pytest.raises(BusyError):
        take_lease(connection, SESSION, LAPTOP)
    release_lease(connection, SESSION, DESKTOP)
    take_lease(connection, SESSION, LAPTOP)
    take_lease(connection, SESSION, DESKTOP, force=True)


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


@pytest.mark.parametrize("ends", [(".json", ".journal"), (".json",), (".journal",)])
def test_files_come_back_from_their_pieces(files: SessionFiles, ends: tuple[str, ...]) -> None:
    pieces = [ArchiveRecord("file", f"{end}:{n:08d}", f"{end} {n};".encode(), n) for end in ends for n in range(2)]

    write_pulled(files, SESSION, [*pieces, HEAD])

    found = {path.suffix: path.read_text() for path in files.places.directory.iterdir()}
    assert found == {end: f"{end} 0;{end} 1;" for end in ends}


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"no database" * 100)

    assert ArchiveState(tmp_path / "a.db").list_sent() == {}
    assert list(tmp_path.glob("a.db.damaged-*"))

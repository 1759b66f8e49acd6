"""Reading the archive: lists, sessions, what waits to be sent."""

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ollm.app.workspace import WorkspaceScope
from ollm.archive.connection import ArchiveTarget, open_connection
from ollm.archive.outgoing import HIDDEN_TEXT, RecordCleaner
from ollm.archive.pulling import write_pulled
from ollm.archive.reading import (
    LEASE_SECONDS,
    refuse_held_lease,
    release_lease,
    take_lease,
)
from ollm.archive.sending import ArchiveRecord, Machine
from ollm.archive.state import ArchiveState
from ollm.archive.words import split_words
from ollm.cli.daemon import connect_daemon
from ollm.cli.sessions.session_list import SessionList
from ollm.daemon.bodies import OpenReply
from ollm.domain.errors import BusyError, DamagedError
from ollm.services.redaction import MARK, Redactor
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from tests.servers import ScriptedServer
from tests.servers.archive_machine import ArchiveMachine, MakeMachine, make_call
from tests.servers.postgres import free_port


@pytest.fixture
def both(machine: MakeMachine) -> tuple[ArchiveMachine, str, str]:
    """A laptop with a session of its own, and one of the desktop's in the archive; both of a folder named shop."""
    desktop, laptop = machine("desktop"), machine("laptop")
    theirs = desktop.record("The desktop's question", workspace="/somewhere/shop")
    desktop.run("push")
    ours = laptop.record("The laptop's question", workspace="/elsewhere/shop")
    laptop.run("push")
    return laptop, ours, theirs


def test_the_list_shows_and_marks_them(both: tuple[ArchiveMachine, str, str]) -> None:
    laptop, ours, theirs = both

    said = laptop.ollm("sessions", "list")
    rows = {row["sessionId"]: row for row in json.loads(laptop.ollm("sessions", "list", "--json"))}

    assert "☁ The desktop's question (postgres on" in said
    assert set(rows) == {ours, theirs}
    assert rows[theirs]["archive"]["owner"] == "postgres"
    assert "archive" not in rows[ours]


def test_a_machine_that_never_sent_anything_lists_and_finds_them(machine: MakeMachine) -> None:
    desktop, laptop = machine("desktop"), machine("laptop")
    theirs = desktop.record("The desktop's question")
    desktop.run("push")

    hits = json.loads(laptop.ollm("sessions", "search", "question", "--json"))
    rows = json.loads(laptop.ollm("sessions", "list", "--json"))

    assert [found["sessionId"] for found in (*hits, *rows)] == [theirs, theirs]


def test_the_search_finds_both_once(both: tuple[ArchiveMachine, str, str]) -> None:
    laptop, ours, theirs = both

    hits = json.loads(laptop.ollm("sessions", "search", "question", "--json"))

    assert sorted(hit["sessionId"] for hit in hits) == sorted([ours, theirs])
    assert "☁ postgres on" in laptop.ollm("sessions", "search", "question")


def test_the_picker_offers_those_of_the_same_project(both: tuple[ArchiveMachine, str, str], tmp_path: Path) -> None:
    laptop, _, theirs = both
    laptop.ollm("sessions", "list")
    folders = [tmp_path / "shop", tmp_path / "other"]
    found = []
    for folder in folders:
        folder.mkdir()
        scope = WorkspaceScope(laptop.process, folder)
        found.append(SessionList(scope).load_items())
        scope.close()

    assert [[(item.session_id, item.title[:5], (item.origin or "")[:12]) for item in items] for items in found] == [
        [(theirs, "☁ The", "from the arc")],
        [],
    ]


def test_the_daemon_finds_them_and_opens_one_that_is_only_in_the_archive(
    both: tuple[ArchiveMachine, str, str], tmp_path: Path
) -> None:
    laptop, ours, theirs = both
    laptop.ollm("sessions", "list")
    shop = tmp_path / "shop"
    shop.mkdir()

    async def ask() -> tuple[list[str], OpenReply]:
        async with ScriptedServer([]) as server:
            os.environ["OLLM_BASE_URL"] = server.base_url
            async with connect_daemon() as client:
                hits = await client.call("GET", "/search?q=question", type=list[dict[str, Any]])
                body = {"workspacePath": str(shop), "sessionId": theirs}
                opened = await client.call("POST", "/sessions", body, type=OpenReply)
        return sorted(hit["sessionId"] for hit in hits), opened

    laptop.environment |= {"OLLM_PROVIDER": "openai", "OLLM_MODEL": "scripted", "OLLM_BASE_URL": ""}
    try:
        with laptop.inside():
            hits, opened = asyncio.run(ask())
    finally:
        laptop.ollm("daemon", "stop")

    assert hits == sorted([ours, theirs])
    assert (opened.session_id, opened.resumed) == (theirs, True)


def test_a_server_that_is_away_leaves_the_last_list(both: tuple[ArchiveMachine, str, str]) -> None:
    laptop, ours, theirs = both
    laptop.ollm("sessions", "list")
    laptop.configure(url=f"postgresql://me@127.0.0.1:{free_port()}/none")

    rows = json.loads(laptop.ollm("sessions", "list", "--json"))
    hits = json.loads(laptop.ollm("sessions", "search", "question", "--json"))

    assert {row["sessionId"] for row in rows} == {ours, theirs}
    assert [hit["sessionId"] for hit in hits] == [ours]
    assert "was not searched" in laptop.warned


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


def test_a_damaged_session_comes_back_with_the_damage_it_had(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop", redact=False), machine("desktop", redact=False)
    session = laptop.record("One", "Two", "Three")
    path = laptop.home / "sessions" / f"{session}.json"
    broken = path.read_bytes().replace(b'"Two"', b'"Tw\x00\xff')
    path.write_bytes(broken)

    laptop.run("push")
    desktop.run("pull", session)

    assert (desktop.home / "sessions" / f"{session}.json").read_bytes() == broken
    assert "damaged when it was archived" in desktop.warned
    assert "Three" in desktop.ollm("sessions", "view", session)
    assert [hit["number"] for hit in desktop.json("search", "three")] == [3]
    assert "! One" in desktop.run("list")


def test_of_a_damaged_session_what_can_be_read_leaves_redacted(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One", "Two", "password=hunter2hunter2")
    path = laptop.home / "sessions" / f"{session}.json"
    path.write_bytes(path.read_bytes().replace(b'"Two"', b'"Tw\x00\xff'))

    laptop.run("push")
    desktop.run("pull", session)

    shown = desktop.ollm("sessions", "view", session)
    assert "One" in shown
    assert "hunter2" not in shown


def test_a_document_of_another_layout_comes_back_byte_for_byte(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop", redact=False), machine("desktop", redact=False)
    session = laptop.record("One", "Two")
    path = laptop.home / "sessions" / f"{session}.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=3), encoding="utf-8")

    laptop.run("push")
    desktop.run("pull", session)

    assert (desktop.home / "sessions" / path.name).read_bytes() == path.read_bytes()


def test_results_about_files_that_ollmignore_hides_stay_here(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    project = laptop.home / "project"
    (project / "inner").mkdir(parents=True)
    (project / ".ollmignore").write_text("private/\n*.key\n")
    (project / "inner" / ".ollmignore").write_text("notes.txt\n")
    calls = (
        make_call("c1", "hidden words", path="private/plan.md"),
        make_call("c2", "hidden words", path=str(project / "inner" / "notes.txt")),
        make_call("c3", "open words", path="readme.md"),
    )
    session = laptop.record("Read them", "Yes", calls=calls, workspace=str(project))

    laptop.run("push")
    desktop.run("pull", session)

    assert b"hidden words" not in desktop.document(session)
    assert b"open words" in desktop.document(session)
    assert desktop.json("search", "hidden words") == []


KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def is_hidden(path: str) -> bool:
    return path.removeprefix("./").startswith("secret/")


def redact(name: str, text: str) -> str:
    return MARK if name == "password" else Redactor().redact(text)


CLEANER = RecordCleaner(redact, is_hidden)

PLAIN = RecordCleaner(None, is_hidden)


def make_entry(name: str, result: str, **args: object) -> dict[str, object]:
    return {"id": "c1", "name": name, "args": args, "result": {"llmContent": result, "fullOutput": result}}


def test_secrets_go_at_any_depth_and_by_the_name_they_stand_under() -> None:
    call = make_entry("http", f"token {KEY}", headers={"password": "hunter2", "x": [f"Bearer {KEY}"]}, data=KEY)

    cleaned = CLEANER.clean_call(call)

    assert KEY not in str(cleaned)
    assert cleaned["args"]["headers"]["password"] == MARK
    assert cleaned["id"] == "c1"
    assert CLEANER.clean_record({"id": 1, "role": "user", "parts": [{"type": "text", "text": "plain"}]})["id"] == 1


def test_the_result_of_a_call_about_a_hidden_file_stays_here() -> None:
    for call in (
        make_entry("read_file", "the plan", path="secret/plan.md"),
        make_entry("read_many_files", "the plan", paths=["a.md", "./secret/plan.md"]),
        make_entry("shell", "the plan", command="cat <secret/plan.md | head"),
        make_entry("shell", "the plan", command="cat a#b secret/plan.md"),
        make_entry("write_file", "ok the plan", path="secret/plan.md", content="the plan"),
    ):
        cleaned = PLAIN.clean_call(call)
        assert "the plan" not in str(cleaned), call
        assert HIDDEN_TEXT in str(cleaned)
    for path, sent in (("secret/plan.png", []), ("logo.png", ["iVBORw0KGgo="])):
        call = make_entry("read_file", "a picture", path=path)
        call["result"] = {"llmContent": "a picture", "images": ["iVBORw0KGgo="]}
        assert PLAIN.clean_call(call)["result"]["images"] == sent


def test_lines_about_hidden_files_are_left_out_of_lists_and_searches() -> None:
    cleaned = PLAIN.clean_call(
        make_entry("grep", "a.py:3: total\nsecret/plan.md:1: total\nsecret/my plan:2: x\nb.py", pattern="t")
    )

    assert cleaned["result"]["llmContent"].split("\n") == ["a.py:3: total", "b.py", HIDDEN_TEXT]


def test_without_redaction_and_hidden_files_nothing_changes() -> None:
    call = make_entry("shell", f"secret words, key {KEY}\n  - item: x", command="ls -la 'unfinished")

    assert PLAIN.clean_call(call) is call
    assert PLAIN.clean_record({"a": KEY}) == {"a": KEY}
    assert PLAIN.clean_record({"metadata": {"title": KEY}}) == {"metadata": {"title": KEY}}


def test_a_text_is_cut_into_the_same_words_whatever_else_it_holds() -> None:
    text = "".join(map(chr, range(128))) + " See src/Cart.py, foo_bar(X) " + "y" * 300
    plain = set(split_words(text))

    assert set(split_words(text + " 日本")) - {"日", "本"} == plain
    assert {"src", "cart", "py", "foo", "bar", "x", "y" * 200} <= plain
    assert split_words("<=> _ \x1f") == []

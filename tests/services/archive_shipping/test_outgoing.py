"""A session as it leaves: rewound and damaged ones as they are."""

import json
from pathlib import Path

from ollm.domain.messages import TextPart
from ollm.services.archive_shipping.cleaning import RecordCleaner
from ollm.services.archive_shipping.outgoing import OutgoingSession
from ollm.store.session_files.damage import DamageReport
from ollm.store.team_archive.records import ArchivedHead, ArchiveRecord
from tests.servers.archive_machine import MakeMachine, make_call
from tests.store.sessions.support import Home, call, said


def read_outgoing(home: Home, session: str, cleaner: RecordCleaner) -> tuple[list[ArchiveRecord], ArchivedHead]:
    with home.files.open_stream(session, DamageReport()) as stream:
        outgoing = OutgoingSession(stream, cleaner, home.sessions)
        return list(outgoing.iter_records()), outgoing.describe()


async def test_the_records_of_a_session_under_way_and_what_is_told_of_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    service = home.service()
    session = await service.create_session("m", "ollama", workspace="/w", origin="one-shot")
    await service.record_message(session, said("my key is hunter2"))
    await service.record_message(session, said("fine", "assistant"))
    await service.record_tool_call(session, call("c1", result="out put"))
    await service.record_partial(session, (TextPart(text="half an ans"),))

    records, told = read_outgoing(home, session, RecordCleaner(None, lambda _path: False))

    assert [(record.kind, record.key, record.position) for record in records] == [
        ("head", "", 0),
        ("message", "1", 1),
        ("message", "2", 2),
        ("message", "3", 3),
        ("call", "c1", None),
    ]
    assert [record.text and record.text.text for record in records] == [
        None,
        "my key is hunter2",
        "fine",
        "half an ans",
        "ls .\nout put",
    ]
    assert (told.title, told.model, told.workspace, told.origin) == ("my key is hunter2", "m", "/w", "one-shot")
    assert (told.message_count, told.redacted, told.damaged) == (3, False, None)
    assert told.token_count > 0
    assert told.start_time <= told.last_activity

    def redact(text: str) -> str:
        return text.replace("hunter2", "X").replace("out put", "Y")

    hidden, told = read_outgoing(home, session, RecordCleaner(redact, lambda _path: False))
    assert b"hunter2" not in b"".join(record.body or b"" for record in hidden)
    assert [record.text and record.text.text for record in hidden][1::3] == ["my key is X", "ls .\nY"]
    assert (told.title, told.redacted) == ("my key is X", True)
    await service.close_session(session)


def test_of_a_damaged_session_both_files_leave_in_pieces_unless_something_is_taken_out(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session = home.recorded("One", "Two")
    path = home.document(session)
    path.write_bytes(path.read_bytes().replace(b'"Two"', b'"Tw\x00\xff') + b" " * (256 * 1024))
    home.journal(session).write_bytes(b"not a journal at all\n")

    records, told = read_outgoing(home, session, RecordCleaner(None, lambda _path: False))

    files = [(record.key, record.position, len(record.body or b"")) for record in records if record.kind == "file"]
    rest = path.stat().st_size - 256 * 1024
    assert files == [(".json:00000000", 0, 256 * 1024), (".json:00000001", 1, rest), (".journal:00000000", 10**9, 21)]
    assert told.damaged
    kept, _ = read_outgoing(home, session, RecordCleaner(str, lambda _path: False))
    assert not [record for record in kept if record.kind == "file"]


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

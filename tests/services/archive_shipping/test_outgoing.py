"""A session as it leaves: rewound and damaged ones as they are."""

import json

from tests.servers.archive_machine import MakeMachine, make_call


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

"""`archive pull` and `archive forget`: a session goes on elsewhere, and is gone when its owner says so."""

from pathlib import Path

from ollm.app import WorkspaceScope
from tests.servers.archive_machine import MakeMachine


def test_a_session_goes_on_elsewhere_and_comes_back(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("Said on the laptop")
    laptop.run("push")

    desktop.run("pull", session)
    desktop.go_on(session, "Said on the desktop")
    desktop.run("push")
    laptop.run("pull", session)

    assert laptop.document(session) == desktop.document(session)
    assert "Said on the desktop" in laptop.ollm("sessions", "view", session)
    assert "up to date" in laptop.run("pull", session)


def test_words_that_only_this_machine_has_are_never_overwritten(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One")
    laptop.run("push")
    desktop.run("pull", session)
    desktop.go_on(session, "From the desktop")
    desktop.run("push")
    laptop.go_on(session, "From the laptop")

    for command in (("pull", session), ("push",)):
        laptop.run(*command, code=1)
        assert f"Keep both with `ollm archive push {session} --fork`" in " ".join(laptop.warned.split())
    assert f"push {session} --fork" in laptop.run("status", session, code=5)

    laptop.run("pull", session, "--fork")
    (fork,) = laptop.ids() - {session}
    assert "From the desktop" in laptop.ollm("sessions", "view", fork)
    assert "From the laptop" in laptop.ollm("sessions", "view", session)
    laptop.run("push", fork)
    assert {row["sessionId"] for row in desktop.json("list")} == {session, fork}


def test_what_is_forgotten_is_gone_there_stays_here_and_is_not_sent_again(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session, other = laptop.record("Forget me"), laptop.record("Keep me")
    laptop.run("push")
    desktop.run("pull", session)

    laptop.run("forget", session, code=2)
    laptop.run("forget", session, "--yes")

    assert [row["sessionId"] for row in laptop.json("list")] == [other]
    assert laptop.json("search", "forget") == []
    laptop.run("push", code=1)
    assert "not sent again" in laptop.warned
    desktop.go_on(session, "More")
    desktop.run("push", code=1)
    assert [row["sessionId"] for row in laptop.json("list")] == [other]
    assert "Forget me" in laptop.ollm("sessions", "view", session)


def test_an_unknown_or_ambiguous_id_is_said(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("One")
    laptop.run("push")

    for name in ("00000000", "zz", "%%%%", "'; DROP TABLE ollm.sessions; --"):
        laptop.run("pull", name, code=1 if name == "00000000" else 2)

    assert len(laptop.json("list")) == 1


def test_a_session_of_a_folder_that_is_elsewhere_goes_on_here(machine: MakeMachine, tmp_path: Path) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("In the shop", workspace="/home/somebody/else/shop")
    laptop.run("push")
    here = tmp_path / "shop"
    here.mkdir()

    said = desktop.run("pull", session, "--workspace", str(here))

    assert str(here) in said
    assert desktop.document(session) == laptop.document(session)
    with desktop.inside():
        scope = WorkspaceScope(desktop.process, here)
        assert [found.session_id for found in scope.context.list_sessions()] == [session]
        assert scope.context.owns(desktop.process.session_files.describe_session(session))
        scope.close()

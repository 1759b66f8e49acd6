"""The way out of a session that went on in two places: both are kept, both are in the archive, and nothing is refused."""

import json

import pytest

from tests.servers.archive_machine import ArchiveMachine, MakeMachine


@pytest.fixture
def parted(machine: MakeMachine) -> tuple[ArchiveMachine, ArchiveMachine, str]:
    """A session that was continued on the desktop, where it was sent, and on the laptop."""
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One", workspace="/srv/shop")
    laptop.run("push")
    desktop.run("pull", session)
    desktop.go_on(session, "From the desktop")
    desktop.run("push")
    laptop.go_on(session, "From the laptop")
    return laptop, desktop, session


def test_both_are_kept_and_every_machine_comes_to_the_same(
    parted: tuple[ArchiveMachine, ArchiveMachine, str],
) -> None:
    laptop, desktop, session = parted

    said = laptop.run("push", session[:8], "--fork")

    (fork,) = laptop.ids() - {session}
    assert f"as session {fork}" in said
    assert "From the laptop" in laptop.ollm("sessions", "view", fork)
    assert laptop.document(session) == desktop.document(session)
    assert "Nothing to send" in laptop.run("push")
    desktop.run("pull", fork)
    assert desktop.document(fork) == laptop.document(fork)
    head = json.loads(laptop.document(fork))["metadata"]
    assert (head["forkedFrom"]["sessionId"], head["workspace"]) == (session, "/srv/shop")


def test_the_session_stays_as_it_is_while_it_goes_on_elsewhere_and_follows_later(
    parted: tuple[ArchiveMachine, ArchiveMachine, str],
) -> None:
    laptop, desktop, session = parted
    desktop.run("status", session, "--take")

    said = laptop.run("push", session, "--fork")

    assert "stays as it is here" in said
    assert "is in use on" in said
    assert "From the laptop" in laptop.ollm("sessions", "view", session)
    assert "Nothing to send" in laptop.run("push")
    assert "From the desktop" not in laptop.ollm("sessions", "view", session)


def test_what_cannot_be_forked_is_said_and_left(parted: tuple[ArchiveMachine, ArchiveMachine, str]) -> None:
    laptop, _, session = parted
    laptop.run("push", "--fork", code=2)
    writer, _ = laptop.process.session_files.open(session)
    try:
        laptop.run("push", session, "--fork", code=1)
        assert "is open" in laptop.warned
    finally:
        writer.abandon()
    path = laptop.home / "sessions" / f"{session}.json"
    path.write_bytes(damaged := path.read_bytes()[:-30])
    laptop.run("push", session, "--fork", code=1)
    assert "check --repair" in laptop.warned
    assert path.read_bytes() == damaged
    assert laptop.ids() == {session}

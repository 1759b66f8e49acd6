"""A deletion here reaches there, now or later; what the limit removes does not."""

from pathlib import Path
from uuid import uuid4

from ollm.app import ProcessScope
from tests.servers.archive_machine import ArchiveMachine, MakeMachine
from tests.servers.postgres import PostgresServer, free_port


def test_a_deleted_session_is_deleted_there_with_the_next_push(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session, other = laptop.record("Delete me"), laptop.record("Keep me")
    laptop.run("push")

    said = laptop.ollm("sessions", "delete", session, "--yes")

    assert "next `ollm archive push` deletes what you have of it" in said
    assert laptop.json("status")["deletionsWaiting"] == 1
    assert "1 session deleted here" in laptop.run("status")
    assert laptop.run("push") == "Deleted 1 session there.\n"
    assert [row["sessionId"] for row in laptop.json("list")] == [other]
    assert laptop.json("status")["deletionsWaiting"] == 0


def test_a_tombstone_outlives_a_server_that_is_away(machine: MakeMachine, archive_url: str) -> None:
    laptop = machine("laptop")
    session = laptop.record("Delete me")
    laptop.run("push")
    laptop.configure(url=f"postgresql://me@127.0.0.1:{free_port()}/none")

    laptop.ollm("sessions", "clear", "--all", "--yes")
    laptop.run("push", code=1)
    laptop.configure(url=archive_url)

    assert laptop.json("list")[0]["sessionId"] == session
    assert laptop.json("push")["deleted"] == 1
    assert laptop.json("list") == []


def test_kept_copies_are_said_at_each_delete(machine: MakeMachine) -> None:
    laptop = machine("laptop", deletes="keep")
    session = laptop.record("Keep my copy")
    laptop.run("push")

    assert "stay (archive.deletes: keep)" in laptop.ollm("sessions", "delete", session, "--yes")

    laptop.run("push")
    assert [row["sessionId"] for row in laptop.json("list")] == [session]


def test_a_copy_of_another_persons_session_is_deleted_here_and_stays_theirs(
    machine: MakeMachine, archive_url: str, postgres: PostgresServer
) -> None:
    role = f"colleague_{uuid4().hex[:8]}"
    postgres.create_role(role)
    owner, guest = machine("owner"), machine("guest", url=archive_url.replace("postgres@", f"{role}@"))
    owner.run("setup", "--person", role, "--person", "postgres", "--team", "shop")
    session, mine = owner.record("Theirs"), guest.record("Mine")
    owner.run("push")
    guest.run("pull", session)
    guest.run("push")

    said = guest.ollm("sessions", "delete", session, "--yes")

    assert said.endswith("postgres's session stays in the archive and in lists; only postgres can delete it there.\n")
    assert guest.json("push")["deleted"] == guest.json("status")["deletionsWaiting"] == 0
    assert "☁ Theirs (postgres on" in guest.ollm("sessions", "list")
    guest.run("pull", session)
    assert "Theirs" in guest.ollm("sessions", "view", session)
    said = guest.ollm("sessions", "clear", "--all", "--yes")
    assert "deletes what you have of it in the archive. It was a copy: postgres's session stays" in said
    assert guest.json("push")["deleted"] == 1
    assert [row["sessionId"] for row in owner.json("list")] == [session] != [mine]


def test_what_the_limit_removes_stays_in_the_archive(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session = laptop.record("Old")
    laptop.run("push")
    library = laptop.process.library

    library.delete_many([session], everywhere=False)

    assert laptop.json("push")["deleted"] == 0
    assert len(laptop.json("list")) == 1


def test_a_session_that_is_open_is_deleted_neither_here_nor_there(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session = laptop.record("Open")
    laptop.run("push")
    writer, _ = laptop.process.session_files.open(session)
    try:
        laptop.ollm("sessions", "delete", session, "--yes", code=1)
    finally:
        writer.abandon()

    laptop.run("push")
    assert len(laptop.json("list")) == 1


def test_without_an_archive_nothing_is_remembered(tmp_path: Path) -> None:
    home = ArchiveMachine(tmp_path / "home", "")
    session = home.record("Alone")

    assert ProcessScope({"OLLM_HOME": str(home.home)}).find_deletion_log() is None
    assert home.ollm("sessions", "delete", session, "--yes") == f"Deleted session {session}.\n"
    assert not (home.home / "archive.db").exists()

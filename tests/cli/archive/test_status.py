"""`archive status` and `archive setup`."""

from tests.servers.archive_machine import MakeMachine
from tests.servers.postgres import PostgresServer, free_port


def test_status_counts_what_is_not_sent_yet(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("One")
    laptop.run("push")
    laptop.record("Two")

    found = laptop.json("status")

    assert (found["reachable"], found["unsentSessions"], found["sessions"], found["ownSessions"]) == (True, 1, 1, 1)
    assert "1 session " in laptop.run("status")


def test_status_of_an_archive_that_is_away_says_so_and_what_waits(machine: MakeMachine) -> None:
    laptop = machine("laptop", url=f"postgresql://me:hunter2@127.0.0.1:{free_port()}/team")
    laptop.record("One")

    said = laptop.run("status", code=1)

    assert "Cannot reach the archive" in said
    assert "1 session " in said
    assert "hunter2" not in said


def test_an_empty_database_is_set_up_once_and_people_are_added(machine: MakeMachine, postgres: PostgresServer) -> None:
    admin = machine("admin", url=postgres.create_database())
    postgres.create_role("grace hopper")

    admin.run("setup")
    said = admin.run("setup", "--person", "grace hopper", "--team", "navy")

    assert "Added grace hopper to team navy." in said
    admin.run("setup", "--team", "navy", code=2)
    admin.run("setup", "--person", "nobody_knows", code=1)

"""Sessions of others beside those of this machine: in the list, the picker, the search and the daemon, marked."""

import asyncio
import json
from pathlib import Path

import pytest

from ollm.app import WorkspaceScope
from ollm.app.archived_sessions import list_archived_rows
from ollm.cli.sessions.session_list import LocalSessionList
from ollm.daemon.hub import Hub, HubLimits
from ollm.daemon.service import DaemonService
from tests.servers.archive_machine import ArchiveMachine, MakeMachine
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
        found.append(asyncio.run(LocalSessionList(scope).load_items()))
        scope.close()

    assert [[(item.session_id, (item.origin or "")[:12]) for item in items] for items in found] == [
        [(theirs, "the archive:")],
        [],
    ]


def test_the_daemon_lists_them_with_their_owner(both: tuple[ArchiveMachine, str, str]) -> None:
    laptop, ours, theirs = both
    laptop.ollm("sessions", "list")
    limits = HubLimits(most_clients=1, most_sessions=1, idle_seconds=1)
    service = DaemonService(laptop.process, Hub(lambda options: None, limits))  # type: ignore[arg-type,return-value]

    rows = asyncio.run(service.list_summaries())

    assert {row["sessionId"]: row.get("archive", {}).get("owner") for row in rows} == {ours: None, theirs: "postgres"}


def test_a_server_that_is_away_leaves_the_last_list(both: tuple[ArchiveMachine, str, str]) -> None:
    laptop, ours, theirs = both
    laptop.ollm("sessions", "list")
    laptop.configure(url=f"postgresql://me@127.0.0.1:{free_port()}/none")

    rows = json.loads(laptop.ollm("sessions", "list", "--json"))
    hits = json.loads(laptop.ollm("sessions", "search", "question", "--json"))

    assert {row["sessionId"] for row in rows} == {ours, theirs}
    assert [hit["sessionId"] for hit in hits] == [ours]
    assert "was not searched" in laptop.warned


def test_a_home_without_an_archive_reads_nothing(tmp_path: Path) -> None:
    home = ArchiveMachine(tmp_path / "home", "")

    assert list_archived_rows(home.process, ask=True) == []
    assert not (home.home / "archive.db").exists()

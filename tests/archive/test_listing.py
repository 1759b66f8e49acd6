"""Sessions of others beside those of this machine: in the list, the picker, the search and the daemon, marked."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ollm.app import WorkspaceScope
from ollm.cli.daemon import connect_daemon
from ollm.cli.sessions.session_list import LocalSessionList, RemoteSessionList
from ollm.cli.start import ChatArguments
from ollm.daemon.bodies import OpenReply
from tests.servers import ScriptedServer
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
        found.append(asyncio.run(LocalSessionList(scope).load_items()))
        scope.close()

    assert [[(item.session_id, item.title[:5], (item.origin or "")[:12]) for item in items] for items in found] == [
        [(theirs, "☁ The", "the archive:")],
        [],
    ]


def test_the_daemon_finds_them_and_opens_one_that_is_only_in_the_archive(
    both: tuple[ArchiveMachine, str, str], tmp_path: Path
) -> None:
    laptop, ours, theirs = both
    laptop.ollm("sessions", "list")
    shop = tmp_path / "shop"
    shop.mkdir()

    async def ask() -> tuple[list[str], list[tuple[str, bool]], OpenReply]:
        async with ScriptedServer([]) as server:
            os.environ["OLLM_BASE_URL"] = server.base_url
            async with connect_daemon() as client:
                hits = await client.call("GET", "/search?q=question", type=list[dict[str, Any]])
                found = await RemoteSessionList(ChatArguments(workspace=shop)).load_items()
                body = {"workspacePath": str(shop), "sessionId": theirs}
                opened = await client.call("POST", "/sessions", body, type=OpenReply)
        listed = [(item.session_id, (item.origin or "").startswith("the archive:")) for item in found]
        return sorted(hit["sessionId"] for hit in hits), listed, opened

    laptop.environment |= {"OLLM_PROVIDER": "openai", "OLLM_MODEL": "scripted", "OLLM_BASE_URL": ""}
    try:
        with laptop.inside():
            hits, listed, opened = asyncio.run(ask())
    finally:
        laptop.ollm("daemon", "stop")

    assert hits == sorted([ours, theirs])
    assert listed == [(theirs, True)]
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

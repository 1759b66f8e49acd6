"""MCP servers of a conversation, as they are configured."""

import asyncio
import json
from pathlib import Path

import msgspec

from ollm.app.mcp_setup import (
    ServerGate,
    collect_entries,
    create_mcp_servers,
    has_servers,
    read_configured_servers,
)
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.extensions.mcp.settings import McpServer
from ollm.policy.grants import GrantBook
from ollm.system.processes import ProcessHost
from tests.app.places import AppPlace

KEY = "abcdefgh12345678"


def write_project_file(place: AppPlace, **servers: object) -> None:
    (place.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_there_are_servers_where_the_settings_or_a_trusted_workspace_name_some(place: AppPlace) -> None:
    assert not has_servers(place.process())
    place.configure(mcpServers={"mine": {"command": "run"}})
    assert has_servers(place.process())
    place.configure()
    write_project_file(place, theirs={"command": "run"})
    assert not has_servers(place.process())
    assert collect_entries(place.process()) == ({}, [])
    place.trust()
    assert has_servers(place.process())
    assert list(collect_entries(place.process())[0]) == ["theirs"]
    assert not has_servers(place.process(workspace=False))


def test_the_users_own_entry_wins_over_the_projects(place: AppPlace) -> None:
    place.configure(mcpServers={"one": {"command": "mine"}})
    write_project_file(place, one={"command": "theirs"}, two={"command": "theirs"})
    place.trust()
    entries, notes = collect_entries(place.process())

    assert {name: entry["command"] for name, entry in entries.items()} == {"one": "mine", "two": "theirs"}
    assert notes == []


def test_the_users_own_server_may_name_any_variable_and_leave_the_box(place: AppPlace) -> None:
    place.configure(
        mcpServers={
            "mine": {
                "command": "${TOOL}",
                "args": ["--key", "${API_KEY}"],
                "env": {"KEY": "${API_KEY}"},
                "sandbox": "off",
            },
            "far": {"url": "http://${TOOL}/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
        }
    )
    (mine, far), problems = read_configured_servers(place.process(TOOL="run", API_KEY=KEY))

    assert problems == ()
    assert (mine.command, mine.args, mine.env, mine.boxed) == ("run", ("--key", KEY), {"KEY": KEY}, False)
    assert (far.url, far.headers) == ("http://run/mcp", {"Authorization": f"Bearer {KEY}"})


def test_one_that_a_workspace_brings_gets_what_tools_get_and_stays_in_the_box(place: AppPlace) -> None:
    write_project_file(place, theirs={"command": "run", "args": ["${API_KEY}", "${LANG}"], "sandbox": "off"})
    place.trust()
    (theirs,), _ = read_configured_servers(place.process(API_KEY=KEY, LANG="C"))

    assert theirs.args == ("${API_KEY}", "C")
    assert theirs.boxed


async def test_servers_are_made_and_none_is_started(place: AppPlace) -> None:
    place.configure(mcpServers={"one": {"command": "run"}, "off": {"command": "run", "disabled": True}, "bad": 5})
    scope = place.scope()
    host, said = ProcessHost(), []
    servers, problems = create_mcp_servers(
        scope.process, place.workspace, lambda: host, scope.create_sandbox, said.append, 1.0
    )

    assert [(state.server.name, state.connected, state.failure) for state in servers.list_states()] == [
        ("one", False, "")
    ]
    assert len(problems) == 1
    assert await servers.before_turn() is False
    assert said == ["The MCP server one cannot be started: there is no program run."]
    await servers.close()
    await host.close()


SERVER = McpServer(name="docs", command="serve", args=("--port", "1"), env={"TOKEN": "secret-value"})


class Person:
    def __init__(self, answer: ConfirmationAnswer) -> None:
        self.answer = answer
        self.asked: list[ConfirmationDetails] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(details)
        await asyncio.sleep(0)
        return self.answer


async def test_one_question_for_any_number_of_requests_and_no_secret_in_it() -> None:
    person = Person(ConfirmationAnswer(approved=True))
    gate = ServerGate({"docs": {}}, person.ask, GrantBook())
    await asyncio.gather(*(gate.approve(SERVER) for _ in range(3)))

    (asked,) = person.asked
    assert asked.description == "Start the MCP server docs: serve --port 1"
    assert "secret-value" not in str(asked)


async def test_always_is_for_exactly_this_server(tmp_path: Path) -> None:
    person = Person(ConfirmationAnswer(approved=True, scope="everywhere"))
    for server in (SERVER, SERVER, msgspec.structs.replace(SERVER, env={"TOKEN": "other"})):
        await ServerGate({}, person.ask, GrantBook(tmp_path / "grants.yaml")).approve(server)

    assert len(person.asked) == 2
    assert "secret-value" not in (tmp_path / "grants.yaml").read_text()

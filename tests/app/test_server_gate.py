"""Servers that a front end brings: one question each, an answer that counts, a grant for exactly this server."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from ollm.app.server_gate import ServerGate
from ollm.domain.errors import ToolFailure
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.extensions.mcp.settings import McpServer
from ollm.policy.grants import GrantBook

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


async def test_a_no_counts_for_the_conversation() -> None:
    person = Person(ConfirmationAnswer(approved=False))
    gate = ServerGate({}, person.ask, GrantBook())
    for _ in range(2):
        with pytest.raises(ToolFailure, match="declined"):
            await gate.approve(SERVER)

    assert len(person.asked) == 1


async def test_always_is_for_exactly_this_server(tmp_path: Path) -> None:
    person = Person(ConfirmationAnswer(approved=True, scope="everywhere"))
    for server in (SERVER, SERVER, msgspec.structs.replace(SERVER, env={"TOKEN": "other"})):
        await ServerGate({}, person.ask, GrantBook(tmp_path / "grants.yaml")).approve(server)

    assert len(person.asked) == 2
    assert "secret-value" not in (tmp_path / "grants.yaml").read_text()

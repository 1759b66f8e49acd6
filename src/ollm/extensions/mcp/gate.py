"""Approval of the MCP servers that an editor brings to a conversation."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Risk
from ollm.extensions.mcp.settings import McpServer
from ollm.policy.grants import GrantBook
from ollm.system.terminal_text import render_command

GRANT_TOOL = "mcp_server"


class ServerGate:
    """Approval of a conversation's servers. Answers last until it closes; longer grants are for the exact server."""

    def __init__(
        self,
        entries: Mapping[str, Any],
        ask: Callable[[ConfirmationDetails], Awaitable[ConfirmationAnswer]],
        grants: GrantBook,
    ) -> None:
        self.entries = entries
        self._ask = ask
        self._grants = grants
        self._answers: dict[str, bool] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def approve(self, server: McpServer) -> None:
        """Ask about a server once. Raises ToolFailure if the person declines."""
        async with self._asking[server.name]:
            if server.name not in self._answers:
                self._answers[server.name] = await self._decide(server)
        if not self._answers[server.name]:
            raise ToolFailure("Denied", f"The MCP server {server.name} was not started: you declined it.")

    async def _decide(self, server: McpServer) -> bool:
        grant = f"{GRANT_TOOL}:{server.name} #{compute_identity(server)}"
        if any(str(known) == grant for known in self._grants.list_grants()):
            return True
        answer = await self._ask(build_server_question(server, grant))
        if answer.approved and answer.scope != "once":
            self._grants.add(grant, answer.scope)
        return answer.approved


def compute_identity(server: McpServer) -> str:
    """Hash every field that affects what runs."""
    told = [server.command, server.args, sorted(server.env.items()), server.url, sorted(server.headers.items())]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]


def build_server_question(server: McpServer, grant: str) -> ConfirmationDetails:
    """Build the question about a server, without the values of variables and headers."""
    verb = "Connect to" if server.url else "Start"
    return ConfirmationDetails(
        call_id=f"mcp-{server.name}",
        tool=GRANT_TOOL,
        description=render_command(f"{verb} the MCP server {server.name}: {server.place}"),
        risk=Risk.HIGH,
        reason="your editor brings this server",
        grant=grant,
    )

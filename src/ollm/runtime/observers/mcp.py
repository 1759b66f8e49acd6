"""Lets the tools of MCP servers join a conversation, turn by turn, without holding its start."""

from __future__ import annotations

from ollm.extensions.mcp.servers import McpServers
from ollm.runtime.parts import ConversationParts
from ollm.runtime.turn_observer import TurnReport


class McpObserver:
    """A `TurnObserver`: servers nothing is known of are asked before the first request, the others beside it."""

    def __init__(self, servers: McpServers, parts: ConversationParts) -> None:
        self._servers = servers
        self._parts = parts
        self._registered = {spec.name for spec in servers.list_specs()}

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """Nothing to do: servers wait for a turn."""

    async def before_turn(self, text: str) -> None:
        if await self._servers.before_turn():
            self._register_tools()

    async def after_turn(self, report: TurnReport) -> None:
        """Nothing to do: what was learnt meanwhile is taken when the next turn begins, so that the prompt stands."""

    async def session_closed(self, session_id: str) -> None:
        """Nothing to do: the servers are closed with the conversation."""

    def _register_tools(self) -> None:
        registry, specs = self._parts.late.registry, self._servers.list_specs()
        for name in self._registered - {spec.name for spec in specs}:
            registry.unregister(name)
        for spec in specs:
            registry.register(spec)
        self._registered = {spec.name for spec in specs}
        self._parts.update_tools()

"""Lets the tools of MCP servers join a conversation, turn by turn, without holding its start."""

from __future__ import annotations

from ollm.extensions.mcp.servers import McpServers
from ollm.runtime.changes import ShowsTools, update_tools
from ollm.runtime.turn_observer import TurnObserver


class McpObserver(TurnObserver):
    """Servers nothing is known of are asked before the first request, the others beside it.

    What was learnt meanwhile is used when the next turn begins, so that the prompt does not change during one."""

    def __init__(self, servers: McpServers, conversation: ShowsTools) -> None:
        self._servers = servers
        self._conversation = conversation
        self._registered = {spec.name for spec in servers.list_specs()}

    async def before_turn(self, text: str) -> None:
        if await self._servers.before_turn():
            self._register_tools()

    def _register_tools(self) -> None:
        registry, specs = self._conversation.registry.get(), self._servers.list_specs()
        for name in self._registered - {spec.name for spec in specs}:
            registry.unregister(name)
        for spec in specs:
            registry.register(spec)
        self._registered = {spec.name for spec in specs}
        update_tools(self._conversation)

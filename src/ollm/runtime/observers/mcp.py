"""Lets the tools of MCP servers join a conversation, turn by turn, without holding its start."""

from __future__ import annotations

from ollm.extensions.mcp.servers import McpServers
from ollm.runtime.changes import ShowsTools, update_tools
from ollm.runtime.turn_observer import TurnObserver

MAX_INSTRUCTION_CHARACTERS = 1_000


class McpObserver(TurnObserver):
    """Servers nothing is known of are asked before the first request, the others beside it.

    What came meanwhile is used from the next request on."""

    def __init__(self, servers: McpServers, conversation: ShowsTools) -> None:
        self._servers = servers
        self._conversation = conversation
        self._registered = {spec.name for spec in servers.list_specs()}

    async def before_turn(self, text: str) -> None:
        if await self._servers.before_turn():
            self._register_tools()
        self._add_instructions()

    async def before_request(self) -> None:
        if await self._servers.before_request():
            self._register_tools()

    def _add_instructions(self) -> None:
        """What the servers say about themselves, each within its share of the window."""
        longest = min(MAX_INSTRUCTION_CHARACTERS, self._conversation.state.model.window // 16)
        for name, text in self._servers.get_instructions().items():
            self._conversation.prompt.entries.add_context(
                f"mcp.{name}", f"The MCP server {name} says: {text[:longest]}", source="extension"
            )

    def _register_tools(self) -> None:
        registry, specs = self._conversation.registry.get(), self._servers.list_specs()
        for name in self._registered - {spec.name for spec in specs}:
            registry.unregister(name)
        for spec in specs:
            registry.register(spec)
        self._registered = {spec.name for spec in specs}
        update_tools(self._conversation)

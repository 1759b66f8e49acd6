"""The MCP servers of one conversation: shown from the cache, opened on demand, closed with the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ollm.domain.errors import OllmError, ToolFailure, UsageError
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.domain.tools import ToolResult
from ollm.extensions.mcp.catalogue import (
    Catalogue,
    CatalogueFile,
    OfferedTool,
    Run,
    build_specs,
    fetch_catalogue,
    fetch_resource_names,
)
from ollm.extensions.mcp.results import build_result, dump_models, extract_text
from ollm.extensions.mcp.settings import McpServer
from ollm.tools.framework.base import ToolSpec

if TYPE_CHECKING:
    from mcp import Client
    from ollm.extensions.mcp.connection import McpConnection

FIRST_WAIT_SECONDS = 10.0  # A first turn waits so long for servers nothing is known of.
MAX_PROGRESS_CHARACTERS = 200
CHANGE_WAIT_SECONDS = 5.0  # A request waits so long for a changed list.


class McpServerState(Data, frozen=True):
    """State of a server as displayed by /mcp."""

    server: McpServer
    connected: bool
    catalogue: Catalogue | None
    failure: str = ""


class McpServers:
    """The servers of one conversation. `before_turn` queries them, in the background if their offers are cached."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        connect: Callable[[McpServer], McpConnection],
        kept: CatalogueFile,
        tell: Callable[[str], None],
        first_wait: float | None = None,
    ) -> None:
        self._servers = {server.name: server for server in servers if not server.disabled}
        self._connect = connect
        self._connections: dict[str, McpConnection] = {}  # Servers are connected when they are needed.
        self._store = kept
        self._tell = tell
        self._catalogues: dict[str, Catalogue] = {}
        self._hung: list[str] = []  # These did not answer at their last start.
        for name, server in self._servers.items():
            if (found := kept.get(server)) is not None and not found.hung:
                self._catalogues[name] = found
            elif found is not None and kept.is_fresh(found):
                self._hung.append(name)
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[str, str] = {}
        self._waited_for: dict[str, None] = {}
        self._late: set[str] = set()  # A turn went on without these.
        self._first_wait = first_wait
        self._tools_changed = False

    def list_specs(self) -> list[ToolSpec]:
        """List the tools of every known server, running or not."""
        return [
            spec
            for name, found in self._catalogues.items()
            for spec in build_specs(
                self._servers[name],
                found,
                lambda tool, name=name: self._make_call_runner(name, tool),  # type: ignore[misc] # binds the name now
                self._make_resource_reader(name),
            )
        ]

    async def before_turn(self) -> bool:
        """Query servers with unknown or outdated offers; wait once for unknown ones. Returns True if tools changed."""
        for name in self._servers:
            found = self._catalogues.get(name)
            changed, usable = self._take_offer_change(name)
            unasked = name not in self._asking and usable
            if changed or (unasked and (found is None or not self._store.is_fresh(found))):
                self._ask_beside(name)
        for name in self._hung:
            self._tell(f"The MCP server {name} did not answer last time; not waiting. Try `ollm mcp test {name}`.")
        self._waited_for |= dict.fromkeys(self._hung)
        self._hung.clear()
        unknown = [task for name, task in self._asking.items() if name not in {**self._catalogues, **self._waited_for}]
        if unknown:
            self._waited_for = dict.fromkeys(self._asking)
            await asyncio.wait(unknown, timeout=FIRST_WAIT_SECONDS if self._first_wait is None else self._first_wait)
            if self._first_wait is not None:  # Closing a one-shot conversation would end an install.
                busy = [name for name, line in self._connections.items() if line.installing]
                await asyncio.gather(*(self._asking[name] for name in busy))
            self._report_late_servers()
        return self._take_change()

    async def before_request(self) -> bool:
        """Pick up offers that arrived or changed since the turn began. Returns True if tools changed."""
        for name, line in list(self._connections.items()):
            if line.is_connected and self._take_offer_change(name)[0]:
                await asyncio.wait([self._ask_beside(name)], timeout=CHANGE_WAIT_SECONDS)
        return self._take_change()

    def _take_offer_change(self, name: str) -> tuple[bool, bool]:
        """Return whether a server announced changed tools, and whether it is usable. A server that was never connected
        has announced nothing and is usable."""
        if (line := self._connections.get(name)) is None:
            return False, True
        changed, line.features.offers_changed = line.features.offers_changed, False
        return changed, line.is_usable

    def _ask_beside(self, name: str) -> asyncio.Task[None]:
        asking = asyncio.create_task(self._refresh_catalogue(self._get_connection(name)), name=f"mcp list {name}")
        self._asking[name] = asking
        return asking

    def _take_change(self) -> bool:
        changed, self._tools_changed = self._tools_changed, False
        return changed

    def _report_late_servers(self) -> None:
        late = {name for name, task in self._asking.items() if not task.done() and name not in self._catalogues}
        for name in sorted(late):
            self._tell(f"The MCP server {name} is still starting; its tools come when it is ready.")
        self._late |= late

    async def ask_server(self, name: str) -> Catalogue:
        """Query a server for its offers. Raises ToolFailure if that is not possible."""
        line = self._get_connection(name)
        found = await line.ask(lambda client: fetch_catalogue(client, line.server))
        self._tools_changed = self._tools_changed or found.tools != getattr(self._catalogues.get(name), "tools", None)
        self._catalogues[name] = found
        self._store.put(line.server, found)
        return found

    def get_instructions(self) -> dict[str, str]:
        """Return the instructions of each known server."""
        return {name: found.instructions for name, found in self._catalogues.items() if found.instructions}

    def list_states(self) -> list[McpServerState]:
        connected = {name for name, line in self._connections.items() if line.is_connected}
        return [
            McpServerState(server, name in connected, self._catalogues.get(name), self._failures.get(name, ""))
            for name, server in self._servers.items()
        ]

    def list_resources(self) -> list[str]:
        """List the known resources, each as `server:uri`."""
        return [f"{name}:{uri}" for name, found in self._catalogues.items() for uri in found.uris]

    async def read_resource(self, name: str, uri: str) -> str:
        """Read a resource as text."""
        answer = await self._get_connection(name).ask(lambda client: client.read_resource(uri))
        return extract_text({"type": "resource", "resource": item} for item in dump_models(answer.contents))

    def list_prompt_arguments(self, name: str, prompt: str) -> tuple[str, ...]:
        """Return a prompt's argument names in order, or nothing if the prompt is unknown."""
        offered = self._catalogues.get(name, Catalogue()).prompts
        return next((each.arguments for each in offered if each.name == prompt), ())

    async def get_prompt(self, name: str, prompt: str, arguments: dict[str, str]) -> str:
        """Get a server's prompt as text for the user to send. Arguments are checked against the server's list."""
        self._check_prompt(name, prompt, arguments)
        answer = await self._get_connection(name).ask(lambda client: client.get_prompt(prompt, arguments or None))
        return "\n\n".join(extract_text(dump_models([message.content])) for message in answer.messages)

    def _check_prompt(self, name: str, prompt: str, arguments: dict[str, str]) -> None:
        offered = {each.name: each for each in self._catalogues.get(name, Catalogue()).prompts}
        if offered and prompt not in offered:
            raise UsageError(f"{name} has no prompt {prompt}; it has {', '.join(offered)}.")
        found = offered.get(prompt)
        if found and not set(found.required) <= arguments.keys() <= set(found.arguments):
            takes = [f"{key}{'' if key in found.required else ' (optional)'}" for key in found.arguments]
            raise UsageError(f"The prompt {prompt} was not sent.", action=f"It takes {', '.join(takes) or 'nothing'}.")

    async def close(self) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)
        await asyncio.gather(*(line.close() for line in self._connections.values()))

    async def _refresh_catalogue(self, line: McpConnection) -> None:
        name = line.server.name
        try:
            found = await self.ask_server(name)
        except OllmError as error:
            if isinstance(error, ToolFailure) and error.kind == "Timeout":
                self._store.note_hang(line.server)
            if name not in self._failures:
                self._tell(str(error))
            self._failures[name] = str(error)
            self._asking.pop(name, None)
            return
        self._failures.pop(name, None)
        if name in self._late:
            self._late.discard(name)
            self._tell(f"The MCP server {name} is ready: {format_count(len(found.tools), 'tool')}.")
        for sentence in found.left_out:
            self._tell(sentence)

    def _get_connection(self, name: str) -> McpConnection:
        if name not in self._servers:
            known = ", ".join(self._servers) or "none"
            raise UsageError(f"No MCP server named {name}; available: {known}.")
        if name not in self._connections:
            self._connections[name] = self._connect(self._servers[name])
        return self._connections[name]

    def _make_call_runner(self, name: str, tool: OfferedTool) -> Run:
        async def run(arguments: JsonObject, emit: Callable[[str], None]) -> ToolResult:
            line = self._get_connection(name)

            async def report(progress: float, total: float | None, message: str | None) -> None:
                line.extend_deadlines()
                emit(format_progress(progress, total, message))

            return build_result(
                await line.ask(lambda client: client.call_tool(tool.remote, arguments, progress_callback=report))
            )

        return run

    def _make_resource_reader(self, name: str) -> Run:
        async def list_resources(client: Client) -> str:
            uris, templates = await fetch_resource_names(client)
            return "\n".join([*uris, *(f"{template} (fill in the braces)" for template in templates)]) or "None."

        async def run(arguments: JsonObject, _emit: Callable[[str], None]) -> ToolResult:
            uri = arguments.get("uri")
            line = self._get_connection(name)
            if not uri:
                text = await line.ask(list_resources)
            else:
                text = await self.read_resource(name, str(uri))
            return ToolResult(llm_content=text, return_display=text)

        return run


def format_progress(progress: float, total: float | None, message: str | None) -> str:
    """Format the progress of a call in one line."""
    done = f"{progress:g} of {total:g}" if total else f"{progress:g}"
    told = " ".join((message or "").split())[:MAX_PROGRESS_CHARACTERS]
    return f"{done}: {told}\n" if told else f"{done}\n"

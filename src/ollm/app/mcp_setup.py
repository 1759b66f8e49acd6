"""Sets up MCP servers and extensions for a conversation, only if any are configured."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.app.process import ProcessScope
from ollm.domain.text import expand_variables
from ollm.extensions.mcp.catalogue import CatalogueFile
from ollm.extensions.mcp.servers import McpServers
from ollm.extensions.mcp.settings import McpServer, read_servers

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.extensions.mcp.client_features import AskPerson
    from ollm.extensions.mcp.connection import McpConnection
    from ollm.extensions.mcp.gate import ServerGate
    from ollm.system.processes import ProcessHost
    from ollm.system.sandbox.sandbox import Sandbox


def read_configured_servers(
    process: ProcessScope, brought: Mapping[str, Any] | None = None
) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """Read the servers with their variables expanded, and the problems of invalid entries.

    Servers in the user's own file may use any variable; other servers only those passed to tools."""
    settled, notes = process.mcp_entries
    configured = {**(brought or {}), **settled}
    found, problems = read_servers(configured)
    own = process.own_settings.mcp_servers

    def fill_variables(server: McpServer) -> McpServer:
        mine = own.get(server.name) == configured[server.name]
        variables = process.environment if mine else process.tool_environment
        return msgspec.structs.replace(
            server,
            boxed=server.boxed or not mine,
            own=mine or server.name not in settled,  # An editor's server is approved word by word.
            command=expand_variables(server.command, variables),
            args=tuple(expand_variables(argument, variables) for argument in server.args),
            env={name: expand_variables(value, variables) for name, value in server.env.items()},
            url=expand_variables(server.url, variables),
            headers={name: expand_variables(value, variables) for name, value in server.headers.items()},
        )

    return tuple(fill_variables(server) for server in found), (*notes, *problems)


def open_catalogue_file(process: ProcessScope) -> CatalogueFile:
    return CatalogueFile(process.home.cache / "mcp.json", process.clock)


def create_mcp_servers(
    process: ProcessScope,
    workspace: Path,
    get_host: Callable[[], ProcessHost],
    get_sandbox: Callable[[], Sandbox],
    tell: Callable[[str], None],
    first_wait: float | None = None,
    ask: AskPerson | None = None,
    gate: ServerGate | None = None,
) -> tuple[McpServers, tuple[str, ...]]:
    """Create the servers of one conversation, none of them started, and list the problems in the settings of others.
    `get_host` and `get_sandbox` are called when a server starts. `first_wait`: seconds a first turn waits for unknown
    servers. `ask`: passes a server's questions to the person, or None in non-interactive mode. `gate`: servers from
    the front end, which need approval."""
    servers, problems = read_configured_servers(process, gate.entries if gate else None)

    def connect(server: McpServer) -> McpConnection:
        from ollm.extensions.mcp.client_features import ClientFeatures
        from ollm.extensions.mcp.connection import McpConnection
        from ollm.extensions.mcp.openers import make_opener

        logins = process.home.mcp_logins
        opener = make_opener(server, get_host(), workspace, process.tool_environment, get_sandbox(), logins)
        features = ClientFeatures(server.name, workspace, tell, ask)
        line = McpConnection(server, opener, workspace, process.tool_environment.get("PATH", os.defpath), features)
        if gate is not None and server.name not in process.mcp_entries[0]:
            line.approve = gate.approve
        return line

    return McpServers(servers, connect, open_catalogue_file(process), tell, first_wait), problems

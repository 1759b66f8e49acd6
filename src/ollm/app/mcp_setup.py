"""What people add to a conversation from outside: MCP servers and extensions, built only where some are configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ollm.app.process import ProcessScope

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.extensions.mcp.catalogue import CatalogueFile
    from ollm.extensions.mcp.servers import McpServers
    from ollm.extensions.mcp.settings import McpServer
    from ollm.system.processes import ProcessHost


def read_configured_servers(process: ProcessScope) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """The servers with their variables filled in, and what is wrong with the others.

    A server of the user's own file may name any variable; one that a workspace brings only those that tools get."""
    from ollm.extensions.mcp.settings import expand_variables, read_servers

    found, problems = read_servers(process.settings.mcp_servers)
    own = _read_user_servers(process)

    def fill_variables(server: McpServer) -> McpServer:
        mine = own.get(server.name) == process.settings.mcp_servers[server.name]
        variables = process.environment if mine else process.tool_environment
        return msgspec.structs.replace(
            server,
            command=expand_variables(server.command, variables),
            args=tuple(expand_variables(argument, variables) for argument in server.args),
            env={name: expand_variables(value, variables) for name, value in server.env.items()},
            url=expand_variables(server.url, variables),
            headers={name: expand_variables(value, variables) for name, value in server.headers.items()},
        )

    return tuple(fill_variables(server) for server in found), problems


def _read_user_servers(process: ProcessScope) -> dict[str, object]:
    if not process.trusted:
        return process.settings.mcp_servers
    from ollm.config.load import load_settings

    return load_settings(process.home, process.environment).settings.mcp_servers


def open_catalogue_file(process: ProcessScope) -> CatalogueFile:
    from ollm.extensions.mcp.catalogue import CatalogueFile

    return CatalogueFile(process.home.cache / "mcp.json", process.clock)


def create_mcp_servers(
    process: ProcessScope, workspace: Path, host: ProcessHost, tell: Callable[[str], None]
) -> tuple[McpServers, tuple[str, ...]]:
    """The servers of one conversation, none of them started, and what is wrong with the settings of others."""
    from ollm.extensions.mcp.connection import McpConnection, make_opener
    from ollm.extensions.mcp.servers import McpServers

    servers, problems = read_configured_servers(process)

    def connect(server: McpServer) -> McpConnection:
        return McpConnection(server, make_opener(server, host, workspace, process.tool_environment))

    return McpServers(servers, connect, open_catalogue_file(process), tell), problems

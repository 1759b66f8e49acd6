"""MCP servers as a conversation has them, for tests: real processes, started by a real host."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ollm.extensions.mcp.catalogue import CatalogueFile
from ollm.extensions.mcp.client_features import ClientFeatures
from ollm.extensions.mcp.connection import McpConnection
from ollm.extensions.mcp.openers import make_opener
from ollm.extensions.mcp.servers import McpServers
from ollm.extensions.mcp.settings import McpServer, read_servers
from ollm.system.paths import Boundary
from ollm.system.processes import ProcessHost
from ollm.system.sandbox.sandbox import Sandbox
from ollm.tools.framework.base import ToolContext

SERVERS = Path(__file__).parents[1] / "servers"
SCRIPT, HOSTILE_SCRIPT = str(SERVERS / "mcp_server.py"), str(SERVERS / "hostile_mcp.py")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp"}


def entry(kind: str, **more: Any) -> dict[str, Any]:
    """A server of the SDK's making when it is good, and one of ours when it is not."""
    return {"command": sys.executable, "args": [SCRIPT if kind == "good" else HOSTILE_SCRIPT, kind], **more}


class Lines:
    def __init__(self, servers: McpServers, told: list[str], workspace: Path) -> None:
        self.servers = servers
        self.told = told
        self._context = ToolContext(boundary=Boundary.around(workspace))

    @property
    def names(self) -> list[str]:
        return [spec.name for spec in self.servers.list_specs()]

    async def call(self, name: str, **arguments: Any) -> Any:
        spec = next(spec for spec in self.servers.list_specs() if spec.name == name)
        return await spec.parse(arguments).run(self._context)


@asynccontextmanager
async def lines(directory: Path, configured: dict[str, Any]) -> AsyncIterator[Lines]:
    host, told = ProcessHost(), list[str]()
    found, problems = read_servers(configured)
    assert not problems

    def connect(server: McpServer) -> McpConnection:
        state = directory.with_name(f"{directory.name}.state")
        sandbox = Sandbox(directory, Path.home(), cache=state)
        features = ClientFeatures(server.name, directory, told.append)
        opener = make_opener(server, host, directory, ENVIRONMENT, sandbox)
        return McpConnection(server, opener, directory, ENVIRONMENT["PATH"], features)

    servers = McpServers(found, connect, CatalogueFile(directory / "cache" / "mcp.json"), told.append)
    try:
        yield Lines(servers, told, directory)
    finally:
        await servers.close()
        await host.close()

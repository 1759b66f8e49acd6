"""The daemon's server in this process, on a socket of its own, against a scripted model server."""

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import open_conversation
from ollm.app.process import ProcessScope
from ollm.daemon.application import build_application
from ollm.daemon.auth import WebAccess
from ollm.daemon.client import DaemonClient, RemoteConversation, open_remote
from ollm.daemon.hub import Hub, HubLimits
from ollm.daemon.places import RunFiles
from ollm.daemon.server import DaemonServer, LoopbackPort, bind_unix, build_server_config
from ollm.daemon.service import DaemonService
from ollm.domain.events import AnyEvent
from tests.cli.screen.inside import point_at
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


class InsideDaemon:
    def __init__(self, hub: Hub, service: DaemonService, client: DaemonClient, workspace: Path, server: Any) -> None:
        self.hub, self.service, self.client, self.workspace, self.server = hub, service, client, workspace, server

    async def get(self, path: str) -> Any:
        return await self.client.call("GET", path, type=Any)

    async def post(self, path: str, **body: Any) -> Any:
        return await self.client.call("POST", path, body or None, type=Any)

    async def open(self, workspace: Path | None = None, **more: Any) -> str:
        reply = await self.post("/sessions", workspacePath=str(workspace or self.workspace), **more)
        return str(reply["sessionId"])

    async def say(self, session: str, text: str, **more: Any) -> list[AnyEvent]:
        async with self.client.stream("POST", f"/sessions/{session}/messages", {"text": text, **more}) as events:
            return [event async for event in events]

    async def converse(self) -> RemoteConversation:
        """A conversation over a line of its own."""
        return await open_remote(DaemonClient(Path(self.client._socket)), {"workspacePath": str(self.workspace)})


@asynccontextmanager
async def daemon_inside(
    directory: Path,
    patch: pytest.MonkeyPatch,
    *script: Answer | str,
    clients: int = 10,
    sessions: int = 10,
    idle: float = 600.0,
) -> AsyncIterator[InsideDaemon]:
    async with ScriptedServer(script) as server:
        workspace = point_at(patch, directory, server)
        process = ProcessScope()
        files = RunFiles(process.home)
        files.prepare()
        sockets = [bind_unix(files)]
        hub = Hub(open_conversation, HubLimits(most_clients=clients, most_sessions=sessions, idle_seconds=idle))
        service = DaemonService(process, hub)
        port = LoopbackPort(files, "token")
        access = WebAccess(files.web_file, port.open)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the framework, some hundred at each start
            web = DaemonServer(build_server_config(build_application(service, "token", access)))
        port.listen = web.add_socket
        web.config.load()
        web.lifespan = web.config.lifespan_class(web.config)
        await web.startup(sockets=sockets)
        client = DaemonClient(files.socket)
        try:
            yield InsideDaemon(hub, service, client, workspace, server)
        finally:
            await client.close()
            await hub.drain(1.0)
            await web.shutdown(sockets=sockets)

"""Runs the command in a workspace and home of its own, pointed at a scripted server."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.cli.forked import finish, run_aside
from tests.cli.forked_child import start_command
from tests.servers.openai import ScriptedServer
from tests.servers.scripted import Script


class Ended:
    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out.decode(), err.decode()


class Runner:
    """The command in a workspace and home of its own, pointed at a scripted server."""

    def __init__(self, directory: Path, server: ScriptedServer) -> None:
        self.home = directory / "home"
        self.workspace = directory / "project"
        self.workspace.mkdir()
        self.server = server

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "OLLM_HOME": str(self.home),
            "OLLM_BASE_URL": self.server.base_url,
            "OLLM_PROVIDER": "openai",
            "OLLM_MODEL": "scripted",
        }

    async def start(self, *arguments: str, writes: bool = False) -> Any:
        """The command while it runs; with `writes`, a pipe leads to its input."""
        return await start_command(arguments, self.workspace, self.environment(), writes=writes)

    async def run(self, *arguments: str, stdin: str | None = None, **variables: str) -> Ended:
        given = None if stdin is None else stdin.encode()
        line = (arguments, self.workspace, {**self.environment(), **variables}, given)
        return Ended(*await run_aside(finish, *line))

    def sessions(self) -> list[dict[str, Any]]:
        files = sorted((self.home / "sessions").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(path.read_text()) for path in files]


@asynccontextmanager
async def running(directory: Path, script: Script, **options: Any) -> AsyncIterator[Runner]:
    async with ScriptedServer(script, **options) as server:
        yield Runner(directory, server)


def texts(session: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (message["role"], "".join(part["text"] for part in message["parts"] if part["type"] == "text"))
        for message in session["messages"]
    ]

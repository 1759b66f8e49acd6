"""An editor: the protocol library's own client, against a scripted model server.

`editing` has the agent in this process, over real pipes (importing the library takes longer than most tests);
`open_editor` and `raw_agent` start `ollm acp` as an editor does.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, spawn_agent_process
from acp import schema as wire
from acp.client.connection import ClientSideConnection

from ollm.acp.connection import serve_editor
from ollm.app.process import ProcessScope
from tests.cli.forked_child import ForkedChild, start_command
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

WAIT_SECONDS = 180.0
EDIT = Answer(calls=[("edit_file", {"path": "a.txt", "edits": [{"target": "two", "replacement": "three"}]})])
Choose = Callable[[wire.ToolCallUpdate, list[wire.PermissionOption]], str | None]


class RecordingClient:
    """Keeps every update, answers questions with `choose`, and holds unsaved buffers by path."""

    def __init__(self, choose: Choose | str | None = None) -> None:
        self.choose = choose if callable(choose) else lambda _call, _options: choose
        self.updates: list[dict[str, Any]] = []
        self.asked: list[tuple[wire.ToolCallUpdate, list[wire.PermissionOption]]] = []
        self.buffers: dict[str, str] = {}
        self.saves = True  # what is written is saved, as most editors do
        self.silent = self.refuses = False
        self.read: list[str] = []
        self.written: dict[str, str] = {}
        self.asking = asyncio.Event()
        self.seen = asyncio.Condition()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        document = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.updates.append({"sessionId": session_id, **document})
        async with self.seen:
            self.seen.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: wire.ToolCallUpdate, options: list[wire.PermissionOption], **_: Any
    ) -> wire.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.asking.set()
        chosen = self.choose(tool_call, options)
        if chosen == "wait":
            await asyncio.Event().wait()
        if chosen is None:
            return wire.RequestPermissionResponse(outcome=wire.DeniedOutcome(outcome="cancelled"))
        return wire.RequestPermissionResponse(outcome=wire.AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> wire.ReadTextFileResponse:
        self.read.append(path)
        if self.silent:
            await asyncio.Event().wait()
        if path in self.buffers:
            return wire.ReadTextFileResponse(content=self.buffers[path])
        raise RequestError.resource_not_found(path)

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        if self.refuses:
            raise RequestError(-32000, "no")
        self.written[path] = self.buffers[path] = content
        if self.saves:
            Path(path).write_text(content, encoding="utf-8", newline="")

    def kinds(self) -> set[str]:
        return {update["sessionUpdate"] for update in self.updates}

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(each["content"].get("text", "") for each in self.updates if each["sessionUpdate"] == kind)

    def calls(self) -> dict[str, dict[str, Any]]:
        """Every call as it stands after all updates."""
        found: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                found.setdefault(update["toolCallId"], {}).update(update)
        return found

    async def wait_for(self, kind: str) -> dict[str, Any]:
        async with self.seen, asyncio.timeout(WAIT_SECONDS):
            await self.seen.wait_for(lambda: kind in self.kinds())
        return next(update for update in self.updates if update["sessionUpdate"] == kind)


class RunningEditor:
    """One editor with one agent process, and requests in few words."""

    def __init__(
        self,
        agent: ClientSideConnection,
        process: asyncio.subprocess.Process | None,
        client: RecordingClient,
        workspace: Path,
    ) -> None:
        self.agent, self.process, self.client, self.workspace = agent, process, client, workspace

    async def open(self, **given: Any) -> str:
        found = await self.agent.new_session(cwd=str(self.workspace), mcp_servers=[], **given)
        return found.session_id

    async def say(self, session_id: str, *blocks: Any) -> wire.PromptResponse:
        prompt = [
            wire.TextContentBlock(type="text", text=block) if isinstance(block, str) else block for block in blocks
        ]
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.agent.prompt(session_id=session_id, prompt=prompt)


def variables(directory: Path, base_url: str) -> dict[str, str]:
    return {
        **os.environ,
        "HOME": str(directory),
        "OLLM_HOME": str(directory / ".ollm"),
        "OLLM_BASE_URL": base_url,
        "OLLM_PROVIDER": "openai",
        "OLLM_MODEL": "scripted",
    }


@asynccontextmanager
async def open_editor(
    directory: Path,
    environment: dict[str, str],
    choose: Choose | str | None = None,
    capabilities: wire.ClientCapabilities | None = None,
    *options: str,
) -> AsyncIterator[RunningEditor]:
    """An initialised editor in `directory`/project."""
    workspace = directory / "project"
    workspace.mkdir(exist_ok=True)
    client: Any = RecordingClient(choose)
    command = [sys.executable, "-m", "ollm", "acp", *options]
    async with spawn_agent_process(
        client, *command, env=environment, cwd="/", use_unstable_protocol=True, transport_kwargs={"stderr": None}
    ) as (agent, process):
        await agent.initialize(protocol_version=1, client_capabilities=capabilities)
        yield RunningEditor(agent, process, client, workspace)


@asynccontextmanager
async def editing(
    directory: Path,
    script: Sequence[Answer | str],
    choose: Choose | str | None = None,
    capabilities: wire.ClientCapabilities | None = None,
    **settings: str,
) -> AsyncIterator[tuple[RunningEditor, ScriptedServer]]:
    """An initialised editor in `directory`/project, with its agent in this process."""
    workspace = directory / "project"
    workspace.mkdir(exist_ok=True)
    client: Any = RecordingClient(choose)
    async with ScriptedServer(script) as server, AsyncExitStack() as stack:
        given = pytest.MonkeyPatch()
        stack.callback(given.undo)
        for name, value in {**variables(directory, server.base_url), **settings}.items():
            given.setenv(name, value)
        to_agent, from_agent = await connect_inside(stack)
        agent = ClientSideConnection(client, to_agent, from_agent, use_unstable_protocol=True)
        stack.push_async_callback(agent.close)
        await agent.initialize(protocol_version=1, client_capabilities=capabilities)
        yield RunningEditor(agent, None, client, workspace), server


async def connect_inside(stack: AsyncExitStack) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
    """Start serving in this loop; the editor's ends of the two pipes. Leaving closes them and waits for the end."""
    (source, to_agent), (from_agent, target) = os.pipe(), os.pipe()
    serving = asyncio.create_task(serve_editor(ProcessScope(), {}, source, target))
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 27)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_agent, "rb"))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(to_agent, "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def end() -> None:
        writer.close()
        async with asyncio.timeout(WAIT_SECONDS):
            await serving
        reading.close()
        os.close(source)
        os.close(target)

    stack.push_async_callback(end)
    return writer, reader


class RawAgent:
    """`ollm acp` spoken to byte by byte."""

    def __init__(self, process: ForkedChild) -> None:
        self.process = process

    def write(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(line)

    async def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_SECONDS):
            line = await self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line)
        return found

    async def answer(self, request_id: Any) -> dict[str, Any]:
        """The answer to a request; what is said before it is passed over."""
        while True:
            message = await self.read()
            if "method" not in message and message.get("id") == request_id:
                return message


@asynccontextmanager
async def raw_agent(environment: dict[str, str]) -> AsyncIterator[RawAgent]:
    process = await start_command(["acp"], Path("/"), environment, writes=True)
    try:
        yield RawAgent(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()

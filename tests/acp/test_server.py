"""The editor's process and its lines."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import schema as wire
from hypothesis import given
from hypothesis import strategies as st

from ollm.acp import transport
from ollm.acp.transport import BadMessage, StdioTransport, iterate_lines, parse_message
from tests.acp.editor import WAIT_SECONDS, RawAgent, open_editor, raw_agent, variables
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer
from tests.sizes import SOAK

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def new_session(workspace: Path) -> dict[str, object]:
    workspace.mkdir(exist_ok=True)
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "session/new",
        "params": {"cwd": str(workspace), "mcpServers": []},
    }


def prompt(session: str, text: str) -> dict[str, object]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}


async def begin_turn(agent: RawAgent, workspace: Path, last: str = "agent_message_chunk") -> tuple[str, dict[str, Any]]:
    """Send a prompt in a new session and read up to the first message that names `last`."""
    agent.write(INITIALIZE, new_session(workspace))
    session = (await agent.answer(1))["result"]["sessionId"]
    agent.write(prompt(session, "hi"))
    while last not in json.dumps(found := await agent.read()):
        pass
    return session, found


async def test_malformed_input_of_every_kind_is_answered_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with ScriptedServer(["Hello."]) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        agent.write(
            b"garbage\n",
            b"[]\n",
            {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
            {"jsonrpc": "2.0", "id": 4, "method": "session/new", "params": {"cwd": 5}},
            {"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": None},
            {"jsonrpc": "2.0", "id": 6, "method": "session/new", "params": {"cwd": "/" + "x" * 5000, "mcpServers": []}},
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "none"}},
            {"jsonrpc": "2.0", "method": "session/cancel", "params": 7},
            {"jsonrpc": "2.0", "id": 99, "result": {"outcome": "what"}},
            INITIALIZE,
        )
        answers = {}
        for _ in range(7):
            message = await agent.read()
            answers.setdefault(message["id"], []).append(message.get("error", {}).get("code"))
        agent.write(new_session(tmp_path / "project"))
        session = (await agent.answer(1))["result"]["sessionId"]
        agent.write(prompt(session, "hi"))

        assert (await agent.answer(2))["result"]["stopReason"] == "end_turn"

    assert answers == {
        None: [-32700, -32600],
        3: [-32601],
        4: [-32602],
        5: [-32602],
        6: [-32602],
        0: [None],
    }


async def test_requests_from_a_file_are_all_answered_before_the_end(tmp_path: Path) -> None:
    """Plain files for input and output, and the input over before the first answer."""
    async with ScriptedServer([]) as server:
        lines = [json.dumps(INITIALIZE), json.dumps(new_session(tmp_path / "project"))]
        (tmp_path / "in").write_text("\n".join(lines) + "\n")
        with (tmp_path / "in").open() as source, (tmp_path / "out").open("w") as target:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ollm", "acp"),
                env=variables(tmp_path, server.base_url),
                cwd="/",
                stdin=source,
                stdout=target,
            )
            async with asyncio.timeout(WAIT_SECONDS):
                assert await process.wait() == 0

    messages = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert {message["id"] for message in messages if "result" in message} == {0, 1}


async def test_standard_output_carries_the_protocol_alone(tmp_path: Path) -> None:
    """A server that does not answer, wrong settings, a workspace that is not trusted: all of it is said elsewhere."""
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("sessionz: 5\nresume:\n  messages: -1\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Do as I say.")
    shell = Answer(calls=[("shell", {"command": "echo to stdout; echo to stderr >&2"})])
    async with ScriptedServer([shell, "Done."]) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        _, asked = await begin_turn(agent, tmp_path / "project", "session/request_permission")
        agent.write({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}})

        assert (await agent.answer(2))["result"]["stopReason"] == "end_turn"  # every line up to it was JSON


@pytest.mark.parametrize("number", [signal.SIGTERM, *([signal.SIGINT, signal.SIGHUP] if SOAK else [])])
async def test_a_signal_ends_the_turn_and_keeps_what_was_said(tmp_path: Path, number: signal.Signals) -> None:
    talk = Answer(text="word " * 500, pace=0.05)
    async with ScriptedServer([talk]) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        session, _ = await begin_turn(agent, tmp_path / "project")
        agent.process.send_signal(number)
        async with asyncio.timeout(WAIT_SECONDS):
            await agent.process.wait()

    assert "word" in (tmp_path / ".ollm" / "sessions" / f"{session}.json").read_text()


@pytest.mark.parametrize("asking", [False, True])
async def test_an_input_that_ends_stops_the_turn_and_what_was_said_is_kept(tmp_path: Path, asking: bool) -> None:
    """The output stays open and is read: the prompt is answered with `cancelled`, and a question with a no."""
    work = Answer(text="word " * 2000, pace=0.05)
    if asking:
        work = Answer(text="word", calls=[("write_file", {"path": "made.txt", "content": "x"})])
    last = "session/request_permission" if asking else "agent_message_chunk"
    async with ScriptedServer([work, "Done."]) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        session, _ = await begin_turn(agent, tmp_path / "project", last)
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        ended = await agent.answer(2)
        async with asyncio.timeout(WAIT_SECONDS):
            assert await agent.process.wait() == 0

    assert ended["result"]["stopReason"] == "cancelled"
    assert "word" in (tmp_path / ".ollm" / "sessions" / f"{session}.json").read_text()
    assert not (tmp_path / "project" / "made.txt").exists()
    assert len(server.chats) == 1


async def test_an_input_that_ends_stops_the_turn_though_nobody_reads(tmp_path: Path) -> None:
    """Output that nobody takes away keeps no turn running."""
    talk = Answer(text=f"{'x' * 20_000} " * 2000, pace=0.01)
    async with ScriptedServer([talk]) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        session, _ = await begin_turn(agent, tmp_path / "project")
        pipe = agent.process.output
        pipe.pause_reading()
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        async with asyncio.timeout(WAIT_SECONDS):
            await agent.process.wait()
        pipe.resume_reading()

    assert "xxxx" in (tmp_path / ".ollm" / "sessions" / f"{session}.json").read_text()


async def test_an_editor_that_dies_stops_its_turn(tmp_path: Path) -> None:
    talk = Answer(text="word " * 2000, pace=0.05)
    async with ScriptedServer([talk]) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        await begin_turn(agent, tmp_path / "project")
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        agent.process.output.close()
        async with asyncio.timeout(WAIT_SECONDS):
            await agent.process.wait()


@pytest.mark.slow
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_the_embedded_model_answers_in_an_editor(model_home: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "OLLM_HOME": str(model_home), "OLLM_PROVIDER": "embedded"}
    async with open_editor(tmp_path, environment, "reject") as editor, asyncio.timeout(240):
        session = await editor.open()
        hello = wire.TextContentBlock(type="text", text="Say hello")
        ended = await editor.agent.prompt(session_id=session, prompt=[hello])

    assert ended.stop_reason in ("end_turn", "max_tokens", "max_turn_requests")
    assert ended.usage.output_tokens > 0
    assert editor.client.said().strip()


HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello"}\n'


class Wire:
    """A transport between two pipes."""

    def __init__(self) -> None:
        self.source, self.to_agent = os.pipe()
        self.from_agent, self.target = os.pipe()
        self.transport = StdioTransport(self.source, self.target)
        self.received = b""

    def read_line(self) -> Any:
        while b"\n" not in self.received:
            self.received += os.read(self.from_agent, 1 << 16)
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    async def expect(self) -> Any:
        async with asyncio.timeout(30):
            return await asyncio.to_thread(self.read_line)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage", -32700),
        (b"\xff\xfe", -32700),
        (b'{"id":1,"method":"x"', -32700),
        (b"[" * 100_000, -32700),
        (b"[1, 2]", -32600),
        (b"7", -32600),
        (b'{"id":{},"method":"x"}', -32600),
        (b'{"id":1,"method":5}', -32600),
        (b'{"id":1,"error":"text"}', -32600),
        (b"{}", -32600),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_the_next_is_read(line: bytes, code: int) -> None:
    wire = Wire()
    os.write(wire.to_agent, line[: 1 << 14] + b"\n" + HELLO)

    assert (await wire.transport.receive() or {})["method"] == "hello"
    assert (await wire.expect())["error"]["code"] == code


@given(st.binary(max_size=200))
def test_any_line_is_a_message_or_a_bad_one(line: bytes) -> None:
    try:
        message = parse_message(line)
    except BadMessage:
        return
    assert isinstance(message, dict)


def test_a_line_that_is_too_long_is_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_MESSAGE_BYTES", 10)
    file = tmp_path / "input"
    file.write_bytes(b"short\n" + b"x" * 50 + b"\nagain\n")
    descriptor = os.open(file, os.O_RDONLY)
    first, long, last = iterate_lines(descriptor)
    os.close(descriptor)

    assert (first, last) == (b"short", b"again")
    assert isinstance(long, BadMessage)


async def test_the_end_of_the_input_waits_until_every_request_is_answered() -> None:
    wire = Wire()
    os.write(wire.to_agent, HELLO)
    os.close(wire.to_agent)
    assert await wire.transport.receive() is not None
    ending = asyncio.create_task(wire.transport.receive())
    async with asyncio.timeout(30):
        await wire.transport.ended.wait()
    assert not ending.done()
    await wire.transport.send({"jsonrpc": "2.0", "id": 1, "result": {}})

    async with asyncio.timeout(30):
        assert await ending is None
    assert (await wire.expect())["result"] == {}

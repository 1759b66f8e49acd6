"""Connections to MCP servers, by each transport."""

import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from ollm.domain.errors import ToolFailure
from ollm.extensions.mcp import connection, openers
from ollm.extensions.mcp.http import PlainAddressError, check_address
from ollm.extensions.mcp.settings import McpServer
from ollm.system.sandbox.sandbox import Sandbox
from tests.cli.running import running
from tests.extensions.mcp_lines import HOSTILE_SCRIPT, SCRIPT, entry, lines
from tests.extensions.raw_servers import configure, raw_entry, shown_tools
from tests.servers.answers import Answer
from tests.servers.handled import serve_with
from tests.servers.oauth_mcp import Handler, serve_oauth_mcp
from tests.servers.sse_mcp import OldMcp, serve_old_mcp


def processes(*words: str) -> list[str]:
    found = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [line for line in found if all(word in line for word in words)]


async def test_a_crash_ends_the_call_and_the_next_one_starts_the_server_again_with_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_FAILURES", 2)
    async with lines(tmp_path, {"bad": entry("crashing")}) as found:
        await found.servers.before_turn()
        with pytest.raises(ToolFailure, match=r"stopped during the call.*segfault, sort of"):
            await found.call("bad__crash")
        assert (await found.call("bad__add", a=1, b=1)).llm_content == "the sum is 2"
        for _ in range(2):
            with pytest.raises(ToolFailure, match="stopped during the call"):
                await found.call("bad__crash")
        with pytest.raises(ToolFailure, match="failed 2 times and is disabled"):
            await found.call("bad__add", a=1, b=1)


async def test_slow_calls_time_out_cancelled_ones_end_at_once_and_all_processes_end(tmp_path: Path) -> None:
    servers = {"slow": entry("forking", timeout=20), "hasty": entry("forking", timeout=4)}
    async with lines(tmp_path, servers) as found:
        await found.servers.before_turn()
        assert processes("sleep", "4711")
        call = asyncio.create_task(found.call("slow__wait", seconds=3000))
        await asyncio.sleep(0.3)
        call.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < 15
        with pytest.raises(ToolFailure, match=r"did not answer within 4 s") as raised:
            await found.call("hasty__wait", seconds=3000)
        assert raised.value.kind == "Timeout"
        assert (await found.call("hasty__add", a=1, b=1)).llm_content == "the sum is 2"

    assert not processes("sleep", "4711")
    assert not processes(HOSTILE_SCRIPT, "forking")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"error": {"code": -32000, "message": "the licence has expired"}}, "the licence has expired"),
        ({"result": {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {}}}, "(serverInfo.name: "),
        ({"result": {"protocolVersion": 3}}, "(capabilities: "),
    ],
)
async def test_a_refusal_to_begin_is_told_in_the_servers_words(
    tmp_path: Path, reply: dict[str, Any], said: str
) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", greeting=reply)})
        done = await runner.run("mcp", "test")

    assert done.code == 1
    assert said in done.out, done.out
    assert "closed its output" not in done.out
    assert "pydantic" not in done.out


async def test_a_server_that_fails_is_told_with_the_first_and_the_last_words_of_its_errors(tmp_path: Path) -> None:
    script = """import os, sys
sys.exit(f"npm error code E404 at level {os.environ['npm_config_loglevel']}\\n" + "npm error 404\\n" * 50 + "npm: the end")
"""
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"gone": {"command": sys.executable, "args": ["-c", script]}})
        done = await runner.run("mcp", "test")

    assert "last stderr: npm error code E404 at level error npm error" in done.out
    assert "npm: the end." in done.out


class ForgetfulHandler(Handler):
    """A server that knows the session it gave last, until it is started anew; it says so by the status alone."""

    known: ClassVar[set[str]] = set()
    status: ClassVar[int] = 404
    refuses_always: ClassVar[bool] = False

    def answer(self, message: dict[str, Any]) -> None:
        if message.get("method") == "initialize":
            self.known.add(session := f"s{len(self.state.asked)}")
            body = {"jsonrpc": "2.0", "id": message["id"], "result": self.state.call(message)}
            self.send(200, body, **{"Mcp-Session-Id": session})
        elif self.headers.get("mcp-session-id") not in self.known or (
            self.refuses_always and message.get("method") == "tools/call"
        ):
            self.send(self.status, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request"}})
        else:
            super().answer(message)


@pytest.mark.parametrize("status", [404, 400])
async def test_a_session_that_the_server_forgot_is_begun_anew(
    tmp_path: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForgetfulHandler, "known", known := set())
    monkeypatch.setattr(ForgetfulHandler, "status", status)
    with serve_oauth_mcp(ForgetfulHandler) as state:
        state.open_to_all = True
        async with lines(tmp_path, {"far": {"url": state.url}}) as found:
            await found.servers.before_turn()
            known.clear()
            assert (await found.call("far__whoami")).llm_content == "you are Ada"
            monkeypatch.setattr(ForgetfulHandler, "refuses_always", True)
            with pytest.raises(ToolFailure, match="The MCP server far answered with an error"):
                await found.call("far__whoami")


@asynccontextmanager
async def over_http(kind: str) -> AsyncIterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, SCRIPT, kind, "--http", str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def test_a_server_at_an_address_brings_its_tools_too(tmp_path: Path) -> None:
    async with over_http("good") as url, lines(tmp_path, {"far": {"url": url, "headers": {"X-Who": "me"}}}) as found:
        await found.servers.before_turn()
        assert found.told == []
        assert (await found.call("far__add", a=20, b=3)).llm_content == "the sum is 23"
        assert (await found.call("far__read_resource", uri="notes://today")).llm_content == "buy milk"
        failed = await found.call("far__fail")
        assert failed.error is not None
        assert (await found.call("far__inquire")).llm_content == "decline"
        await found.call("far__learn")
        async with asyncio.timeout(30):
            while "far__multiply" not in found.names:
                await found.servers.before_turn()
                await asyncio.sleep(0.05)


class NewerHandler(Handler):
    """Refuses the handshake, as a server does that only speaks the protocol without one."""

    def answer(self, message: dict[str, Any]) -> None:
        if message.get("method") == "initialize":
            error = {"code": -32022, "message": "Unsupported protocol version"}
            self.send(400, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif message.get("method") == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
            info = {"serverInfo": {"name": "newer", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
            self.send(200, {"jsonrpc": "2.0", "id": message["id"], "result": {**found, **info}})
        else:
            super().answer(message)


async def test_a_server_that_refuses_the_handshake_is_spoken_to_without_one(tmp_path: Path) -> None:
    with serve_oauth_mcp(NewerHandler) as state:
        state.open_to_all = True
        async with lines(tmp_path, {"newer": {"url": state.url}}) as found:
            await found.servers.before_turn()
            assert found.told == []
            assert found.names == ["newer__whoami"]


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://login.example/token", True),
        ("http://127.0.0.1:8/token", True),
        ("http://[::1]:8/token", True),
        ("http://lan.example:80/token", True),
        ("http://lan.example:81/token", False),
        ("http://login.example/token", False),
        ("http://127.0.0.1.example/token", False),
        ("ftp://login.example/token", False),
    ],
)
def test_a_key_goes_over_no_plain_line_but_the_configured_one(url: str, taken: bool) -> None:
    server = McpServer(name="far", url="http://lan.example:80/mcp")
    with nullcontext() if taken else pytest.raises(PlainAddressError):
        check_address(url, server)


async def test_an_answer_without_end_is_refused(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[")
            while True:
                writer.write(b"1," * 50_000)
                await writer.drain()

    async with serve_with(answer) as port:
        async with lines(tmp_path, {"endless": {"url": f"http://127.0.0.1:{port}/mcp"}}) as found:
            await found.servers.before_turn()

    assert "The MCP server endless cannot be used" in found.told[0]


async def test_an_address_where_nobody_answers_is_told(tmp_path: Path) -> None:
    async with lines(tmp_path, {"gone": {"url": "http://127.0.0.1:9/mcp"}}) as found:
        await found.servers.before_turn()

    assert len(found.told) == 1
    assert "The MCP server gone cannot be used" in found.told[0]


def make_tool(name: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object", "properties": {"a": schema}}}


class DeepHandler(Handler):
    """One tool of three has a schema that is nested 80 deep; `events`: it answers with events."""

    events = False

    def answer(self, message: dict[str, Any]) -> None:
        if message.get("method") != "tools/list":
            super().answer(message)
            return
        tools = [make_tool("first", 2), make_tool("deep", 80), make_tool("last", 2)]
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}).encode()
        if self.events:
            body = b"event: message\ndata: " + body + b"\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if self.events else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize("events", [False, True])
async def test_a_tool_nested_too_deeply_loses_itself_and_not_its_server(tmp_path: Path, events: bool) -> None:
    with serve_oauth_mcp(type("Deep", (DeepHandler,), {"events": events})) as state:
        state.open_to_all = True
        async with running(tmp_path, ["Hi."]) as runner:
            configure(runner, mcpServers={"far": {"url": state.url}})
            done = await runner.run("-p", "hi")

    assert {"far__first", "far__last"} <= set(shown_tools(runner.server.chats[0])), done.err
    assert "deep of the MCP server far was skipped: its parameters are nested too deeply." in done.err


@pytest.fixture
def old() -> Iterator[OldMcp]:
    with serve_old_mcp() as state:
        yield state


async def test_a_stream_that_ends_or_refuses_ends_the_call_and_the_next_one_begins_anew(
    tmp_path: Path, old: OldMcp
) -> None:
    names = ("hang_up", "greet", "garble", "refuse", "greet", "greet")
    script = [*(Answer(calls=[(f"old__{name}", {})]) for name in names), "Done."]
    async with running(tmp_path, script) as runner:
        shared = {"url": old.url, "headers": {"X-Who": "me"}}
        configure(runner, mcpServers={"old": {"type": "sse", **shared}})
        done = await runner.run("-p", "go", "--yes", "-o", "json")

    said = [str(chat["messages"][-1]["content"]) for chat in runner.server.chats[1:]]
    assert [made["status"] for made in json.loads(done.out)["toolCalls"]] == [
        *("failed", "ok", "failed", "ok", "failed", "ok"),
    ], said
    assert "it closed its stream of events" in said[0]
    assert "its answer does not follow MCP" in said[2]
    assert "it refused a message (HTTP 404)" in said[4]
    assert (len(old.streams), set(old.headers)) == (4, {"me"})
    assert "Traceback" not in done.err


async def test_a_server_is_added_with_its_transport_and_tried(tmp_path: Path, old: OldMcp) -> None:
    async with running(tmp_path, []) as runner:
        assert (await runner.run("mcp", "add", "--transport", "sse", "old", old.url)).code == 0
        assert "type: sse" in (runner.home / "config.yaml").read_text(encoding="utf-8")
        tried = await runner.run("mcp", "test", "old")
        await runner.run("mcp", "add", "untold", "--url", old.url)
        failed = await runner.run("mcp", "test", "untold")

    assert "greet" in tried.out
    assert (failed.code, "an older server that streams events needs type: sse" in failed.out) == (1, True), failed.out


async def test_a_stream_that_never_names_its_address_is_told(tmp_path: Path, old: OldMcp) -> None:
    old.names_address = False
    async with lines(tmp_path, {"slow": {"type": "sse", "url": old.url, "startTimeout": 1}}) as found:
        await found.servers.before_turn()

    assert any("The MCP server slow cannot be used: no initialize reply" in line for line in found.told), found.told


async def test_a_server_that_is_a_program_brings_tools_prompts_and_resources(tmp_path: Path) -> None:
    async with lines(tmp_path, {"good": entry("good")}) as found:
        assert await found.servers.before_turn()

        assert {"good__add", "good__wait", "good__read_resource"} <= set(found.names)
        assert (await found.call("good__add", a=2, b=3)).llm_content == "the sum is 5"
        assert "notes://today" in (await found.call("good__read_resource")).llm_content
        assert (await found.call("good__read_resource", uri="notes://today")).llm_content == "buy milk"
        assert await found.servers.get_prompt("good", "review", {"language": "Ada"}) == "Review the Ada code here."
        failed = await found.call("good__fail")
        assert "it is broken" in failed.error.message
        with pytest.raises(ToolFailure, match="a: is missing"):
            await found.call("good__add", b=1)
        kept = (await found.call("good__variables")).llm_content.split()
        assert "PATH" in kept
        assert "VIRTUAL_ENV" not in kept
        assert not await found.servers.before_turn()
        await found.call("good__learn")
        for _ in range(100):
            if await found.servers.before_turn():
                break
            await asyncio.sleep(0.05)
        assert "good__multiply" in found.names


async def test_hostile_servers_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openers, "MAX_UNASKED_MESSAGES", 500)
    configured = {
        "odd": entry("garbage,huge,shadowing,flooding", timeout=30),
        "talkative": entry("talkative", timeout=30),
        "broken": entry("broken"),
        "missing": {"command": "/no/such/program"},
    }
    async with lines(tmp_path, configured) as found:
        await found.servers.before_turn()

        told = "\n".join(found.told)
        assert "MCP server missing cannot be started: there is no program" in told
        assert "MCP server broken cannot be used" in told
        assert "no such database" in told
        assert "enormous of the MCP server odd was skipped: its parameter schema is" in told
        assert "odd has more than 128 tools" in told
        assert (await found.call("odd__add", a=1, b=1)).llm_content == "the sum is 2"
        assert all(name.count("__") >= 1 and len(name) <= 64 for name in found.names)
        assert all(name.isascii() and name.replace("_", "").replace("-", "").isalnum() for name in found.names)
        assert "odd__read_file" in found.names
        assert "read_file" not in found.names
        with pytest.raises(ToolFailure, match="line of more than 8 MiB"):
            await found.call("odd__flood")
        with pytest.raises(ToolFailure, match="unsolicited messages"):
            await found.call("talkative__chatter")


async def test_what_a_server_offered_is_known_at_the_next_start_without_starting_it(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    configured = {"good": entry("good", env={"TRACE": str(trace)})}
    async with lines(tmp_path, configured) as found:
        await found.servers.before_turn()
        names = found.names
    async with lines(tmp_path, configured) as again:
        assert again.names == names
        began = time.monotonic()
        assert not await again.servers.before_turn()
        assert time.monotonic() - began < 15
    assert trace.read_text().count("started") == 1
    async with lines(tmp_path, {"good": entry("good", env={"TRACE": str(trace), "OTHER": "1"})}) as other:
        assert other.names == []


async def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    async with lines(tmp_path, {"silent": entry("silent", startTimeout=0.3)}) as found:
        await found.servers.before_turn()

    assert "silent cannot be used: no initialize reply within 0.3 s" in found.told[0]


INSTALLER = f"""
import os, runpy, sys, time
half = os.path.join(os.environ["npm_config_cache"], "half")
if os.path.exists(half):
    sys.exit("ERR_MODULE_NOT_FOUND " + half)
os.makedirs(os.path.dirname(half), exist_ok=True)
for step in range(6):
    with open(half, "ab") as file:
        file.write(bytes(1 << 20))
    if os.environ["FAILS"] == "yes":
        sys.exit("x\\n" * 4000 + "the registry went away")
    time.sleep(0.5)
os.rename(half, half + ".whole")
sys.argv = [{SCRIPT!r}, "good"]
runpy.run_path({SCRIPT!r}, run_name="__main__")
"""


async def test_a_slow_install_is_told_and_not_cut_off_and_a_half_one_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if Sandbox(tmp_path, Path.home(), cache=tmp_path).level == "none":
        pytest.skip("a server has a folder of its own in the sandbox alone")
    monkeypatch.setattr(connection, "FIRST_NEWS_SECONDS", 1.0)
    (tmp_path / "install.py").write_text(INSTALLER)
    started = {"command": sys.executable, "args": [str(tmp_path / "install.py")], "startTimeout": 2}
    async with lines(tmp_path, {"slow": {**started, "startTimeout": 30, "env": {"FAILS": "yes"}}}) as failed:
        await failed.servers.before_turn()
    async with lines(tmp_path, {"slow": {**started, "env": {"FAILS": "no"}}}) as found:
        await found.servers.before_turn()
        assert (await found.call("slow__add", a=1, b=1)).llm_content == "the sum is 2"

    assert "the registry went away" in failed.told[0]
    assert "Check its command, then `ollm mcp test slow`" in failed.told[0]
    assert re.match(r"Installing the MCP server slow: \d\.\d MB so far\.", found.told[0])

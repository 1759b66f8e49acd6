"""MCP servers: real processes made with the official SDK, good ones and hostile ones."""

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from ollm.domain.errors import ToolFailure
from ollm.extensions.mcp import connection, stdio
from ollm.extensions.mcp.catalogue import make_tool_name
from ollm.extensions.mcp.settings import expand_variables, read_servers
from tests.extensions.mcp_lines import SCRIPT, entry, lines


def processes(*words: str) -> list[str]:
    found = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [line for line in found if all(word in line for word in words)]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time to start a server."""
    monkeypatch.setattr("ollm.extensions.mcp.servers.FIRST_WAIT_SECONDS", 30.0)


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
        assert time.monotonic() - began < 1
    assert trace.read_text().count("started") == 1
    async with lines(tmp_path, {"good": entry("good", env={"TRACE": str(trace), "OTHER": "1"})}) as other:
        assert other.names == []


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
    async with lines(tmp_path, {"slow": entry("forking", timeout=20)}) as found:
        await found.servers.before_turn()
        assert processes("sleep", "4711")
        call = asyncio.create_task(found.call("slow__wait", seconds=3000))
        await asyncio.sleep(0.3)
        call.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < 5
        line = found.servers._get_connection("slow")
        line.server = read_servers({"slow": entry("forking", timeout=0.2)})[0][0]
        with pytest.raises(ToolFailure, match=r"did not answer within 0.2 s") as raised:
            await found.call("slow__wait", seconds=3000)
        assert raised.value.kind == "Timeout"
        line.server = read_servers({"slow": entry("forking", timeout=20)})[0][0]
        assert (await found.call("slow__add", a=1, b=1)).llm_content == "the sum is 2"

    assert not processes("sleep", "4711")
    assert not processes(SCRIPT, "forking")


async def test_hostile_servers_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_UNASKED_MESSAGES", 500)
    configured = {
        "odd": entry("garbage,huge,shadowing,flooding", timeout=30),
        "talkative": entry("talkative", timeout=30),
        "broken": entry("broken"),
        "missing": {"command": "/no/such/program"},
    }
    async with lines(tmp_path, configured) as found:
        await found.servers.before_turn()

        told = "\n".join(found.told)
        assert "MCP server missing cannot be started: No such file or directory" in told
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


async def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    async with lines(tmp_path, {"silent": entry("silent", startTimeout=0.3)}) as found:
        await found.servers.before_turn()

    assert "silent cannot be used: no initialize reply within 0.3 s" in found.told[0]


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


async def test_an_answer_without_end_is_refused(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[")
            while True:
                writer.write(b"1," * 50_000)
                await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, lines(tmp_path, {"endless": {"url": f"http://127.0.0.1:{port}/mcp"}}) as found:
        await found.servers.before_turn()

    assert "The MCP server endless cannot be used" in found.told[0]


async def test_an_address_where_nobody_answers_is_told(tmp_path: Path) -> None:
    async with lines(tmp_path, {"gone": {"url": "http://127.0.0.1:9/mcp"}}) as found:
        await found.servers.before_turn()

    assert len(found.told) == 1
    assert "The MCP server gone cannot be used" in found.told[0]


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        ({"a b": {"command": "x"}}, "mcpServers.a b: expected a name of"),
        ({"a__b": {"command": "x"}}, "a name of"),
        ({"a": "x"}, "a mapping with command or url"),
        ({"a": {}}, "either command or url"),
        ({"a": {"command": "x", "url": "http://x"}}, "either command or url"),
        ({"a": {"command": ""}}, "command: expected"),
        ({"a": {"url": "file:///x"}}, "url: expected"),
        ({"a": {"command": "x", "args": "y"}}, "args: expected"),
        ({"a": {"command": "x", "env": ["y"]}}, "env: expected a mapping"),
        ({"a": {"command": "x", "startTimeout": -1}}, "startTimeout: expected"),
        ({"a": {"command": "x", "include": "y"}}, "include: expected"),
        ({"a": {"command": "x", "timeout": 0}}, "timeout: expected"),
        ({"a": {"command": "x", "type": "sse"}}, "type: expected stdio or http"),
    ],
)
def test_a_mistake_in_a_server_is_told_and_the_others_stand(configured: dict[str, object], said: str) -> None:
    servers, problems = read_servers({**configured, "good": {"command": "y", "args": [1], "env": {"A": 2}}})

    assert [(server.name, server.args, server.env) for server in servers] == [("good", ("1",), {"A": "2"})]
    assert len(problems) == 1
    assert said in problems[0]


def test_variables_are_filled_in() -> None:
    known = {"TOKEN": "t"}

    assert (
        expand_variables("Bearer ${TOKEN} ${OTHER:-none} ${UNKNOWN} $TOKEN", known) == "Bearer t none ${UNKNOWN} $TOKEN"
    )


def test_two_odd_names_do_not_become_one() -> None:
    assert make_tool_name("s", "a b") != make_tool_name("s", "a_b") == "s__a_b"
    assert make_tool_name("s", "x" * 200) != make_tool_name("s", "x" * 201)

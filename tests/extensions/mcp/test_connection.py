"""The line to one MCP server: crashes, time limits, ends."""

import asyncio
import time
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from ollm.domain.errors import ToolFailure
from ollm.extensions.mcp import connection
from ollm.extensions.mcp.settings import read_servers
from tests.cli.running import running
from tests.extensions.mcp_lines import HOSTILE_SCRIPT, entry, lines
from tests.extensions.raw_servers import configure, raw_entry
from tests.servers.oauth_mcp import Handler, serve_oauth_mcp


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
    async with lines(tmp_path, {"slow": entry("forking", timeout=20)}) as found:
        await found.servers.before_turn()
        assert processes("sleep", "4711")
        call = asyncio.create_task(found.call("slow__wait", seconds=3000))
        await asyncio.sleep(0.3)
        call.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < 15
        line = found.servers._get_connection("slow")
        line.server = read_servers({"slow": entry("forking", timeout=0.2)})[0][0]
        with pytest.raises(ToolFailure, match=r"did not answer within 0.2 s") as raised:
            await found.call("slow__wait", seconds=3000)
        assert raised.value.kind == "Timeout"
        line.server = read_servers({"slow": entry("forking", timeout=20)})[0][0]
        assert (await found.call("slow__add", a=1, b=1)).llm_content == "the sum is 2"

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

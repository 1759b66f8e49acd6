"""MCP servers of the older kind over HTTP, through the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running
from tests.extensions.mcp_lines import lines
from tests.extensions.raw_servers import configure
from tests.servers.answers import Answer
from tests.servers.sse_mcp import OldMcp, serve_old_mcp


@pytest.fixture
def old() -> Iterator[OldMcp]:
    with serve_old_mcp() as state:
        yield state


async def test_a_server_that_streams_events_is_used_however_its_entry_calls_it(tmp_path: Path, old: OldMcp) -> None:
    told: dict[str, dict[str, Any]] = {"sse": {"type": "sse"}, "plain": {}, "http": {"type": "http"}}
    async with running(tmp_path, [Answer(calls=[(f"{name}__greet", {}) for name in told]), "Hello."]) as runner:
        shared = {"url": old.url, "headers": {"X-Who": "me"}}
        configure(runner, mcpServers={name: {**shared, **more} for name, more in told.items()})
        done = await runner.run("-p", "greet", "--yes", "-o", "json")

    assert [made["status"] for made in json.loads(done.out)["toolCalls"]] == ["ok"] * 3, done.err
    assert str(runner.server.chats[1]["messages"]).count("hello from the past") == 3
    assert set(old.headers) == {"me"}
    assert "Traceback" not in done.err


async def test_a_stream_that_ends_or_refuses_ends_the_call_and_the_next_one_begins_anew(
    tmp_path: Path, old: OldMcp
) -> None:
    names = ("hang_up", "greet", "refuse", "greet", "greet")
    script = [*(Answer(calls=[(f"old__{name}", {})]) for name in names), "Done."]
    async with running(tmp_path, script) as runner:
        configure(runner, mcpServers={"old": {"type": "sse", "url": old.url}})
        done = await runner.run("-p", "go", "--yes", "-o", "json")

    said = [str(chat["messages"][-1]["content"]) for chat in runner.server.chats[1:]]
    assert [made["status"] for made in json.loads(done.out)["toolCalls"]] == ["failed", "ok", "ok", "failed", "ok"], (
        said
    )
    assert "it closed its stream of events" in said[0]
    assert "it refused a message (HTTP 404)" in said[3]
    assert len(old.streams) == 3
    assert "Traceback" not in done.err


async def test_a_server_is_added_with_its_transport_and_tried(tmp_path: Path, old: OldMcp) -> None:
    async with running(tmp_path, []) as runner:
        assert (await runner.run("mcp", "add", "--transport", "sse", "old", old.url)).code == 0
        assert "type: sse" in (runner.home / "config.yaml").read_text(encoding="utf-8")
        tried = await runner.run("mcp", "test", "old")

    assert "greet" in tried.out


async def test_a_stream_that_never_names_its_address_is_told(
    tmp_path: Path, old: OldMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.names_address = False
    monkeypatch.setattr("ollm.extensions.mcp.http.GREETING_TIMEOUT_SECONDS", 0.2)
    async with lines(
        tmp_path, {"old": {"url": old.url}, "slow": {"type": "sse", "url": old.url, "startTimeout": 1}}
    ) as found:
        await found.servers.before_turn()

    assert any("The MCP server old cannot be used" in line for line in found.told), found.told
    assert any("The MCP server slow cannot be used: no initialize reply" in line for line in found.told), found.told

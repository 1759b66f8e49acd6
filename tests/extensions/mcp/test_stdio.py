"""MCP servers that are programs, some of them hostile."""

import asyncio
from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.extensions.mcp import openers
from tests.extensions.mcp_lines import entry, lines


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

"""The MCP servers of one conversation."""

import time
from pathlib import Path

from tests.extensions.mcp_lines import entry, lines


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

"""Which way a line to a server is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from ollm.extensions.mcp.openers import make_opener
from ollm.extensions.mcp.settings import McpServer
from ollm.system.processes import ProcessHost
from ollm.system.sandbox.sandbox import Sandbox


@pytest.mark.parametrize(
    ("server", "way"),
    [
        (McpServer(name="a", command="cat"), "open_program"),
        (McpServer(name="a", url="http://127.0.0.1/mcp"), "open_address"),
        (McpServer(name="a", url="http://127.0.0.1/sse", transport="sse"), "open_address"),
    ],
)
def test_a_program_is_started_and_an_address_called(tmp_path: Path, server: McpServer, way: str) -> None:
    opener = make_opener(server, ProcessHost(), tmp_path, {}, Sandbox(tmp_path, tmp_path))
    assert opener.__name__ == way  # type: ignore[attr-defined]

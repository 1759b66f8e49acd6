"""MCP servers that offer what a test tells them, configured for a command in a home of its own."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.running import Runner

SCRIPT = str(Path(__file__).parents[1] / "servers" / "raw_mcp.py")


def raw_entry(directory: Path, name: str, **setup: Any) -> dict[str, Any]:
    """The `mcpServers` entry of a server that offers `setup`."""
    file = directory / f"{name}.mcp.json"
    file.write_text(json.dumps(setup), encoding="utf-8")
    return {"command": sys.executable, "args": [SCRIPT, str(file)]}


def configure(runner: Runner, **settings: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")


def shown_tools(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {tool["function"]["name"]: tool["function"] for tool in request.get("tools", ())}

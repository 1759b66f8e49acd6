"""What real MCP servers said, replayed through the command in the usual run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.integration.mcp_cases import BY_NAME, CASES, McpCase, check_cases

RECORDED = Path(__file__).with_name("recorded")
REPLAY = str(Path(__file__).parents[1] / "servers" / "recorded_mcp.py")


def test_every_server_is_recorded_with_version_and_date() -> None:
    for name, case in BY_NAME.items():
        recording = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
        assert recording["server"] == case.package
        assert recording["version"]
        assert recording["date"]


async def test_a_model_calls_all_recorded_servers_in_one_turn(tmp_path: Path) -> None:
    def make_entry(case: McpCase, workspace: Path) -> dict[str, Any]:
        return {"command": sys.executable, "args": [REPLAY, str(RECORDED / f"{case.name}.json"), str(workspace)]}

    await check_cases(tmp_path, CASES, make_entry)

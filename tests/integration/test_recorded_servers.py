"""What real MCP servers said, replayed through the command in the usual run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.mcp_cases import BY_NAME, CASES, check_case

RECORDED = Path(__file__).with_name("recorded")
REPLAY = str(Path(__file__).parents[1] / "servers" / "recorded_mcp.py")


def test_every_server_is_recorded_with_version_and_date() -> None:
    for name, case in BY_NAME.items():
        recording = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
        assert recording["server"] == case.package
        assert recording["version"]
        assert recording["date"]


@pytest.mark.parametrize("name", [case.name for case in CASES])
async def test_a_model_calls_a_recorded_server(tmp_path: Path, name: str) -> None:
    def make_entry(workspace: Path) -> dict[str, Any]:
        return {"command": sys.executable, "args": [REPLAY, str(RECORDED / f"{name}.json"), str(workspace)]}

    await check_case(tmp_path, BY_NAME[name], make_entry)

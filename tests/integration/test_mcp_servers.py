"""Real MCP servers through the command; with RECORD=1 what they said is written down for the usual tests."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration import packages, recordings, wire_tap
from tests.integration.mcp_cases import CASES, WORKSPACE_MARK, McpCase, check_cases, fill_in

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")


def install_server(case: McpCase) -> tuple[Path, str]:
    install = packages.install_npm if case.registry == "npm" else packages.install_pypi
    try:
        return install(case.package, case.program)
    except packages.UnavailableError as error:
        pytest.skip(f"{case.package}: {error}")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_model_calls_a_real_server(tmp_path: Path, case: McpCase) -> None:
    program, version = install_server(case)
    lines = tmp_path / "project" / "lines.log"

    def make_entry(case: McpCase, workspace: Path) -> dict[str, Any]:
        tap = [wire_tap.__file__, str(program), *fill_in(list(case.args), workspace)]
        return {"command": sys.executable, "args": tap, "env": {**fill_in(case.env, workspace), "WIRE_TAP": str(lines)}}

    await check_cases(tmp_path, [case], make_entry)

    if packages.RECORD:
        write_recording(case, version, lines, tmp_path / "project")


def write_recording(case: McpCase, version: str, lines: Path, workspace: Path) -> None:
    exchanges = drop_repeated(wire_tap.load_exchanges(lines))
    made = {
        "server": case.package,
        "version": version,
        "date": datetime.now(UTC).date().isoformat(),
        "exchanges": exchanges,
    }
    recordings.write_recording(case.name, made, {str(workspace): WORKSPACE_MARK})


def drop_repeated(exchanges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each start of the server asks the same things: once is enough."""
    kept: dict[str, dict[str, Any]] = {}
    for exchange in exchanges:
        params = {key: value for key, value in (exchange["params"] or {}).items() if key != "_meta"}
        kept.setdefault(json.dumps([exchange["method"], params]), {**exchange, "params": params})
    return list(map(recordings.drop_unread, kept.values()))

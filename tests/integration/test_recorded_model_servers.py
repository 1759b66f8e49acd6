"""What real model servers said, replayed through the command in the usual run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Ended, Runner
from tests.integration.model_cases import CASES, SCENARIOS
from tests.integration.model_tap import ReplayedModelServer

RECORDED = Path(__file__).with_name("recorded")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_recorded_server_is_understood(tmp_path: Path, name: str, scenario: str) -> None:
    case = CASES[name]
    recording = json.loads((RECORDED / f"model-{name}.json").read_text(encoding="utf-8"))
    async with ReplayedModelServer(recording["scenarios"][scenario]) as server:
        runner = Runner(tmp_path, server)

        async def run(*arguments: str, **variables: str) -> Ended:
            return await runner.run(*arguments, **{"OLLM_MODEL": case.model, **variables})

        await SCENARIOS[scenario](case, run, runner.home)

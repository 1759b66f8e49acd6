"""Summaries no one can use, through the command: the turn is answered, what was asked stays, nothing of it is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.context_simulation.scenario import ScriptedTurn, Step
from bench.context_simulation.server import FACT_FREE, REFUSAL, CountingServer
from bench.context_simulation.tokenizer import ByteTokenizer

from tests.cli.command import ollm
from tests.covers import covers
from tests.sizes import size

TALK = "We went through the module once more and found nothing that speaks against it. " * 40
MARKS = {
    "refusal": REFUSAL[:40],
    "garbage": "lorem <|x|>",
    "fact-free": FACT_FREE[8:50],
    "empty": "",
    "copied": "<record>",
    "inflated": "item number 399",
    "hang": "- late",
    "foreign": "用户和助手",
}


def tell(number: int) -> str:
    return f"The settings of billing-{number} live in /etc/billing/{number}.toml on port 90{number}1. {TALK}"


@covers("S10.3")
@pytest.mark.soak
@pytest.mark.parametrize("kind", list(MARKS)[: size(2, len(MARKS))])
def test_a_bad_summary_costs_no_turn_and_no_fact(tmp_path: Path, kind: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    home.mkdir()
    (home / "config.yaml").write_text("compression: {timeout: 1}\n", "utf-8")
    server = CountingServer(ByteTokenizer(), 4096, summaries=kind, hang_seconds=120)
    with server:
        for number in range(1, 6):
            server.play(ScriptedTurn(number, tell(number), (Step(text="I read it. " * 30),)))
            again = ["--continue"] if number > 1 else []
            ended = ollm(
                *("-p", tell(number), *again, "-o", "json"),
                home=home,
                cwd=project,
                OLLM_PROVIDER="openai",
                OLLM_BASE_URL=server.base_url,
                OLLM_MODEL="counting",
                OLLM_CONTEXT_WINDOW="4096",
            )
            assert ended.returncode == 0, ended.stderr
            assert json.loads(ended.stdout)["reason"] == "answered"
        server.left.set()
    last = [heard for heard in server.heard if not heard.summary][-1].text

    assert any(heard.summary for heard in server.heard[1:])
    assert all(f"/etc/billing/{number}.toml" in last for number in range(1, 6))
    assert not MARKS[kind] or MARKS[kind] not in last
    assert all(heard.prompt_tokens + heard.max_tokens <= 4096 for heard in server.heard[1:])

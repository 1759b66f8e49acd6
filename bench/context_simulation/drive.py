"""Plays a scenario through the library or the command."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.context_simulation.figures import Figures, measure
from bench.context_simulation.held_out import HELD_OUT_MIXES
from bench.context_simulation.scenario import Scenario, ScriptedTurn
from bench.context_simulation.server import CountingServer
from bench.context_simulation.shapes import ChattyScenario, LongResultScenario, ToolScenario
from bench.context_simulation.tokenizer import Tokenizer

REOPEN_EVERY_TURNS = 50
COMMAND = str(Path(sys.executable).parent / "ollm")
MIXES: dict[str, type[Scenario]] = {
    "mixed": Scenario,
    "chatty": ChattyScenario,
    "tools": ToolScenario,
    "long": LongResultScenario,
    **HELD_OUT_MIXES,
}
GRANTS = ("edit_file",)


@dataclass
class Run:
    """One conversation to be played. `served` is the server's window, when it is another than what we are told."""

    window: int
    seed: int = 1
    turns: int = 300
    way: str = "library"
    served: int | None = None
    told: bool = True  # the window is configured; otherwise the server's list of models says it
    refuses: str = ""
    clamps: bool = False
    reports: bool = True
    summaries: str = "good"
    rare: bool = False
    mix: str = "mixed"  # whose turns are played
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    figures: Figures
    server: CountingServer
    home: Path
    workspace: Path
    scenario: Scenario
    notices: list[str]
    reasons: list[str]


def play(run: Run, tokenizer: Tokenizer, root: Path | None = None) -> Outcome:
    root = root or Path(tempfile.mkdtemp(prefix="ollm-simulation-"))
    home, workspace = root / "home", root / "project"
    workspace.mkdir(parents=True, exist_ok=True)
    scenario = MIXES[run.mix](run.seed, run.turns, rare=run.rare)
    scenario.write_files(workspace)
    played = list(scenario.played())
    server = CountingServer(
        tokenizer,
        run.served or run.window,
        said_window=None if run.told else run.window,
        refuses=run.refuses,
        clamps=run.clamps,
        reports=run.reports,
        summaries=run.summaries,
    )
    begin = time.monotonic()
    notices: list[str] = []
    with server:
        ways = {"library": _by_library, "command": _by_command}
        reasons = ways[run.way](run, server, played, (home, workspace), notices)
    figures = measure(server.heard, played, scenario.facts, run.served or run.window, tokenizer)
    figures.unanswered = sum(reason != "answered" for reason in reasons)
    figures.seconds = time.monotonic() - begin
    return Outcome(figures, server, home, workspace, scenario, notices, reasons)


def _provider(run: Run, server: CountingServer) -> dict[str, Any]:
    provider = {"type": "openai", "baseUrl": server.base_url, "model": "counting"}
    return {**provider, "contextWindow": run.window} if run.told else provider


def _by_library(
    run: Run, server: CountingServer, played: list[ScriptedTurn], places: tuple[Path, Path], notices: list[str]
) -> list[str]:
    os.environ["OLLM_HOME"] = str(places[0])
    reasons: list[str] = []
    for start in range(0, len(played), REOPEN_EVERY_TURNS):
        part = played[start : start + REOPEN_EVERY_TURNS]
        reasons += asyncio.run(_talk(run, server, part, places[1], notices, first=start == 0))
    return reasons


async def _talk(
    run: Run, server: CountingServer, part: Iterable[ScriptedTurn], workspace: Path, notices: list[str], *, first: bool
) -> list[str]:
    from ollm import ConversationOptions, TurnFinished, open_conversation

    flags = {"provider": _provider(run, server), **run.settings}
    options = ConversationOptions(workspace=workspace, newest=not first, flags=flags, grants=GRANTS)
    reasons: list[str] = []
    async with open_conversation(options) as conversation:
        for turn in part:
            server.play(turn)
            async with conversation.turn(turn.text) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        reasons.append(event.reason)
                    elif text := getattr(event, "text", "") if event.__class__.__name__ == "Notice" else "":
                        notices.append(f"{turn.number}: {text}")
    return reasons


def _by_command(
    run: Run, server: CountingServer, played: list[ScriptedTurn], places: tuple[Path, Path], notices: list[str]
) -> list[str]:
    provider = _provider(run, server)
    environment = {
        **os.environ,
        "OLLM_HOME": str(places[0]),
        "OLLM_PROVIDER": "openai",
        "OLLM_BASE_URL": str(provider["baseUrl"]),
        "OLLM_MODEL": "counting",
        **({"OLLM_CONTEXT_WINDOW": str(run.window)} if run.told else {}),
    }
    reasons: list[str] = []
    for turn in played:
        server.play(turn)
        again = ["--continue"] if turn.number > 1 else []
        done = subprocess.run(
            [COMMAND, "-p", turn.text, *again, "--allow", *GRANTS],
            cwd=places[1],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        reasons.append("answered" if done.returncode == 0 else f"exit {done.returncode}")
        notices.extend(f"{turn.number}: {line}" for line in done.stderr.splitlines())
    return reasons

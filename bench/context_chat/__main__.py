"""`OLLM_BASE_URL=http://127.0.0.1:8080/v1 python -m bench.context_chat`: sixty turns by the command with a real model.

Each turn is a process, `ollm -p --continue`. Every request passes a relay of ours that notes what the server counted. A
folder given with --folder is kept, and a chat that stopped (--seconds) goes on in it when the command is run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.context_chat.figures import TurnFigures, describe_chat, describe_turn, measure_turn
from bench.context_chat.relay import Relay
from bench.context_chat.script import ChatTurn, play_turns, write_files

GRANTS = ("--approval", "accept-edits", "--allow", "shell:cat build.log")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.context_chat", description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--window", type=int, default=8192)
    parser.add_argument("--folder", type=Path, help="keeps the session and the log; a chat in it is gone on with")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no turn after this long")
    parser.add_argument("--turn-seconds", type=float, default=900.0, help="a turn that takes longer has failed")
    asked = parser.parse_args()
    url = os.environ.get("OLLM_BASE_URL", "")
    if not url:
        parser.error("OLLM_BASE_URL names no server")
    if asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
        return chat(asked, url, asked.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="ollm-chat-") as folder:
        return chat(asked, url, Path(folder))


def chat(asked: argparse.Namespace, url: str, folder: Path) -> int:
    log, project, begin = folder / "turns.jsonl", folder / "project", time.monotonic()
    done = [TurnFigures(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    if not project.exists():
        write_files(project)
    with Relay(url.rstrip("/").removesuffix("/v1")) as relay:
        for turn in list(play_turns(asked.turns))[len(done) :]:
            if time.monotonic() - begin > asked.seconds:
                break
            figures = take_turn(turn, relay, folder, asked)
            done.append(figures)
            with log.open("a", encoding="utf-8") as file:
                file.write(figures.to_line() + "\n")
            print(describe_turn(figures, asked.window), flush=True)
    print("\n".join(["", *describe_chat(done, asked.window)]))
    if len(done) < asked.turns:
        print(f"\nStopped after turn {len(done)}; the same command with --folder {folder} goes on.")
    return 1 if any(one.over or one.sum_over or one.ended != "answered" for one in done) else 0


def take_turn(turn: ChatTurn, relay: Relay, folder: Path, asked: argparse.Namespace) -> TurnFigures:
    environment = {
        **os.environ,
        "OLLM_HOME": str(folder / "home"),
        "OLLM_PROVIDER": "openai",
        "OLLM_BASE_URL": f"{relay.root}/v1",
        "OLLM_CONTEXT_WINDOW": str(asked.window),
    }
    again = ["--continue"] if turn.number > 1 else []
    command = [sys.executable, "-m", "ollm", "chat", "-p", turn.text, "-o", "stream-json", *GRANTS, *again]
    project, before, begin = folder / "project", len(relay.seen), time.monotonic()
    try:
        ended = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, check=False, timeout=asked.turn_seconds
        )
        printed, code, said = ended.stdout, ended.returncode, ended.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        printed, code, said = error.stdout or b"", 124, f"stopped after {asked.turn_seconds:.0f} s"
    figures = measure_turn(turn, relay.seen[before:], read_events(printed), asked.window)
    figures.seconds = round(time.monotonic() - begin, 1)
    figures.ended = figures.ended or f"exit {code}"
    figures.notices += [line for line in said.splitlines() if line.strip()]
    if turn.is_done is not None:
        figures.right = turn.is_done(project)
    return figures


def read_events(printed: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.decode(errors="replace").splitlines() if line.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())

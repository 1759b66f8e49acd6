"""MCP servers: what nine of them, known from before, cost at the start, and how many tokens their schemas take.

The servers are recordings of real ones (`tests/integration/recorded`), started as programs; one is there twice.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.row import Row
from bench.servers import InstantServer

TIMES = 11
WINDOWS_TOKENS = (8_192, 32_768, 131_072)
ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "integration" / "recorded"
REPLAY = str(ROOT / "tests" / "servers" / "recorded_mcp.py")
OLLM = str(Path(sys.executable).parent / "ollm")


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as directory:
        none, nine = Place(Path(directory) / "none", {}), Place(Path(directory) / "nine", make_entries(directory))
        none.run_once()
        nine.run_once()  # asks them what they offer, and keeps it
        runs = [(nine.run_once(), none.run_once()) for _ in range(TIMES)]
        ours, baseline = (statistics.median(column) for column in zip(*runs, strict=True))
        yield Row("start to first request, nine MCP servers", ours * 1000, baseline * 1000, 1.3, "ms", note="vs none")
        for window in WINDOWS_TOKENS:
            tokens = nine.count_tool_tokens(window) - none.count_tool_tokens(window)
            yield Row(f"schemas at {window // 1024}K", tokens, None, 0.16 * window, "tokens", of="figure")


def make_entries(directory: str) -> dict[str, Any]:
    names = sorted(path.stem for path in RECORDED.glob("[a-z]*.json") if not path.stem.startswith("model-"))
    return {
        name: {"command": sys.executable, "args": [REPLAY, str(RECORDED / f"{file}.json"), directory]}
        for name, file in [*((name, name) for name in names), ("again", names[0])]
    }


class Place:
    """A home with these servers, and a workspace."""

    def __init__(self, directory: Path, servers: dict[str, Any]) -> None:
        self._home, self._workspace = directory / "home", directory / "work"
        self._home.mkdir(parents=True)
        self._workspace.mkdir()
        self._servers = servers

    def run_once(self) -> float:
        """Seconds from the start to the first request."""
        with InstantServer() as server:
            self._configure(server.base_url, 32_768)
            begin = time.perf_counter()
            self._run("-p", "hi")
            assert server.asked is not None
            return server.asked - begin

    def count_tool_tokens(self, window: int) -> int:
        self._configure("http://127.0.0.1:9/v1", window)
        self._workspace = self._home.parent / f"window-{window}"  # one without a session, which would have a window
        self._workspace.mkdir()
        parts = json.loads(self._run("context", "show", "--json"))["parts"]
        return sum(part["tokens"] for part in parts if part["name"] == "tool schemas")

    def _configure(self, url: str, window: int) -> None:
        provider = {"type": "openai", "baseUrl": url, "model": "instant", "contextWindow": window}
        settings = {"provider": provider, "mcpServers": self._servers}
        (self._home / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")

    def _run(self, *arguments: str) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._home.parent), "OLLM_HOME": str(self._home)}
        done = subprocess.run(
            [OLLM, *arguments],
            env=environment,
            cwd=self._workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

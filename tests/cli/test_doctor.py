"""`ollm doctor`, run as people run it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ollm.cli.doctor import Diagnosis, ServerReport
from ollm.cli.machine import MachineCheck
from ollm.domain.model_facts import ModelFacts
from tests.cli.running import running
from tests.cli.terminal import CTRL_C, at_terminal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def ollm(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OLLM_", "OLLAMA_"))}
    variables |= {"OLLM_HOME": str(home)} | environment
    command = [sys.executable, "-m", "ollm", *arguments]
    options = {"cwd": ROOT, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    return subprocess.run(command, env=variables, check=False, **options)


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> Iterator[str]:
    command = [sys.executable, "-m", f"tests.servers.{request.param}", "--model", "qwen3:8b"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


@pytest.mark.parametrize("scripted", ["ollama"], indirect=True)
def test_the_doctor_says_which_server_why_its_window_and_what_next(home: Path, scripted: str) -> None:
    run = ollm(home, "doctor", "--measure", "--json", OLLM_BASE_URL=scripted)
    found = json.loads(run.stdout)

    assert run.returncode == 0
    assert found["ok"] is True
    assert found["server"]["type"] == "ollama"
    assert found["server"]["model"] == "qwen3:8b"
    assert "is configured" in found["server"]["why"]
    assert (found["server"]["window"], found["server"]["trained"]) == (8192, 32768)
    assert found["facts"]["callForm"] == "unknown"
    assert found["facts"]["prefillPerSecond"] > 0
    assert {check["name"] for check in found["machine"]} >= {"rg", "shfmt", "FTS5", "[daemon]", "[embedded]", "[mcp]"}
    assert found["log"] == str(home / "logs" / "ollm.log")
    assert "model-facts.json" in {part["name"] for part in found["disk"]}
    assert found["next"]

    text = ollm(home, "doctor", OLLM_BASE_URL=scripted).stdout
    for word in ("server ", "model ", "window ", "calls ", "speed ", "here ", "log ", "disk ", "next "):
        assert f"\n{word}" in f"\n{text}"
    assert "tok/s, output: " in text
    assert "model-facts.json" in text


def test_the_doctor_reports_a_configured_server_that_does_not_answer(home: Path) -> None:
    run = ollm(home, "doctor", OLLM_BASE_URL="http://127.0.0.1:9")

    assert run.returncode == 3
    assert "No model server answers at http://127.0.0.1:9" in run.stdout
    assert "next      Start it, or set provider.baseUrl." in run.stdout
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("scripted", ["ollama"], indirect=True)
def test_the_doctor_says_that_nothing_can_be_saved(scripted: str) -> None:
    done = ollm(Path("/proc/ollm"), "doctor", OLLM_BASE_URL=scripted)

    assert done.returncode == 0
    assert "cannot be written: " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next      Make /proc/ollm writable")


def test_the_doctor_reports_a_broken_configuration(home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("provider: {type: olama}\n", encoding="utf-8")
    run = ollm(home, "doctor")

    assert run.returncode == 2
    assert "provider.type" in run.stdout


REPORT = ServerReport(
    type="openai", base_url="u", why="w", model="m", window=4096, window_why="", served=4096, trained=32768
)


def found(server: ServerReport | None = REPORT, **more: Any) -> Diagnosis:
    known = {
        "facts": ModelFacts(key="k"),
        "answering": (),
        "machine": (MachineCheck(name="rg", ok=True, detail=""), MachineCheck(name="[mcp]", ok=False, detail="")),
        "problems": (),
    }
    place = {"sandbox": "", "log": Path("l"), "log_bytes": 0, "home": Path("h"), "disk": (), "next": ""}
    return Diagnosis(server=server, error=None, **{**known, **place, **more})  # type: ignore[arg-type]


async def test_the_doctor_says_what_it_waits_for_on_a_terminal(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await held.wait()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with running(tmp_path, []) as runner, at_terminal(runner, "doctor", OLLM_BASE_URL=address) as terminal:
        await terminal.wait_for("asking the model server (1 s) · Ctrl-C stops")
        terminal.type(CTRL_C)
        assert await terminal.ended() == 130
    held.set()
    server.close()

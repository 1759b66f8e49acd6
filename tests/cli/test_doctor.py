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

from ollm.cli.diagnosis import Diagnosis, ReachableServer, ServerReport
from ollm.cli.doctor import _describe_diagnosis
from ollm.cli.hardware import Hardware
from ollm.cli.machine import DiskUsage, MachineCheck
from ollm.domain.model_facts import ModelFacts
from tests.cli.inside import Inside
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


def describe(**more: Any) -> list[tuple[str, str]]:
    known: dict[str, Any] = {
        "server": ServerReport(
            type="openai", base_url="u", why="w", model="m", window=4096, window_why="said", served=None, trained=32768
        ),
        "error": None,
        "facts": ModelFacts(key="k"),
        "answering": (),
        "machine": (MachineCheck(name="rg", ok=True, detail=""), MachineCheck(name="[mcp]", ok=False, detail="get it")),
        "hardware": Hardware(memory_bytes=8 * 2**30, cores=2),
        "models": {"ollama": "ollama pull x"},
        "sandbox": "full",
        "problems": ("p1",),
        "log": Path("l"),
        "log_bytes": 2048,
        "home": Path("h"),
        "disk": tuple(DiskUsage(name=f"d{n}", bytes=1024) for n in range(10)),
        "next": "Go.",
    }
    return list(_describe_diagnosis(Diagnosis(**{**known, **more})))


def test_what_was_found_is_said_in_order() -> None:
    lines = describe()

    assert lines[:13] == [
        ("server", "openai at u: w"),
        ("model", "m"),
        ("window", "4096 tokens: said"),
        ("", "serving: unknown, trained for: 32768"),
        ("calls", "unknown until first use"),
        ("speed", "not measured; run `ollm doctor --measure`"),
        ("machine", Hardware(memory_bytes=8 * 2**30, cores=2).describe()),
        ("ollama", "ollama pull x"),
        ("sandbox", "full"),
        ("here", "rg"),
        ("missing", "[mcp]: get it"),
        ("config", "p1"),
        ("log", "l (2.0 KB)"),
    ]
    assert lines[13][0] == "disk"
    assert len([name for name, _ in lines if name == ""]) == 1 + 8
    assert lines[-1] == ("next", "Go.")


def test_other_servers_and_errors_are_named() -> None:
    others = (
        ReachableServer(label="A", base_url="u", models=("x",)),
        ReachableServer(label="B", base_url="v", models=("x", "y")),
    )
    assert ("also", "B at v, 2 models") in describe(answering=others)
    assert not any(text.startswith("A at") for _, text in describe(answering=others))
    broken = describe(server=None, facts=None, error="it is away", answering=others)
    assert broken[0] == ("server", "it is away")
    assert ("also", "A at u, 1 model") in broken
    assert "calls" not in [name for name, _ in broken]


@pytest.mark.parametrize(
    ("facts", "calls", "speed"),
    [
        ({"call_form": "native"}, "native", "not measured; run `ollm doctor --measure`"),
        (
            {"call_form": "text", "result_form": "user", "prefill_per_second": 10.5},
            "written as text, which ollm parses; results are sent as user messages",
            "prompt: 10.5 tok/s, output: ? tok/s",
        ),
        (
            {"call_form": "blocks", "decode_per_second": 3},
            "in blocks: fenced commands and files",
            "prompt: ? tok/s, output: 3 tok/s",
        ),
        (
            {"call_form": "none", "prefill_per_second": 0, "decode_per_second": 0},
            "none: the model does not call tools",
            "prompt: 0 tok/s, output: 0 tok/s",
        ),
        ({"call_form": "constrained"}, "constrained to the tools' schema", "not measured; run `ollm doctor --measure`"),
    ],
)
def test_how_a_model_calls_and_how_fast_it_is(facts: dict[str, Any], calls: str, speed: str) -> None:
    lines = dict(describe(facts=ModelFacts(key="k", **facts)))

    assert (lines["calls"], lines["speed"]) == (calls, speed)


def test_the_exit_code_is_that_of_the_error(inside: Inside) -> None:
    inside.configure("provider: {type: openai, baseUrl: 'http://127.0.0.1:9/v1', model: m}\n")
    done = inside.run("doctor", "--json")

    assert done.code == 3
    document = json.loads(done.out)
    assert (document["ok"], document["server"]) == (False, None)
    assert document["home"] == str(inside.home)
    shown = inside.run("doctor")
    assert shown.code == 3
    assert shown.out.splitlines()[-1].startswith("next     ")


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

"""`ollm models` and `ollm doctor`, run as people run them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from ollm.cli.diagnosis import Diagnosis, ServerReport, suggest_next_step
from ollm.cli.machine import MachineCheck, measure_disk_usage
from ollm.domain.errors import NoServerError
from ollm.domain.model_facts import ModelFacts
from tests.servers.files import FileServer, serving

CONTENT = b"GGUF" + bytes(50_000)
HASH = hashlib.sha256(CONTENT).hexdigest()
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


def test_a_model_is_fetched_listed_and_removed(home: Path) -> None:
    with serving(FileServer(CONTENT)) as files:
        got = ollm(home, "models", "get", "mine", "--url", files.url, "--sha256", HASH)
    assert (got.returncode, got.stdout) == (0, "")
    assert "downloading mine" in got.stderr
    assert "checksum verified" in got.stderr
    again = ollm(home, "models", "get", "mine", "--if-missing")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")

    listed = ollm(home, "models", "list", "--json")
    document = json.loads(listed.stdout)
    assert [file["name"] for file in document["files"]] == ["mine"]
    assert [model["installed"] for model in document["catalogue"]] == [False] * 3
    table = ollm(home, "models", "list").stdout
    assert "mine" in table
    assert "smollm2" in table

    refused = ollm(home, "models", "remove", "mine")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert ollm(home, "models", "remove", "mine", "--yes").returncode == 0
    assert ollm(home, "models", "remove", "mine", "--yes").returncode == 1


def test_the_place_a_model_comes_from_is_a_setting_and_the_hash_decides(home: Path) -> None:
    home.mkdir()
    with serving(FileServer(CONTENT)) as files:
        (home / "config.yaml").write_text(f"models: {{urls: {{smollm2: '{files.url}'}}}}\n", encoding="utf-8")
        got = ollm(home, "models", "get", "smollm2")

    assert got.returncode == 1
    assert "wrong checksum" in got.stderr
    assert list((home / "models").iterdir()) == []


def test_an_unknown_model_and_one_without_a_place_are_told(home: Path) -> None:
    unknown, nowhere = ollm(home, "models", "get", "smolm2"), ollm(home, "models", "get", "mine", "--sha256", HASH)

    assert (unknown.returncode, nowhere.returncode) == (1, 2)
    assert "Did you mean smollm2?" in unknown.stderr
    assert "models.urls" in nowhere.stderr


def test_a_terminal_shows_a_bar(home: Path) -> None:
    with serving(FileServer(CONTENT)) as files:
        arguments = ["-m", "ollm", "models", "get", "mine", "--url", files.url, "--sha256", HASH]
        child = pexpect.spawn(
            sys.executable,
            arguments,
            env={**os.environ, "OLLM_HOME": str(home)},
            cwd=ROOT,
            timeout=20,
            encoding="utf-8",
        )
        child.expect("━")
        child.expect("checksum verified")
        child.expect(pexpect.EOF)


@pytest.mark.parametrize("scripted", ["ollama", "openai"], indirect=True)
def test_the_models_of_a_running_server_are_listed_beside(home: Path, scripted: str) -> None:
    document = json.loads(ollm(home, "models", "list", "--json", OLLM_BASE_URL=scripted).stdout)

    assert document["servers"][0]["label"] == "configured"
    assert [model["name"] for model in document["servers"][0]["models"]] == ["qwen3:8b"]


def test_a_configured_server_that_is_away_does_not_hide_the_files(home: Path) -> None:
    (home / "models").mkdir(parents=True)
    (home / "models" / "mine.gguf").write_bytes(CONTENT)
    listed = ollm(home, "models", "list", OLLM_BASE_URL="http://127.0.0.1:9")

    assert listed.returncode == 0
    assert "mine" in listed.stdout
    assert "No model server answers at http://127.0.0.1:9" in listed.stderr


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
    assert "next     Start it, or set provider.baseUrl." in run.stdout
    assert "Traceback" not in run.stderr


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


def test_the_next_step_is_the_one_that_helps_most() -> None:
    from msgspec.structs import replace

    missing = (MachineCheck(name="rg", ok=False, detail="finds files"),)
    wide = replace(REPORT, window=32768, served=32768)
    beyond = replace(REPORT, window=32768)

    nobody = found(None, problems=("p",), machine=missing)
    assert suggest_next_step(nobody, NoServerError("x", action="Start it.")) == "Start it."
    assert "config check" in suggest_next_step(found(problems=("p",), machine=missing), None)
    assert suggest_next_step(found(machine=missing), None) == "Install rg (finds files)."
    assert "window is small" in suggest_next_step(found(), None)
    assert "set it to 4096" in suggest_next_step(found(beyond), None)
    assert "`ollm models probe`" in suggest_next_step(found(wide), None)
    assert (
        suggest_next_step(found(wide, facts=ModelFacts(key="k", probed="2026-01-01")), None) == "All set: run `ollm`."
    )


def test_disk_use_is_told_by_part_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "sessions" / "deep").mkdir(parents=True)
    (tmp_path / "sessions" / "deep" / "a").write_bytes(bytes(300))
    (tmp_path / "sessions" / "loop").symlink_to(tmp_path)
    (tmp_path / "index.db").write_bytes(bytes(20))

    assert [(part.name, part.bytes) for part in measure_disk_usage(tmp_path)] == [("sessions", 300), ("index.db", 20)]
    assert measure_disk_usage(tmp_path / "none") == ()

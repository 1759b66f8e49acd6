"""ollm models: fetching, listing and removing models."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from ollm.cli.models import offer_missing_model, show_progress
from ollm.domain.errors import NoServerError
from ollm.providers.local_models.model_files import ModelFileMissingError
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


def test_without_a_terminal_a_line_is_written_for_each_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("tiny", 100_000_000) as tell:
        for done in range(0, 100_000_001, 10_000_000):
            tell(done, 100_000_000)

    assert capsys.readouterr().err == "".join(
        f"ollm: downloading tiny {share} % of 100 MB\n" for share in (0, 25, 50, 75, 100)
    )


def test_only_a_missing_model_file_is_offered_and_only_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert not offer_missing_model(NoServerError("gone"), {})
    assert not offer_missing_model(ModelFileMissingError("The model smollm2 is not here.", model="smollm2"), {})
    assert capsys.readouterr().err == ""

"""ollm models: fetching, listing and removing models."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

from ollm.cli.models import offer_missing_model, show_progress
from ollm.domain.errors import NoServerError
from ollm.providers.local_models.model_files import ModelFileMissingError
from tests.cli.command import ollm
from tests.servers.files import FileServer, serving

CONTENT = b"GGUF" + bytes(50_000)
HASH = hashlib.sha256(CONTENT).hexdigest()


def test_a_model_is_fetched_listed_and_removed(home: Path) -> None:
    with serving(FileServer(CONTENT)) as files:
        got = ollm("models", "get", "mine", "--url", files.url, "--sha256", HASH, home=home)
    assert (got.returncode, got.stdout) == (0, "")
    assert "downloading mine" in got.stderr
    assert "checksum verified" in got.stderr
    again = ollm("models", "get", "mine", "--if-missing", home=home)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")

    listed = ollm("models", "list", "--json", home=home)
    document = json.loads(listed.stdout)
    assert [file["name"] for file in document["files"]] == ["mine"]
    assert [model["installed"] for model in document["catalogue"]] == [False] * 3
    table = ollm("models", "list", home=home).stdout
    assert "mine" in table
    assert "smollm2" in table

    refused = ollm("models", "remove", "mine", home=home)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert ollm("models", "remove", "mine", "--yes", home=home).returncode == 0
    assert ollm("models", "remove", "mine", "--yes", home=home).returncode == 1


def test_the_place_a_model_comes_from_is_a_setting_and_the_hash_decides(home: Path) -> None:
    home.mkdir()
    with serving(FileServer(CONTENT)) as files:
        (home / "config.yaml").write_text(f"models: {{urls: {{smollm2: '{files.url}'}}}}\n", encoding="utf-8")
        got = ollm("models", "get", "smollm2", home=home)

    assert got.returncode == 1
    assert "wrong checksum" in got.stderr
    assert list((home / "models").iterdir()) == []


def test_an_unknown_model_and_one_without_a_place_are_told(home: Path) -> None:
    unknown, nowhere = (
        ollm("models", "get", "smolm2", home=home),
        ollm("models", "get", "mine", "--sha256", HASH, home=home),
    )

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
            timeout=20,
            encoding="utf-8",
        )
        child.expect("━")
        child.expect("checksum verified")
        child.expect(pexpect.EOF)


@pytest.mark.parametrize("scripted", ["ollama", "openai"], indirect=True)
def test_the_models_of_a_running_server_are_listed_beside(home: Path, scripted: str) -> None:
    document = json.loads(ollm("models", "list", "--json", OLLM_BASE_URL=scripted, home=home).stdout)

    assert document["servers"][0]["label"] == "configured"
    assert [model["name"] for model in document["servers"][0]["models"]] == ["qwen3:8b"]


def test_a_configured_server_that_is_away_does_not_hide_the_files(home: Path) -> None:
    (home / "models").mkdir(parents=True)
    (home / "models" / "mine.gguf").write_bytes(CONTENT)
    listed = ollm("models", "list", OLLM_BASE_URL="http://127.0.0.1:9", home=home)

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

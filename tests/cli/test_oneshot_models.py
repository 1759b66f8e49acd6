"""`ollm -p` on what people have: a real llama.cpp server, the embedded model, an Ollama; and when the file is missing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.cli.command import SCRIPT
from tests.servers import OllamaServer
from tests.servers.files import FileServer, serving
from tests.sizes import SOAK

PROMPT = ("-p", "Say hello")


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "OLLM_HOME": str(home)} | more


def ollm(home: Path, workspace: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    options = {"cwd": workspace, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    return subprocess.run([SCRIPT, *arguments], env=environment(home, **more), check=False, **options)


@pytest.mark.slow
def test_the_embedded_model_answers_and_the_session_is_kept(model_home: Path, tmp_path: Path) -> None:
    """With native calls: their instructions are a third as long, and two cores read 40 tokens a second."""
    done = ollm(model_home, tmp_path, *PROMPT, "--provider", "embedded", OLLM_CALL_FORM="native")

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    listed = json.loads(ollm(model_home, tmp_path, "sessions", "list", "--json").stdout)
    assert [(session["title"], session["model"]) for session in listed] == [("Say hello", "smollm2")]


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_a_real_llama_cpp_server_answers(llama_server: str, tmp_path: Path) -> None:
    """With native calls, which so small a model never makes: what it would run from a block is left to chance."""
    settings = {"OLLM_MODEL": "smollm2", "OLLM_CALL_FORM": "native"}
    done = ollm(tmp_path / "home", tmp_path, *PROMPT, "-o", "json", "--base-url", llama_server, **settings)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["text"].strip()
    assert answer["usage"]["promptTokens"] > 0


async def test_an_ollama_answers_under_one_window(tmp_path: Path) -> None:
    async with OllamaServer(["Hello there.", "Again."], model="qwen3:8b") as server:
        for expected in ("Hello there.\n", "Again.\n"):
            done = await asyncio.to_thread(ollm, tmp_path / "home", tmp_path, *PROMPT, OLLAMA_HOST=server.base_url)
            assert (done.returncode, done.stdout) == (0, expected), done.stderr

    assert server.loads == [("qwen3:8b", 8192)]


def test_without_a_terminal_a_missing_model_is_exit_3_and_the_command_to_type(tmp_path: Path) -> None:
    done = ollm(tmp_path / "home", tmp_path, *PROMPT, "--provider", "embedded")

    assert done.returncode == 3
    assert "ollm models get smollm2" in done.stderr
    assert not (tmp_path / "home" / "models").exists()


@pytest.mark.parametrize(("answer", "said", "code"), [("n", "ollm models get smollm2", 3), ("y", "wrong checksum", 1)])
def test_on_a_terminal_a_missing_model_is_fetched_after_a_question(
    tmp_path: Path, answer: str, said: str, code: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with serving(FileServer(b"not the model")) as files:
        (home / "config.yaml").write_text(f"models: {{urls: {{smollm2: '{files.url}'}}}}\n", encoding="utf-8")
        command = ["-m", "ollm", *PROMPT, "--provider", "embedded"]
        options = {"env": environment(home, TERM="xterm"), "cwd": str(tmp_path), "timeout": 30, "encoding": "utf-8"}
        child = pexpect.spawn(sys.executable, command, **options)
        child.expect(r"Download smollm2 .*98 MB.*\?")
        child.sendline(answer)
        child.expect(said)
        child.expect(pexpect.EOF)
        child.close()

    assert child.exitstatus == code
    assert bool(files.asked) == (answer == "y")

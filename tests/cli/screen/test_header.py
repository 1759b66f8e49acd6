"""The first lines of a chat."""

from pathlib import Path

import pytest

from ollm.cli.hardware import inspect_hardware, suggest_models
from ollm.cli.screen.header import render_header
from ollm.cli.screen.paint import Painter
from ollm.runtime.base import Status

NARROW_TIPS = "▌ /help for commands"


def describe(model: str, provider: str, width: int = 80, workspace: str = "/work-here") -> str:
    status = Status(
        session_id=None,
        title="",
        model=model,
        provider=provider,
        base_url="http://box:8080/v1",
        window=32_768,
        mode="code",
        approval="ask",
        workspace=workspace,
    )
    return render_header(status, "main", Painter(lambda: width, colour=False))


def test_the_header_names_model_window_folder_and_branch() -> None:
    shown = describe("/models/Qwen2.5-Coder.gguf", "openai")

    assert "Qwen2.5-Coder · 32,768-token context · box:8080" in shown
    assert "/work-here · main" in shown
    assert "not for work" not in shown
    narrow = describe("qwen3:8b", "openai", width=40).splitlines()
    assert narrow[1:4] == ["▌ qwen3:8b · 32,768-token context", "▌ /work-here · main", NARROW_TIPS]
    assert all(len(line) <= 40 for line in describe("m" * 90, "openai", width=40).splitlines())


def test_an_odd_folder_stays_on_its_line() -> None:
    shown = describe("qwen3:8b", "openai", workspace="/two\nlines\x1b[31m")

    assert shown.splitlines()[2] == "▌ /two⏎lines\\x1b[31m · main"


def test_the_toy_model_says_what_it_is() -> None:
    shown = describe("smollm2", "embedded", width=40)

    assert "SmolLM2 135M is for trying ollm, not for work. To get a real model" in " ".join(shown.split())
    commands = suggest_models(inspect_hardware())
    assert [f"  {name:<10}{command}" for name, command in commands.items()] == shown.splitlines()[-2:]


def test_a_driver_that_does_not_answer_leaves_the_commands_to_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert describe("smollm2", "embedded").splitlines()[-1].startswith("  ollm doctor    lists the commands")

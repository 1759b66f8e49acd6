"""`ollm hooks`: the list, and those of Claude Code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ollm.cli.hooks import collect_hooks
from tests.cli.inside import Inside
from tests.cli.running import running
from tests.servers.answers import Answer

SCRIPTS = Path(__file__).parents[1] / "extensions" / "claude"


def entry(script: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    command = f"{sys.executable} {SCRIPTS / script}"
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 60, **more}]}


async def test_hooks_of_claude_code_are_imported(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("shell", {"command": "rm -rf x"})]), "Done."]) as runner:
        settings = runner.workspace / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry("command_guard.py", "Bash")]}, "model": "x"}))
        imported = await runner.run("hooks", "import", str(settings))
        listed = await runner.run("hooks", "list")
        done = await runner.run("-p", "clean", "--yes", "-o", "json")

    assert imported.code == 0, imported.err
    assert "PreToolUse" in imported.out
    assert "command_guard.py" in listed.out
    (call,) = json.loads(done.out)["toolCalls"]
    assert call["status"] == "denied"


def test_hooks_are_listed(inside: Inside) -> None:
    assert inside.read("hooks", "list") == "No hooks are configured.\n"
    inside.configure(
        "hooks:\n  before-tool: [{command: check.sh, tools: [shell, ls], required: true}]\n"
        "  PreToolUse: [{matcher: Bash, hooks: [{type: command, command: guard.sh}]}]\n  nonsense: [x]\n"
    )
    done = inside.run("hooks", "list")
    assert [line.split() for line in done.out.splitlines()] == [
        ["EVENT", "TOOLS", "COMMAND"],
        ["before-tool", "shell,ls", "required", "check.sh"],
        ["before-tool", "Bash", "guard.sh"],
    ]
    assert "hooks.nonsense: unknown event" in done.err
    assert [hook["command"] for hook in inside.read_json("hooks", "list")] == ["check.sh", "guard.sh"]


def test_hooks_are_imported_once(inside: Inside) -> None:
    said = inside.fail("hooks", "import", code=2)
    assert "No hooks were found." in said
    (inside.workspace / ".claude").mkdir()
    file = inside.workspace / ".claude" / "settings.json"
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh"}]}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [entry], "Stop": entry}}))
    assert inside.read("hooks", "import").splitlines() == [
        f"PreToolUse: 1 imported into {inside.home / 'config.yaml'}.",
        f"Stop: 1 imported into {inside.home / 'config.yaml'}.",
    ]
    inside.read("hooks", "import")
    assert len(inside.read_json("hooks", "list")) == 2


@pytest.mark.parametrize(
    ("text", "hooks"),
    [
        ('{"hooks": {"Stop": ["a"]}}', {"Stop": ["a"]}),
        ('{"hooks": {"Stop": "a"}}', {"Stop": ["a"]}),
        ('{"hooks": []}', {}),
        ("{}", {}),
        ("[]", {}),
    ],
)
def test_hooks_are_collected_by_event(tmp_path: Path, text: str, hooks: dict[str, list[str]]) -> None:
    (tmp_path / "s.json").write_text(text)

    assert collect_hooks([tmp_path / "s.json"]) == hooks
    both = {event: entries * 2 for event, entries in hooks.items()}
    assert collect_hooks([tmp_path / "s.json"] * 2) == both


def test_a_file_that_cannot_be_read_is_said(inside: Inside) -> None:
    (inside.workspace / "bad.json").write_text("{")

    assert "bad.json cannot be read:" in inside.fail("hooks", "import", "bad.json", code=2)
    assert "gone.json cannot be read:" in inside.fail("hooks", "import", "gone.json", code=2)

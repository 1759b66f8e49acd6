"""`ollm hooks`: the list, and those of Claude Code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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


READ = "import json, sys; given = json.load(sys.stdin)['tool_input'];"
LOG = f"""{sys.executable} -c "{READ} print(given['command'])" >> ~/.claude/commands.txt"""
PROTECT = f"""{sys.executable} -c "{READ} sys.exit(2 if '.lock' in given['file_path'] else 0)" """
FORMAT = f"""{sys.executable} -c "{READ} open(given['file_path'], 'a').write('# formatted')" """


async def test_hooks_of_the_home_log_format_and_protect_as_in_claude_code(tmp_path: Path) -> None:
    """What Claude Code's own guide shows: one writes into the home, one formats what was written, one protects files."""
    written = {"PreToolUse": [("Bash", LOG), ("Edit|Write", PROTECT)], "PostToolUse": [("Edit|Write", FORMAT)]}
    hooks = {
        event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]} for matcher, command in listed]
        for event, listed in written.items()
    }
    calls = [
        ("shell", {"command": "echo hi"}),
        ("write_file", {"path": "a.py", "content": "x = 1\n"}),
        ("write_file", {"path": "b.lock", "content": "{}"}),
    ]
    home = tmp_path / "me"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        imported = await runner.run("hooks", "import", HOME=str(home))
        done = await runner.run("-p", "go", "--yes", "-o", "json", HOME=str(home))

    assert "run outside the sandbox" in imported.out
    assert [call["status"] for call in json.loads(done.out)["toolCalls"]] == ["ok", "ok", "denied"]
    assert (home / ".claude" / "commands.txt").read_text() == "echo hi\n"
    assert (runner.workspace / "a.py").read_text() == "x = 1\n# formatted"
    assert not (runner.workspace / "b.lock").exists()


async def test_a_hook_that_the_sandbox_stops_says_how_to_let_it_out(tmp_path: Path) -> None:
    """As root no sandbox refuses a plain file: the shell's own words are what is looked for."""
    hook = "echo 'cannot create x: Permission denied' >&2; exit 2"
    async with running(tmp_path, [Answer(calls=[("shell", {"command": "echo hi"})]), "Done."]) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"hooks": {"PreToolUse": hook}}))
        done = await runner.run("-p", "go", "--yes")

    assert "sandbox: off" in done.err


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


def test_what_cannot_run_here_is_told_once_and_not_written_down(inside: Inside) -> None:
    runs, asks = {"type": "command", "command": "guard.sh"}, {"type": "prompt", "prompt": "is it safe?"}
    (inside.workspace / "claude.json").write_text(
        json.dumps(
            {"hooks": {"SubagentStop": [{"hooks": [runs]}], "Stop": [{"hooks": [runs, asks]}, {"hooks": [asks]}]}}
        )
    )
    done = inside.run("hooks", "import", "claude.json")
    assert done.out.splitlines() == [f"Stop: 1 imported into {inside.home / 'config.yaml'}."]
    assert "hooks.SubagentStop: unknown event" in done.err
    assert "only hooks of type command are run; not imported" in done.err
    listed = inside.run("hooks", "list", "--json")
    assert ([hook["command"] for hook in json.loads(listed.out)], listed.err) == (["guard.sh"], "")


def test_a_file_that_cannot_be_read_is_said(inside: Inside) -> None:
    (inside.workspace / "bad.json").write_text("{")

    assert "bad.json cannot be read:" in inside.fail("hooks", "import", "bad.json", code=2)
    assert "gone.json cannot be read:" in inside.fail("hooks", "import", "gone.json", code=2)

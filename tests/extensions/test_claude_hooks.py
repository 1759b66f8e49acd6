"""Hook scripts written for Claude Code, used as they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.servers.answers import Answer

SCRIPTS = Path(__file__).parent / "claude"


def configure(runner: Runner, **hooks: list[Any]) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"hooks": hooks}))


def entry(script: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    command = f"{sys.executable} {SCRIPTS / script}"
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 60, **more}]}


def result(runner: Runner, number: int = 1) -> str:
    return str(runner.server.chats[number]["messages"][-1]["content"])


async def test_a_command_guard_that_exits_2_blocks_with_its_reason(tmp_path: Path) -> None:
    script = [Answer(calls=[("shell", {"command": "rm -rf build"}), ("shell", {"command": "echo fine"})]), "Done."]
    async with running(tmp_path, script) as runner:
        configure(runner, PreToolUse=[entry("command_guard.py", "Bash")])
        (runner.workspace / "build").mkdir()
        done = await runner.run("-p", "clean", "--yes", "-o", "json")

    first, second = json.loads(done.out)["toolCalls"]
    assert (first["status"], second["status"]) == ("denied", "ok")
    assert "rm -rf is not allowed here" in first["result"]["error"]["message"]
    assert (runner.workspace / "build").exists()


@pytest.mark.parametrize("matcher", ["Edit|Write", "*", "", "Wri.*", "write_file"])
async def test_a_permission_decision_denies_and_its_allow_lifts_nothing(tmp_path: Path, matcher: str) -> None:
    calls = [("write_file", {"path": name, "content": "x"}) for name in ("config/.env.local", "plain.txt")]
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        configure(runner, PreToolUse=[entry("protect_files.py", matcher)])
        done = await runner.run("-p", "write", "-o", "json")

    first, second = json.loads(done.out)["toolCalls"]
    assert "is protected" in first["result"]["error"]["message"]
    assert second["status"] == "denied"
    assert "is protected" not in second["result"]["error"]["message"]


async def test_a_prompt_is_blocked_with_exit_5_or_given_context(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, UserPromptSubmit=[entry("check_prompt.py")])
        blocked = await runner.run("-p", "my password: hunter2")
        done = await runner.run("-p", "hi")

    assert blocked.code == 5
    assert "Security policy violation" in blocked.err
    assert done.code == 0
    (chat,) = runner.server.chats
    assert "OPS-4711 (UserPromptSubmit)" in json.dumps(chat["messages"])


async def test_what_a_hook_says_after_a_tool_reaches_the_model(tmp_path: Path) -> None:
    script = [Answer(calls=[("write_file", {"path": "a.py", "content": "def f(:\n"})]), "I will mend it."]
    async with running(tmp_path, script) as runner:
        configure(runner, PostToolUse=[entry("lint_after_edit.py", "Write|Edit")])
        await runner.run("-p", "write", "--yes")

    assert "a.py does not parse" in result(runner)


async def test_a_hook_that_asks_is_asked_also_where_policy_allows(tmp_path: Path) -> None:
    wish = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}
    async with running(tmp_path, [Answer(calls=[("ls", {})]), "Done."]) as runner:
        configure(runner, PreToolUse=[{"hooks": [{"type": "command", "command": f"echo '{json.dumps(wish)}'"}]}])
        done = await runner.run("-p", "list", "-o", "json")

    (call,) = json.loads(done.out)["toolCalls"]
    assert call["status"] == "denied"


@pytest.mark.parametrize("event", ["before-turn", "UserPromptSubmit"])
async def test_a_required_hook_before_a_turn_fails_closed(tmp_path: Path, event: str) -> None:
    async with running(tmp_path, ["never"]) as runner:
        configure(runner, **{event: [{"command": "exit 7", "required": True}]})
        done = await runner.run("-p", "hi")

    assert done.code == 5
    assert runner.server.chats == []


async def test_what_a_hook_says_after_a_turn_reaches_the_person(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, Stop=[{"hooks": [{"type": "command", "command": "echo 'run the tests first' >&2; exit 2"}]}])
        done = await runner.run("-p", "hi")

    assert done.code == 0
    assert "run the tests first" in done.err

"""Hooks: real processes around real turns: slow, crashing, flooding, forking ones too."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm import ConversationOptions, open_conversation
from tests.cli.running import Runner, running
from tests.covers import covers
from tests.servers.answers import Answer

WRITE = Answer(calls=[("write_file", {"path": "new.txt", "content": "x"})])


def configure(runner: Runner, hooks: dict[str, Any]) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"hooks": hooks}))


def script(runner: Runner, name: str, text: str) -> str:
    file = runner.home / name
    runner.home.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


@covers("S5.6", "S5.7", "P20", "D761", "D762")
async def test_context_from_a_hook_is_in_the_prompt_of_every_turn_by_priority(tmp_path: Path) -> None:
    low = {"context": [{"key": "low", "content": "LOW ENTRY", "priority": 10}]}
    high = {"context": [{"key": "high", "content": "HIGH ENTRY", "priority": 90}]}
    async with running(tmp_path, ["one", "two"]) as runner:
        configure(runner, {"session-start": [f"echo '{json.dumps(low)}'", f"echo '{json.dumps(high)}'"]})
        await runner.run("-p", "hi")
        await runner.run("-p", "again", "--continue")

    for request in runner.server.chats:
        system = request["messages"][0]["content"]
        assert 0 < system.index("HIGH ENTRY") < system.index("LOW ENTRY")


async def test_a_hook_reads_what_happens_as_one_document(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {})]), "done"]) as runner:
        log = runner.workspace / "log"
        log.mkdir()
        hook = script(runner, "log.sh", f"cat > {log}/$(date +%s%N)-$$")
        configure(runner, dict.fromkeys(["session-start", "session-end", "before-turn", "after-turn"], hook)
                  | {"before-tool": hook, "after-tool": hook, "notification": hook})  # fmt: skip
        done = await runner.run("-p", "list")

    assert done.code == 0, done.err
    told = [json.loads(file.read_text()) for file in sorted(log.iterdir())]
    assert [entry["event"] for entry in told if entry["event"] != "notification"] == [
        "session-start", "before-turn", "before-tool", "after-tool", "after-turn", "session-end",
    ]  # fmt: skip
    assert {entry["session"] for entry in told} == {runner.sessions()[0]["sessionId"]}
    assert {entry["workspace"] for entry in told} == {str(runner.workspace)}
    assert told[1]["data"] == {"text": "list"}


async def test_exit_2_before_a_tool_blocks_it_with_the_reason_told_to_the_model(tmp_path: Path) -> None:
    async with running(tmp_path, [WRITE, "I see."]) as runner:
        blocking = {"command": "echo 'not on a Friday' >&2; exit 2", "tools": ["write_*"]}
        configure(runner, {"before-tool": [blocking]})
        await runner.run("-p", "write", "--yes")

    assert not (runner.workspace / "new.txt").exists()
    assert "not on a Friday" in runner.server.chats[1]["messages"][-1]["content"]
    assert runner.sessions()[0]["toolCalls"][0]["error"]["type"] == "Denied"


async def test_a_hook_may_change_the_arguments(tmp_path: Path) -> None:
    async with running(tmp_path, [WRITE, "done"]) as runner:
        changed = json.dumps({"arguments": {"path": "other.txt", "content": "y"}})
        configure(runner, {"before-tool": [f"echo '{changed}'"]})
        await runner.run("-p", "write", "--yes")

    assert (runner.workspace / "other.txt").read_text() == "y"
    assert not (runner.workspace / "new.txt").exists()


async def test_a_hook_may_stop_a_turn_and_the_message_stays_recorded(tmp_path: Path) -> None:
    async with running(tmp_path, ["never"]) as runner:
        configure(runner, {"before-turn": ['echo \'{"continue": false, "message": "closed today"}\'']})
        done = await runner.run("-p", "hi")

    assert done.code == 5
    assert "closed today" in done.err
    assert runner.server.chats == []
    assert runner.sessions()[0]["messages"][0]["parts"][0]["text"] == "hi"


async def test_a_required_hook_that_fails_stops_the_call(tmp_path: Path) -> None:
    async with running(tmp_path, [WRITE, "I see."]) as runner:
        configure(runner, {"before-tool": [{"command": "exit 1", "required": True}]})
        await runner.run("-p", "write", "--yes")

    assert not (runner.workspace / "new.txt").exists()


@covers("D769")
async def test_hooks_get_the_environment_tools_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_TEST_API_KEY", "s3cret-value-123")
    async with running(tmp_path, ["done"]) as runner:
        log = runner.workspace / "env"
        configure(runner, {"before-turn": [f"env > {log}"]})
        await runner.run("-p", "hi")

    assert "PATH=" in log.read_text()
    assert "s3cret-value-123" not in log.read_text()


async def test_an_untrusted_workspace_has_no_hooks(tmp_path: Path) -> None:
    async with running(tmp_path, ["done", "done"]) as runner:
        log = runner.workspace / "ran"
        (runner.workspace / ".ollm").mkdir()
        (runner.workspace / ".ollm" / "config.yaml").write_text(
            json.dumps({"hooks": {"before-turn": [f"touch {log}"]}})
        )
        await runner.run("-p", "hi")
        before = log.exists()
        await runner.run("trust")
        await runner.run("-p", "hi")

    assert not before
    assert log.exists()


async def test_a_hook_may_take_all_arguments_away(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {"path": "nowhere"})]), "done"]) as runner:
        configure(runner, {"before-tool": ["echo '{\"arguments\": {}}'"]})
        await runner.run("-p", "list")

    assert runner.sessions()[0]["toolCalls"][0]["args"] == {}
    assert runner.sessions()[0]["toolCalls"][0]["status"] == "ok"


async def test_hooks_are_told_before_and_after_compression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = " ".join(f"word{number}" for number in range(400))
    async with running(tmp_path, [words] * 8, window=2048) as runner:
        log = runner.workspace / "log"
        hook = script(runner, "log.sh", f"cat >> {log}; echo >> {log}")
        hooks = {"before-compression": hook, "after-compression": hook}
        (runner.home / "config.yaml").write_text(json.dumps({"hooks": hooks, "compression": {"strategy": "truncate"}}))
        for name, value in (("HOME", str(runner.home)), ("PROVIDER", "openai"), ("BASE_URL", runner.server.base_url)):
            monkeypatch.setenv(f"OLLM_{name}", value)
        monkeypatch.setenv("OLLM_CONTEXT_WINDOW", "2048")
        async with open_conversation(ConversationOptions(workspace=runner.workspace)) as conversation:
            for _ in range(4):
                async with conversation.turn("Say much.") as events:
                    _ = [event async for event in events]

    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["event"] for entry in told[:2]] == ["before-compression", "after-compression"]
    assert told[1]["data"]["after"] < told[1]["data"]["before"]

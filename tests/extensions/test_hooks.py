"""Hooks: their settings, their processes, and those written for another agent."""

import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ollm import ConversationOptions, open_conversation
from ollm.extensions.hook_process import HookReply, HookRunner
from ollm.extensions.hook_settings import Hook, read_hooks
from ollm.system.processes import ProcessHost
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


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 7", "exited with code 7"),
        ("echo nonsense", "not JSON"),
        ("echo '[1]'", "not a JSON object"),
        ("yes | head -c 3000000", "1 MiB"),
        ("kill -9 $$", "exited with code"),
    ],
)
async def test_a_hook_that_fails_is_told_once_and_stops_nothing(tmp_path: Path, command: str, said: str) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {}), ("ls", {"path": "."})]), "done"]) as runner:
        configure(runner, {"before-tool": [command]})
        done = await runner.run("-p", "list")

    assert done.out == "done\n"
    assert done.err.count(said) == 1, done.err


async def test_a_slow_hook_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    async with running(tmp_path, ["done"]) as runner:
        slow = {"command": "setsid sleep 3141 & sleep 2718", "timeout": 0.5}
        configure(runner, {"before-turn": [slow]})
        began = time.monotonic()
        done = await runner.run("-p", "hi")

    assert done.out == "done\n"
    assert "timed out after 0.5 s" in done.err
    assert time.monotonic() - began < 60
    running_now = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in running_now if "sleep 3141" in line or "sleep 2718" in line]


async def test_a_hook_that_leaves_a_child_behind_does_not_hold_the_turn(tmp_path: Path) -> None:
    async with running(tmp_path, ["done"]) as runner:
        configure(runner, {"before-turn": ["sleep 1234 & echo '{}'"]})
        began = time.monotonic()
        done = await runner.run("-p", "hi")

    assert done.out == "done\n"
    assert time.monotonic() - began < 25


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[HookRunner]:
    host = ProcessHost()
    yield HookRunner(host, tmp_path, {"PATH": "/usr/bin:/bin", "MARK": "here"})
    await host.close()


def hook(command: str, **more: Any) -> Hook:
    return Hook(event="before-tool", command=command, **{"timeout": 60.0, **more})


async def test_a_hook_reads_its_document_and_runs_in_the_workspace(runner: HookRunner, tmp_path: Path) -> None:
    reply = await runner.run(
        hook("""printf '{"message": "%s %s %s"}' "$(cat | tr -d '"')" "$MARK" "$PWD" """), {"a": 1}
    )

    assert reply == HookReply(message="{a:1} here " + str(tmp_path))
    told = await runner.run(hook("""printf '{"message": "%s"}' "$CLAUDE_PROJECT_DIR" """), {})
    assert told.message == str(tmp_path)


async def test_a_hook_that_does_not_read_is_no_fault(runner: HookRunner) -> None:
    assert await runner.run(hook("exec <&-; true"), {"text": "x" * 500_000}) == HookReply()


async def test_plain_words_count_where_a_hook_was_written_for_claude_code(runner: HookRunner) -> None:
    assert (await runner.run(hook("echo words", claude=True), {})).text == "words"
    assert (await runner.run(hook("echo words"), {})).failure.startswith("its output is not JSON")
    assert (await runner.run(hook("""echo ' {"message": "m"}' """, claude=True), {})).message == "m"


def test_hooks_that_cannot_be_read_are_named() -> None:
    hooks, problems = read_hooks(
        {
            "before-tool": [{"command": "check", "tools": "shell"}, {"command": ""}, {"comand": "x"}, 7],
            "after-lunch": "x",
            "after-turn": {"command": "x", "timeout": -1},
        }
    )

    assert hooks == (Hook(event="before-tool", command="check", tools=("shell",)),)
    assert [problem.partition(":")[0] for problem in problems] == [
        "hooks.before-tool[1]", "hooks.before-tool[2]", "hooks.before-tool[3]", "hooks.after-lunch", "hooks.after-turn[0]",
    ]  # fmt: skip


def read_one(entry: object, event: str = "before-tool") -> Hook | str:
    hooks, problems = read_hooks({event: [entry]})
    return hooks[0] if hooks else problems[0]


def test_a_hook_is_a_command_or_a_mapping_with_one() -> None:
    assert read_one("check.sh") == Hook(event="before-tool", command="check.sh")
    assert read_hooks({"before-tool": "check.sh"})[0] == (Hook(event="before-tool", command="check.sh"),)
    full = {"command": "c", "tools": ["shell", "mcp*"], "required": True, "timeout": 600, "sandbox": "off"}
    assert read_one(full) == Hook(
        event="before-tool", command="c", tools=("shell", "mcp*"), required=True, timeout=600.0, boxed=False
    )
    assert read_one({"command": "c", "tools": "shell"}) == Hook(event="before-tool", command="c", tools=("shell",))


def test_entries_of_claude_code_are_read() -> None:
    entry = {"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "c", "timeout": 5, "other": 1}]}

    assert read_one(entry, "PreToolUse") == Hook(
        event="before-tool", command="c", timeout=5.0, matcher="Bash|Edit", claude=True
    )
    ours = read_one("c", "Stop")
    assert ours == Hook(event="after-turn", command="c", claude=True)
    assert read_one("c", "before-turn") == Hook(event="before-turn", command="c", claude=False)


@pytest.mark.parametrize("sandbox", [False, "off"])
def test_only_the_users_own_file_lets_a_hook_out_of_the_box(sandbox: object) -> None:
    entry = {"command": "c", "sandbox": sandbox}
    configured = {"before-tool": [entry, "d"]}

    assert [hook.boxed for hook in read_hooks(configured)[0]] == [False, True]
    assert [hook.boxed for hook in read_hooks(configured, {"before-tool": [entry]})[0]] == [False, True]
    assert [hook.boxed for hook in read_hooks(configured, {})[0]] == [True, True]
    assert [hook.boxed for hook in read_hooks(configured, {"after-tool": [entry]})[0]] == [True, True]


SCRIPTS = Path(__file__).parent / "claude"


def configure_claude(runner: Runner, **hooks: list[Any]) -> None:
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
        configure_claude(runner, PreToolUse=[entry("command_guard.py", "Bash")])
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
        configure_claude(runner, PreToolUse=[entry("protect_files.py", matcher)])
        done = await runner.run("-p", "write", "-o", "json")

    first, second = json.loads(done.out)["toolCalls"]
    assert "is protected" in first["result"]["error"]["message"]
    assert second["status"] == "denied"
    assert "is protected" not in second["result"]["error"]["message"]


async def test_a_prompt_is_blocked_with_exit_5_or_given_context(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure_claude(runner, UserPromptSubmit=[entry("check_prompt.py")])
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
        own = {"after-tool": [{"command": """echo '{"additionalContext": "Mind the style."}'"""}]}
        configure_claude(runner, PostToolUse=[entry("lint_after_edit.py", "Write|Edit")], **own)
        await runner.run("-p", "write", "--yes")

    assert "a.py does not parse" in result(runner)
    assert "Mind the style." in result(runner)


async def test_a_hook_that_asks_is_asked_also_where_policy_allows(tmp_path: Path) -> None:
    wish = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}
    async with running(tmp_path, [Answer(calls=[("ls", {})]), "Done."]) as runner:
        configure_claude(runner, PreToolUse=[{"hooks": [{"type": "command", "command": f"echo '{json.dumps(wish)}'"}]}])
        done = await runner.run("-p", "list", "-o", "json")

    (call,) = json.loads(done.out)["toolCalls"]
    assert call["status"] == "denied"


@pytest.mark.parametrize("event", ["before-turn", "UserPromptSubmit"])
async def test_a_required_hook_before_a_turn_fails_closed(tmp_path: Path, event: str) -> None:
    async with running(tmp_path, ["never"]) as runner:
        configure_claude(runner, **{event: [{"command": "exit 7", "required": True}]})
        done = await runner.run("-p", "hi")

    assert done.code == 5
    assert runner.server.chats == []


async def test_what_a_hook_says_after_a_turn_reaches_the_person(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure_claude(
            runner, Stop=[{"hooks": [{"type": "command", "command": "echo 'run the tests first' >&2; exit 2"}]}]
        )
        done = await runner.run("-p", "hi")

    assert done.code == 0
    assert "run the tests first" in done.err

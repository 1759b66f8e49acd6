"""One run of a hook: what it says, how it fails, how it is ended."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ollm.extensions.hook_process import HookReply, HookRunner
from ollm.extensions.hook_settings import Hook
from ollm.system.processes import ProcessHost
from tests.cli.running import Runner, running
from tests.servers.answers import Answer


def configure(runner: Runner, hooks: dict[str, Any]) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"hooks": hooks}))


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
    assert (await runner.run(hook("echo words", claude=True), {})).told == "words"
    assert (await runner.run(hook("echo words"), {})).failure.startswith("its output is not JSON")
    assert (await runner.run(hook("""echo ' {"message": "m"}' """, claude=True), {})).message == "m"

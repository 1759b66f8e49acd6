"""Tasks that write side by side, each in a copy of the workspace, through the command."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.cli.test_parallel_tasks import list_results
from tests.servers.answers import Answer, Request

Call = tuple[str, Any]
ALLOWED = ("--allow", "write_file", "--allow", "edit_file")


def script(*calls: Call, report: Sequence[Answer] = ()) -> Callable[[Request], Answer]:
    """Each task makes its call and reports. The parent ends when it has the reports."""
    reports = report or [Answer(text=f"Task {number} is done.") for number in range(len(calls))]

    def answer(request: Request) -> Answer:
        messages = request.body["messages"]
        over = any(message["role"] == "tool" for message in messages)
        for number, call in enumerate(calls):
            if f"Do part {number}" in messages[1]["content"]:
                return reports[number] if over else Answer(calls=[call])
        tasks: list[Call] = [("task", {"prompt": f"Do part {n}", "agent": "writer"}) for n in range(len(calls))]
        return Answer(text="All done.") if over else Answer(calls=tasks)

    return answer


def git(runner: Runner, *words: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=runner.workspace, check=True, capture_output=True, text=True)
    return done.stdout


async def plant(runner: Runner, *, repository: bool = True) -> None:
    """A workspace with a committed file that has an uncommitted change, and an untracked one."""
    (runner.workspace / ".ollm" / "agents").mkdir(parents=True)
    (runner.workspace / ".ollm" / "agents" / "writer.md").write_text("---\nmode: code\n---\nYou write.\n")
    (runner.workspace / "cart.py").write_text("pay = 1\n")
    if repository:
        git(runner, "init", "-q")
        git(runner, "config", "diff.noprefix", "true")
        git(runner, "add", "cart.py", ".ollm/agents")
        git(runner, "commit", "-qm", "First")
    (runner.workspace / "cart.py").write_text("pay = 2\n")
    (runner.workspace / "new.py").write_text("new = 1\n")
    runner.home.mkdir()
    (runner.home / "config.yaml").write_text("tools: {task: {parallel: 2}}\nworktree: {setup: [echo > made]}\n")
    assert (await runner.run("trust")).code == 0


def edit(path: str, old: str, new: str) -> Call:
    return "edit_file", {"path": path, "oldText": old, "newText": new}


async def test_changes_of_tasks_come_back_and_a_rewind_takes_them_back(tmp_path: Path) -> None:
    reports = [Answer(text="Part 0.", together=2, delay=1), Answer(text="Part 1.", together=2)]
    calls = edit("cart.py", "pay = 2", "pay = 3"), edit("new.py", "new = 1", "new = 2")
    async with running(tmp_path, script(*calls, report=reports)) as runner:
        await plant(runner)

        done = await runner.run("-p", "do it", *ALLOWED, "-o", "json")

        assert list_results(runner) == ["Part 0.\n[It changed cart.py.]", "Part 1.\n[It changed new.py.]"]
        assert (runner.workspace / "cart.py").read_text() == "pay = 3\n"
        assert (runner.workspace / "new.py").read_text() == "new = 2\n"
        assert git(runner, "status", "--porcelain").split("\n")[:1] == [" M cart.py"], "nothing is staged"
        assert len(git(runner, "branch").splitlines()) == 1
        assert len(git(runner, "worktree", "list").splitlines()) == 1
        assert not list(tmp_path.glob("*.worktrees/*"))
        session = json.loads(done.out)["sessionId"]
        assert (await runner.run("sessions", "rewind", session, "--to", "1", "--files")).code == 0
        assert (runner.workspace / "cart.py").read_text() == "pay = 2\n"
        assert (runner.workspace / "new.py").read_text() == "new = 1\n"


async def test_a_conflict_is_reported_and_its_changes_stay_on_a_branch(tmp_path: Path) -> None:
    calls = edit("cart.py", "pay = 2", "pay = 3"), edit("cart.py", "pay = 2", "pay = 4")
    reports = [Answer(text="Part 0.", together=2, delay=1), Answer(text="Part 1.", together=2)]
    async with running(tmp_path, script(*calls, report=reports)) as runner:
        await plant(runner)

        done = await runner.run("-p", "do it", *ALLOWED)

        first, second = list_results(runner)
        assert first == "Part 0.\n[It changed cart.py.]", "the first call wins, though the second ended first"
        branch = git(runner, "branch", "--list", "ollm/*").strip()
        assert f"were not applied: cart.py. The branch {branch} has its changes" in second
        assert (done.out, f"The branch {branch} has its changes" in done.err) == ("All done.\n", True)
        assert (runner.workspace / "cart.py").read_text() == "pay = 3\n"
        assert "+pay = 4" in git(runner, "diff", f"{branch}^", branch)


async def stop(runner: Runner, process: Any, how: signal.Signals) -> str:
    """Stop the command when both tasks have changed their files, and return what it says on stderr."""
    async with asyncio.timeout(60):
        while len(runner.server.chats) < 5:
            await asyncio.sleep(0.05)
        process.send_signal(how)
        return (await process.communicate())[1].decode()


async def test_what_an_unfinished_task_changed_stays_on_a_branch_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = edit("cart.py", "pay = 2", "pay = 3"), edit("new.py", "new = 1", "new = 2")
    late = Answer(text="late", stall_after=0)
    async with running(tmp_path, script(*calls, report=[late, late])) as runner:
        await plant(runner)
        (tmp_path / "bin").mkdir()
        slow = tmp_path / "bin/git"
        slow.write_text(f'#!/bin/sh\nsleep 0.1\nexec {shutil.which("git")} "$@"\n')
        slow.chmod(0o755)
        monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
        process = await runner.start("-p", "do it", *ALLOWED)
        said = await stop(runner, process, signal.SIGINT)

        branches = git(runner, "branch", "--list", "ollm/*").split()
        patches = "".join(git(runner, "diff", f"{branch}^", branch) for branch in branches)
        assert len(branches) == 2
        assert all(f"did not finish. The branch {branch} has its changes" in said for branch in branches), said
        assert "+pay = 3" in patches
        assert "+new = 2" in patches
        assert (runner.workspace / "cart.py").read_text() == "pay = 2\n"
        assert not list(tmp_path.glob("*.worktrees/*"))


async def test_without_git_tasks_that_write_take_turns(tmp_path: Path) -> None:
    calls = edit("cart.py", "pay = 2", "pay = 3"), edit("cart.py", "pay = 3", "pay = 4")
    async with running(tmp_path, script(*calls)) as runner:
        await plant(runner, repository=False)

        assert (await runner.run("-p", "do it", *ALLOWED)).out == "All done.\n"

        assert list_results(runner) == ["Task 0 is done.", "Task 1 is done."]
        assert (runner.workspace / "cart.py").read_text() == "pay = 4\n"
        assert runner.server.most_open_chats == 1


async def test_what_a_killed_task_changed_can_be_found(tmp_path: Path) -> None:
    calls = edit("cart.py", "pay = 2", "pay = 3"), edit("new.py", "new = 1", "new = 2")
    late = Answer(text="late", stall_after=0)
    async with running(tmp_path, script(*calls, report=[late, late])) as runner:
        await plant(runner)
        await stop(runner, await runner.start("-p", "do it", *ALLOWED), signal.SIGKILL)
        assert len(list(tmp_path.glob("*.worktrees/.copy-*"))) == 2
        runner.server.script = script(*calls)

        assert (await runner.run("-p", "again", *ALLOWED)).out == "All done.\n"

        kept = git(runner, "for-each-ref", "--format=%(refname)", "refs/ollm/dropped").split()
        assert sorted(git(runner, "show", f"{ref}:cart.py") for ref in kept) == ["pay = 2\n", "pay = 3\n"]
        assert not list(tmp_path.glob("*.worktrees/*"))


async def test_tasks_of_a_session_in_a_worktree_change_that_worktree(tmp_path: Path) -> None:
    calls = edit("cart.py", "pay = 1", "pay = 3"), ("write_file", {"path": "b.py", "content": "b = 1\n"})
    async with running(tmp_path, script(*calls)) as runner:
        await plant(runner)

        done = await runner.run("-p", "do it", "-w", "side", *ALLOWED)

        assert done.out == "All done.\n", done.err
        side = tmp_path / "project.worktrees" / "side"
        assert [(side / name).read_text() for name in ("cart.py", "b.py")] == ["pay = 3\n", "b = 1\n"]
        assert (runner.workspace / "cart.py").read_text() == "pay = 2\n"
        assert not (runner.workspace / "b.py").exists()

"""`ollm -p TASK --best-of N --check COMMAND`: attempts in copies, the best diff applied after a question."""

import asyncio
import json
import signal
from pathlib import Path

from tests.cli.running import Runner, running
from tests.cli.terminal import at_terminal
from tests.cli.test_worktrees import git, prepare, shell, write
from tests.servers.answers import Answer

CHECK = "grep -q good a.txt && touch left-by-check"


def list_left(runner: Runner) -> list[str]:
    """List the worktrees that git knows beside the main one, and the folders beside the project."""
    known = git(runner.workspace, "worktree", "list", "--porcelain").splitlines()
    listed = [line for line in known if line.startswith("worktree ")][1:]
    return [*listed, *map(str, runner.workspace.parent.glob("*worktrees*"))]


async def test_the_smallest_diff_that_passes_the_check_is_chosen_and_applied_with_yes(tmp_path: Path) -> None:
    long, short, bad = "dirty\ngood\nand\nmore\n", "dirty\ngood\n", "dirty\nbad\n"
    refused = Answer(status=500, body={"error": {"message": "out of memory"}})
    script = [write("a.txt", long), "Long.", write("a.txt", short), "Short.", write("a.txt", bad), "Bad.", refused]
    async with running(tmp_path, [*script, refused, refused, refused, "And on."]) as runner:
        prepare(runner)
        (runner.workspace / "a.txt").write_text("dirty\n")
        head = git(runner.workspace, "rev-parse", "HEAD")
        shown = await runner.run("-p", "fix it", "--best-of", "4", "--check", CHECK, "-o", "json")
        before = (runner.workspace / "a.txt").read_text()
        runner.server.script[:] = script[:4]
        done = await runner.run("-p", "fix it", "--best-of", "2", "--check", CHECK, "--yes")
        runner.server.script[:] = ["And on."]
        await runner.run("-p", "and on", "-c")

    found = json.loads(shown.out)
    assert shown.code == 0, shown.err
    assert [one["passed"] for one in found["attempts"]] == [True, True, False, False]
    assert (found["chosen"], found["applied"], found["text"]) == (2, False, "Short.")
    assert found["attempts"][3]["reason"] == "model-error"
    assert (before, done.code) == ("dirty\n", 0), done.err
    assert done.out.splitlines()[-1] == "+good"
    assert (runner.workspace / "a.txt").read_text() == short
    assert git(runner.workspace, "status", "--short") == "M a.txt"
    assert git(runner.workspace, "rev-parse", "HEAD") == head
    assert list_left(runner) == []
    sent = [(one.get("seed"), one.get("temperature")) for one in runner.server.chats[-5:-1]]
    assert sent == [(None, None)] * 2 + [(1, 0.6)] * 2
    assert "Short." in json.dumps(runner.server.chats[-1]), "-c continues with the chosen attempt"


async def test_nothing_is_applied_without_a_passing_attempt_a_terminal_or_the_persons_word(tmp_path: Path) -> None:
    async with running(tmp_path, [write("a.txt", "bad\n"), "Bad."] * 2) as runner:
        trees = prepare(runner)
        failed = await runner.run("-p", "fix it", "--best-of", "2", "--check", f"echo WHY; {CHECK}", "--yes")
        runner.server.script[:] = [write("a.txt", "good\n"), "Good."] * 3
        piped = await runner.run("-p", "fix it", "--best-of", "1", "--check", CHECK)
        unchanged = (runner.workspace / "a.txt").read_text()
        async with at_terminal(runner, "-p", "fix it", "--best-of", "2") as terminal:
            await terminal.wait_for("Apply this to")
            asked = (runner.workspace / "a.txt").read_text(), trees.exists()
            terminal.type("y\r")
            await terminal.wait_for("applied to 1 file")
        git(runner.workspace, "checkout", "-q", "a.txt")
        runner.server.script[:] = [write("a.txt", "good\n"), "Good."]
        async with at_terminal(runner, "-p", "fix it", "--best-of", "1") as terminal:
            await terminal.wait_for("Apply this to")
            (runner.workspace / "a.txt").write_text("mine\n")
            terminal.type("y\r")
            await terminal.wait_for("refs/ollm/dropped")
        kept = git(runner.workspace, "for-each-ref", "--format=%(refname)", "refs/ollm/dropped")
        wrong = [
            await runner.run("-p", "x", *words.split())
            for words in ("--check= ", "--best-of 2 --check=", "--best-of 2 -c", "--best-of 2 -o stream-json")
        ]

    assert git(runner.workspace, "show", f"{kept}:a.txt") == "good"
    assert failed.code == 1
    assert "WHY" in failed.err
    assert piped.code == 0, piped.err
    assert "--yes" in piped.err
    git(runner.workspace, "checkout", "-q", "a.txt")
    (runner.workspace / "patch").write_text(piped.out)
    git(runner.workspace, "apply", "patch")
    assert (runner.workspace / "a.txt").read_text() == "good\n"
    assert unchanged == "one\n"
    assert asked == ("one\n", False)
    assert [one.code for one in wrong] == [2] * 4


async def test_attempts_take_models_in_turn_and_one_without_a_server_fails_alone(tmp_path: Path) -> None:
    async with running(tmp_path, [write("a.txt", "good\n"), "Good."]) as runner:
        prepare(runner)
        done = await runner.run("-p", "fix it", "--models", "missing,scripted", "--check", CHECK, "-o", "json")
        none = await runner.run("-p", "fix it", "--best-of", "2", OLLM_BASE_URL="http://127.0.0.1:1")

    found = json.loads(done.out)
    assert [(one["model"], one["passed"]) for one in found["attempts"]] == [("missing", None), ("scripted", True)]
    assert "missing" in found["attempts"][0]["problem"]
    assert (none.code, list_left(runner)) == (3, [])


async def test_ctrl_c_leaves_no_copies_and_no_changes(tmp_path: Path) -> None:
    async with running(tmp_path, [write("a.txt", "good\n"), Answer(text="slow", delay=60)]) as runner:
        trees = prepare(runner, "provider: {parallel: 2}\n")
        process = await runner.start("-p", "fix it", "--best-of", "2", "--check", CHECK)
        while len(runner.server.chats) < 2:
            await asyncio.sleep(0.05)
        during = len(list(trees.glob(".copy-*")))
        process.send_signal(signal.SIGINT)
        code = await process.wait()

    assert (during, code) == (2, 130)
    assert list_left(runner) == []
    assert (runner.workspace / "a.txt").read_text() == "one\n"


async def test_a_repository_or_env_file_of_an_attempt_is_kept_beside_the_copies(tmp_path: Path) -> None:
    make = "git init -q lib && echo work > lib/w.txt && echo S=1 > .env && echo good > a.txt"
    async with running(tmp_path, [shell("sh make.sh"), "Done."]) as runner:
        trees = prepare(runner)
        (runner.workspace / "make.sh").write_text(make)
        git(runner.workspace, "init", "-q", "vendor")
        (runner.workspace / "vendor/v").write_text("mine\n")
        done = await runner.run("-p", "fix it", "--best-of", "1", "--yes")

    assert done.code == 0, done.err
    assert git(runner.workspace, "status", "--short").splitlines() == ["M a.txt", "?? make.sh", "?? vendor/"]
    (left,) = trees.glob("left-*")
    assert str(left) in done.err
    assert [(left / name).read_text() for name in (".env", "lib/w.txt")] == ["S=1\n", "work\n"]
    assert len(git(runner.workspace, "worktree", "list").splitlines()) == 1

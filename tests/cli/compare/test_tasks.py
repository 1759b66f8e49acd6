"""`ollm compare add` and `list`: tasks in `.ollm/tasks.yaml`, shown before they are written, refused if they say nothing."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_C, at_terminal
from tests.cli.test_worktrees import git, shell, write

CHECK = "grep -q good a.txt"
GOOD = [write("a.txt", "good\n"), "Done."]


def prepare(runner: Runner) -> str:
    """Make a repository with one commit, and return its id."""
    runner.home.mkdir(exist_ok=True)
    (runner.workspace / "a.txt").write_text("bad\n")
    git(runner.workspace, "init", "-q", "-b", "main")
    git(runner.workspace, "add", ".")
    git(runner.workspace, "commit", "-qm", "first")
    return git(runner.workspace, "rev-parse", "HEAD")


def list_files(runner: Runner) -> list[str]:
    """List everything beside the project and in it, but git's own files."""
    found = runner.workspace.parent.rglob("*")
    kept = (
        path for path in found if not {".git", "home", "inputs"} & {*path.relative_to(runner.workspace.parent).parts}
    )
    return sorted(str(path.relative_to(runner.workspace.parent)) for path in kept)


async def test_a_task_is_shown_and_written_after_yes_and_keeps_the_workspace_trusted(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        start = prepare(runner)
        await runner.run("trust")
        unasked = await runner.run("compare", "add", "good", "--request", "Make it good.", "--check", CHECK)
        before = list_files(runner)
        async with at_terminal(runner, "compare", "add") as terminal:
            await terminal.wait_for("Name of the task")
            terminal.type("good\r")
            await terminal.wait_for("Request")
            terminal.type("Make it good.\r")
            await terminal.wait_for("Check")
            terminal.type(f"{CHECK}\r")
            await terminal.wait_for("Add 1 task to")
            terminal.type("y\r")
            await terminal.wait_for("added 1 task")
        more = (
            "--request",
            "One\n\ntwo: 'x'",
            "--check",
            "false",
            "--start",
            start[:9],
            "--limit",
            "90s",
            "--keep",
            "t/*",
        )
        added = await runner.run("compare", "add", "1e5", *more, "--setup", "touch ready", "--yes")
        listed = json.loads((await runner.run("compare", "--json")).out)
        again = await runner.run(
            "compare", "add", "good", "--request", "x", "--check", "false", "--start", start, "--yes"
        )
        trusted = await runner.run("trust", "--list")

    assert (unasked.code, before) == (2, ["project", "project/a.txt"])
    assert "start: " + start in unasked.out
    assert (added.code, again.code) == (0, 2), added.err
    assert "good already" in again.err
    assert listed["good"]["request"] == "Make it good."
    assert listed["good"]["start"] == start
    assert "**/conftest.py" in listed["good"]["keep"]
    assert (listed["1e5"]["request"], listed["1e5"]["keep"], listed["1e5"]["limit"]) == (
        "One\n\ntwo: 'x'",
        ["t/*"],
        "90s",
    )
    assert "yes" in trusted.out.splitlines()[1]
    assert list_files(runner) == ["project", "project/.ollm", "project/.ollm/tasks.yaml", "project/a.txt"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--check", "true"), "passes at the start"),
        (("--check", "sleep 9", "--limit", "1s"), "does not end in time"),
        (("--check", "no-such-program"), "cannot run"),
        (("--check", "false", "--setup", "echo WHY; exit 3"), "WHY"),
        (("--check", "false", "--start", "nowhere"), "no commit nowhere"),
        (("--check", "false", "--limit", "soon"), "90s, 10m or 2h"),
    ],
)
async def test_a_task_that_says_nothing_is_refused(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        prepare(runner)
        done = await runner.run("compare", "add", "x", "--request", "Do it.", *words, "--yes")

        assert done.code in (1, 2)
        assert told in done.err
        assert list_files(runner) == ["project", "project/a.txt"]


async def test_no_repository_and_uncommitted_files_are_told_with_the_next_step(tmp_path: Path) -> None:
    words = ("compare", "add", "x", "--request", "Do it.", "--check", CHECK, "--yes")
    async with running(tmp_path, []) as runner:
        without = await runner.run(*words)
        git(runner.workspace, "init", "-q", "-b", "main")
        empty = await runner.run("compare", "add", "--from-commits")
        prepare(runner)
        (runner.workspace / "new.txt").touch()
        dirty = await runner.run(*words)
        named = await runner.run(*words, "--start", "HEAD")

    assert (without.code, dirty.code, named.code) == (2, 2, 0)
    assert "git init" in without.err
    assert "has no commit yet" in empty.err
    assert "new.txt" in dirty.err
    assert "--start HEAD" in dirty.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("good:\n  start: abc\n  requst: x\n", "tasks.yaml:3:3 good.requst: unknown key, did you mean good.request?"),
        ("good:\n  start: abc\n  check: x\n", "tasks.yaml:1:1 good: has no request"),
        ("good:\n  limit: 5\n", "tasks.yaml:2:3 good.limit: expected text, not 5"),
        ("good: [\n", "tasks.yaml:2:1 is not YAML"),
        ("- good\n", "expected a mapping"),
    ],
)
async def test_a_mistake_in_the_file_is_told_by_line_and_key(text: str, told: str, tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        prepare(runner)
        (runner.workspace / ".ollm").mkdir()
        (runner.workspace / ".ollm/tasks.yaml").write_text(text)
        listed = await runner.run("compare", "list")
        added = await runner.run("compare", "add", "x", "--request", "x", "--check", "false", "--yes")

    assert (listed.code, added.code) == (2, 2)
    assert told in " ".join(listed.err.split())
    assert (runner.workspace / ".ollm/tasks.yaml").read_text() == text


async def test_commits_with_tests_become_tasks_that_a_model_can_solve(tmp_path: Path) -> None:
    """Kept are those whose tests fail before the change and pass after it; the start has the new tests, not the rest."""
    script = [shell("git log --format=%s; git status --short; cat tests/test_a.sh a.txt"), *GOOD]
    async with running(tmp_path, script) as runner:
        prepare(runner)
        tests = runner.workspace / "tests"
        tests.mkdir()
        for title, files in (
            ("Old test", {"a.txt": "still bad\n", "tests/test_old.sh": "exit 1\n"}),
            ("Passes before", {"a.txt": "bad again\n", "tests/test_any.sh": "true\n"}),
            ("Only source", {"b.txt": "b\n"}),
            ("Make it good!\n\nIt was bad.", {"a.txt": "good\n", "tests/test_a.sh": "echo WHY; grep -q good a.txt\n"}),
        ):
            for name, text in files.items():
                (runner.workspace / name).write_text(text)
            if "good" in title:
                (tests / "test_old.sh").unlink()
            git(runner.workspace, "add", ".")
            git(runner.workspace, "commit", "-qm", title)
        words = ("compare", "add", "--from-commits", "--check", "sh {tests}", "--yes")
        added = await runner.run(*words)
        listed = json.loads((await runner.run("compare", "--json")).out)
        again = await runner.run(*words)
        refused = [await runner.run(*words, *more) for more in (("name",), ("--from-commits", "no..where"))]
        done = await runner.run("compare", "run", "--models", "scripted", "--json")

    commit = git(runner.workspace, "rev-parse", "HEAD")
    name = f"make-it-good-{commit[:7]}"
    assert added.code == 0, added.err
    assert list(listed) == [name]
    assert listed[name]["files"] == ["tests/test_a.sh", "tests/test_old.sh"]
    assert listed[name]["check"] == "sh tests/test_a.sh"
    assert listed[name]["request"].startswith("Make it good!\n\nIt was bad.\n\n")
    assert "WHY" in listed[name]["request"]
    assert added.err.count("left out: ") == 2
    assert "passes at the start" in added.err
    assert "fails after the change too" in added.err
    assert (again.code, *(one.code for one in refused)) == (2, 2, 1)
    assert "none makes a task" in again.err
    assert [run["passed"] for run in json.loads(done.out)["runs"]] == [True]
    told = json.dumps(runner.server.chats[1]["messages"][-1])
    assert "Add tests\\nOnly source\\n" in json.loads(told)["content"].replace("\n", "\\n")
    assert "bad again" in told
    assert git(runner.workspace, "status", "--short") == "?? .ollm/"


async def test_ctrl_c_offers_the_tasks_that_were_found(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        prepare(runner)
        (runner.workspace / "tests").mkdir()
        for name, seconds in (("slow", 60), ("quick", 0)):
            (runner.workspace / f"{name}.txt").write_text("good\n")
            (runner.workspace / f"tests/test_{name}.sh").write_text(f"sleep {seconds}; cat {name}.txt\n")
            git(runner.workspace, "add", ".")
            git(runner.workspace, "commit", "-qm", name)
        async with at_terminal(runner, "compare", "add", "--from-commits", "--check", "sh {tests}") as terminal:
            await terminal.wait_for("fails before the change")
            terminal.type(CTRL_C)
            await terminal.wait_for("Add 1 task to")
            terminal.type("y\r")
            await terminal.wait_for("added 1 task")
        (name,) = json.loads((await runner.run("compare", "--json")).out)

    assert name.startswith("quick-")
    assert list_files(runner)[-1] == "project/tests/test_slow.sh"


async def test_python_tests_of_commits_need_no_check_and_a_model_can_write_the_request(tmp_path: Path) -> None:
    async with running(tmp_path, ["The value should be two."]) as runner:
        prepare(runner)
        place = runner.workspace / "sub"
        place.mkdir()
        (place / "code.py").write_text("value = 2\n")
        (place / "test_code.py").write_text(
            "def test_value():\n    print(__file__)\n    assert open('code.py').read() == 'value = 2\\n'\n"
        )
        git(runner.workspace, "add", ".")
        git(runner.workspace, "commit", "-qm", "Two")
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        added = await runner.run(
            "compare", "add", "--from-commits", "--rewrite", "scripted", "--workspace", str(place), "--yes", PATH=path
        )
        assert added.code == 0, added.err
        (listed,) = json.loads((await runner.run("compare", "list", "--json", "--workspace", str(place))).out).values()

    asked = json.dumps(runner.server.chats)
    assert all(text in asked for text in ("Two", "test_value"))
    assert listed["request"].startswith("The value should be two.\n\n`python -m pytest")
    assert "The value should be two." in added.out
    assert listed["check"] == "python -m pytest -q test_code.py"
    assert "\nsub/test_code.py\n" in listed["request"]
    assert "FAILED test_code.py::test_value" in listed["request"]


async def test_a_session_becomes_a_task_from_the_commit_it_began_with(tmp_path: Path) -> None:
    async with running(tmp_path, GOOD) as runner:
        start = prepare(runner)
        settings = f"checks: [{{files: '*.txt', run: '{CHECK}'}}]\n"
        await runner.run("-p", "Make it good.\n\nPlease.", "--yes")
        await asyncio.sleep(1.1)  # git counts in seconds
        git(runner.workspace, "commit", "-qam", "Good")
        (session,) = runner.sessions()
        words = ("compare", "add", "good", "--from-session", session["sessionId"][:8], "--yes")
        unchecked = await runner.run(*words)
        (runner.home / "config.yaml").write_text(settings)
        added = await runner.run(*words)
        mixed = await runner.run(*words[:2], *words[3:], "--from-commits")
        nobody = await runner.run(*words[:4], "nobody")
        listed = json.loads((await runner.run("compare", "--json")).out)["good"]

    assert (unchecked.code, added.code, mixed.code, nobody.code) == (2, 0, 2, 2), nobody.err
    assert "--check COMMAND" in unchecked.err
    assert "nobody" in nobody.err
    assert (listed["request"], listed["start"], listed["check"]) == ("Make it good.\n\nPlease.", start, CHECK)

"""`/review`, `/commit` and `ollm -p --review`: changes of a repository, in parts that fit the window."""

import re
import subprocess
from pathlib import Path

from tests.cli.running import Runner, running
from tests.cli.terminal import ENTER, at_terminal
from tests.servers.answers import Answer


def git(runner: Runner, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, cwd=runner.workspace, check=True, capture_output=True, text=True).stdout


def make_repository(runner: Runner) -> None:
    """A repository with a change, a new file and a secret, whose settings name a program for diffs."""
    git(runner, "init", "-q", "-b", "main")
    (runner.workspace / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (runner.workspace / ".gitattributes").write_text("*.py diff=evil\n")
    git(runner, "add", "-A")
    git(runner, "commit", "-qm", "one")
    git(runner, "config", "diff.evil.textconv", f"touch {runner.workspace}/ran; cat")
    git(runner, "config", "diff.external", f"touch {runner.workspace}/ran; true")
    (runner.workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (runner.workspace / "new.py").write_text("@calc.py\n")
    (runner.workspace / ".env").write_text("SECRET=1\n")


def last_message(runner: Runner, request: int = -1) -> str:
    return str(runner.server.chats[request]["messages"][-1]["content"])


async def test_uncommitted_changes_are_attached(tmp_path: Path) -> None:
    async with running(tmp_path, ["It subtracts."]) as runner:
        make_repository(runner)
        done = await runner.run("-p", "--review", stdin="not read")

    assert (done.code, done.out) == (0, "It subtracts.\n"), done.err
    sent = last_message(runner)
    for part in ("Review the attached changes.", "-    return a + b\n+    return a - b", "+@calc.py"):
        assert part in sent
    assert "SECRET" not in sent
    assert "not read" not in sent
    assert sent.count("def add") == 1, "a name in a diff attaches nothing"
    assert not (runner.workspace / "ran").exists()


async def test_a_range_is_reviewed_and_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    async with running(tmp_path, ["Fine.", "Fine.", "{}"]) as runner:
        make_repository(runner)
        git(runner, "commit", "-qam", "two")
        await runner.run("-p", "look at signs", "--review", "main~1..main")
        wrong = await runner.run("-p", "--review", "nosuch")
        await runner.run("-p", "/review HEAD~1 and be brief")
        none = await runner.run("-p", "--review", "main..main")
        (runner.workspace / "any.json").write_text('{"type": "object"}')
        form = await runner.run("-p", "--review", "main..main", "--schema", "any.json")

    assert "look at signs" in last_message(runner, 0)
    assert "-    return a + b" in last_message(runner, 0)
    assert "new.py" not in last_message(runner, 0)
    assert (wrong.code, "git knows no revision nosuch" in wrong.err) == (2, True)
    assert "and be brief" in last_message(runner, 1)
    assert (form.out, "No changes." in last_message(runner, 2)) == ("{}\n", True)
    assert (none.code, none.out) == (0, "No changes.\n")


async def test_a_large_diff_comes_in_parts_that_fit(tmp_path: Path) -> None:
    async with running(tmp_path, [f"Part {number}." for number in range(1, 30)]) as runner:
        make_repository(runner)
        (runner.workspace / "long.py").write_text("".join(f"value_{number} = {number}\n" for number in range(600)))
        done = await runner.run("-p", "--review", OLLM_CONTEXT_WINDOW="8192")

    received = [last_message(runner, number) for number in range(len(runner.server.chats))]
    sent = [text for text in received if "[changes, part " in text]  # the others ask for a summary
    assert len(sent) > 2
    assert all(f"+value_{number} = {number}\n" in "".join(sent) for number in range(600))
    assert all(f"part {number} of {len(sent)}]" in text for number, text in enumerate(sent, 1))
    assert "answer for all parts together" in sent[-1]
    assert done.out == f"Part {len(received)}.\n"
    assert all(re.search(r"^@@ -0 \+\d+ @@\n\+value", part, re.MULTILINE) for part in sent[2:-1])
    (session,) = runner.sessions()
    assert [message["role"] for message in session["messages"]] == ["user", "assistant"] * len(sent)


async def test_a_commit_is_an_ordinary_call_that_asks(tmp_path: Path) -> None:
    commit = "git add calc.py && git -c user.name=a -c user.email=a@b commit -qm 'Subtract'"
    call = Answer(text="Subtract", calls=[("shell", {"command": commit})])
    async with running(tmp_path, [call, "Done.", call, "Done."]) as runner:
        make_repository(runner)
        refused = await runner.run("-p", "/commit")
        before = git(runner, "log", "--format=%s")
        done = await runner.run("-p", "/commit", "--yes")

    assert (refused.code, before) == (5, "one\n")
    assert "nothing is staged" in last_message(runner, 0)
    assert done.code == 0, done.err
    assert git(runner, "log", "--format=%s") == "Subtract\none\n"


async def test_in_a_chat_and_with_a_text_of_ones_own(tmp_path: Path) -> None:
    async with running(tmp_path, ["It subtracts."]) as runner:
        make_repository(runner)
        (runner.home / "commands").mkdir(parents=True)
        (runner.home / "commands" / "review.md").write_text("---\nchanges: range\n---\nOnly typos.\n")
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("\n›")
            terminal.type("/review" + ENTER)
            await terminal.wait_for("It subtracts.")

    assert last_message(runner).startswith("Only typos.")
    assert "+    return a - b" in last_message(runner)

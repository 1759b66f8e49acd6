"""`ollm compare run`: models work in repositories of their own, their changes are checked in a fresh one."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.compare.test_tasks import CHECK, GOOD, list_files, prepare
from tests.cli.running import Runner, running
from tests.cli.test_worktrees import git, shell, write
from tests.servers.answers import Answer

RUN = ("compare", "run", "--models")


async def add_task(runner: Runner, *more: str, name: str = "good", check: str = CHECK) -> None:
    words = ("--request", "Make it good.", "--check", check, "--start", "HEAD", "--yes")
    done = await runner.run("compare", "add", name, *words, *more)
    assert done.code == 0, done.err


def list_verdicts(out: str) -> list[tuple[str, int, bool]]:
    return [(run["model"], run["number"], run["passed"]) for run in json.loads(out)["runs"]]


async def test_each_task_runs_with_each_model_and_the_table_says_who_passed(tmp_path: Path) -> None:
    async with running(tmp_path, [*GOOD, "I did nothing.", *GOOD, "Nothing."], models=("big", "small")) as runner:
        prepare(runner)
        await add_task(runner)
        before = list_files(runner)
        done = await runner.run(*RUN, "big,small", "--times", "2", "--set", "temperature=0.5", "--json")
        listed = await runner.run("sessions", "list", "--json")
        shown = await runner.run("compare", "show")
        found = json.loads(done.out)
        opened = await runner.run("sessions", "view", found["runs"][0]["sessionId"])
        file = runner.home / "page.html"
        written = [await runner.run("compare", "show", "--html", str(file), *more) for more in ((), (), ("--force",))]

    assert done.code == 0, done.err
    assert list_verdicts(done.out) == [("big", 1, True), ("big", 2, False), ("small", 1, True), ("small", 2, False)]
    assert [chat["model"] for chat in runner.server.chats] == ["big"] * 3 + ["small"] * 3
    assert {chat["temperature"] for chat in runner.server.chats} == {0.5}
    assert found["runs"][0]["figures"]["steps"] == 2
    assert found["differences"] == [{"models": ["big", "small"], "more": 0, "beyondChance": False}]
    assert "No difference between big and small" in shown.out
    assert "1 of 2" in shown.out
    assert "Make it good." in opened.out
    page = file.read_text()
    links = re.findall(r'href="#(run-\d)"', page)
    sections = re.findall(r'<section class="run[^>]*id="([^"]+)"', page)
    assert links == sections == [f"run-{number}" for number in range(4)]
    assert [one.code for one in written] == [0, 2, 0]
    assert "No difference between big and small" in page
    assert "the check fails" in page
    assert "<h2>project</h2>" in page
    assert "<script" not in page
    assert set(re.findall(r'(?:src|href)="(.)', page)) == {"#"}
    assert json.loads(listed.out) == []
    assert (list_files(runner), git(runner.workspace, "status", "--short")) == (before, "?? .ollm/")


async def test_a_model_finds_no_later_commit_no_notes_and_no_network(tmp_path: Path) -> None:
    """Whatever it looks at, the solution is not there: not in objects, refs, stashes, notes or the project itself."""
    looks = [
        "git log --all --oneline; git reflog; git stash list; git remote -v; git tag",
        "git fsck --lost-found; git cat-file --batch-all-objects --batch-check; git rev-list --all --objects",
        f"cat {tmp_path}/project/a.txt {tmp_path}/project/.git/HEAD; ls -a {tmp_path}; ls {tmp_path}/home; env",
        "git fetch origin; git worktree list; cat .git/FETCH_HEAD .git/objects/info/alternates .git/config",
    ]
    calls = [
        Answer(calls=[("recall", {"queries": ["SECRET", "a.txt"]})]),
        Answer(calls=[("memory", {"action": "list"})]),
    ]
    async with running(tmp_path, [*map(shell, looks), *calls, "Nothing found."]) as runner:
        start = prepare(runner)
        (runner.workspace / "a.txt").write_text("good SECRET\n")
        git(runner.workspace, "commit", "-qam", "SECRET solution")
        git(runner.workspace, "tag", "later")
        (runner.workspace / "b.txt").write_text("SECRET\n")
        git(runner.workspace, "add", "b.txt")
        git(runner.workspace, "stash", "-q")
        await runner.run(
            "tools", "run", "memory", '{"action":"set","key":"k","value":"SECRET","scope":"global"}', "--yes"
        )
        await add_task(runner, "--start", start, check="false")
        done = await runner.run(*RUN, "scripted", "--json")

    told = json.dumps([chat["messages"][2:] for chat in runner.server.chats])
    assert done.code == 0, done.err
    assert len(runner.server.chats) == 7
    assert "first" in told
    assert "SECRET" not in told.replace('\\"SECRET\\"', "")
    assert git(runner.workspace, "rev-parse", "later") not in told
    tools = {tool["function"]["name"] for tool in runner.server.chats[0]["tools"]}
    assert tools.isdisjoint({"memory", "web_fetch", "web_search"})


async def test_changes_to_tests_and_to_the_repository_itself_do_not_count(tmp_path: Path) -> None:
    cheat = "mkdir -p tests && echo good > tests/x && echo 'a.txt -diff' > .gitattributes"
    script = [shell(cheat), "Done.", write("tests/x", "bad\n"), *GOOD]
    shadow = "mkdir pytest; touch .pytest.toml argparse.py __main__.py pytest/__init__.py pytest/notes"
    script += [shell(f"{shadow}; rm -rf tests a.txt; echo x > tests; git init -q a.txt"), "Done."]
    async with running(tmp_path, script) as runner:
        prepare(runner)
        (runner.workspace / "tests").mkdir()
        (runner.workspace / "tests/old").touch()
        git(runner.workspace, "add", ".")
        git(runner.workspace, "commit", "-qm", "Tests")
        check = "grep -q good tests/x a.txt 2>/dev/null; grep -q good a.txt && ! test -e tests/x"
        await add_task(runner, check=f"{check} && {sys.executable} --version")
        done = await runner.run(*RUN, "scripted", "--times", "3", "--json")
        found = json.loads(done.out)["runs"]

    assert [(run["passed"], run["dropped"]) for run in found] == [
        (False, [".gitattributes", "tests/x"]),
        (True, ["tests/x"]),
        (False, [".pytest.toml", "argparse.py", "pytest/__init__.py", "tests", "tests/old"]),
    ]
    assert "its changes to tests/x do not count" in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, 0])
async def test_a_stopped_comparison_goes_on_where_it_was(number: int, tmp_path: Path) -> None:
    async with running(tmp_path, [*GOOD, Answer(text="slow", delay=60)]) as runner:
        prepare(runner)
        await add_task(runner)
        before = list_files(runner)
        process = await runner.start(*RUN, "scripted", "--times", "3")
        while len(runner.server.chats) < 3:
            await asyncio.sleep(0.05)
        if number:
            process.send_signal(number)
        else:  # The server dies.
            await runner.server.__aexit__()
        code = await process.wait()
        await (runner.server.__aenter__() if not number else asyncio.sleep(0))
        left = list_files(runner)
        stopped = await runner.run("compare", "show")
        runner.server.script[:] = [*GOOD, "Nothing."]
        done = await runner.run(*RUN, "scripted", "--times", "3", "--json")
        again: Any = [session["sessionId"] for session in runner.sessions()]

    assert number or code == 3
    assert number == signal.SIGKILL or left == before
    assert "1 of 1" in stopped.out
    assert "2 runs missing" in stopped.out
    assert "2 of 3" in done.err
    assert "left" in done.err
    assert [passed for _, _, passed in list_verdicts(done.out)] == [True, True, False]
    assert sorted(again) == sorted(run["sessionId"] for run in json.loads(done.out)["runs"])
    assert list_files(runner) == before


async def test_time_limits_servers_that_die_and_wrong_names_are_told(tmp_path: Path) -> None:
    script = [Answer(text="slow", delay=60), *GOOD]
    async with running(tmp_path, script, models=("scripted",), strict=True) as runner:
        prepare(runner)
        await add_task(runner, check=f"{CHECK} && sleep 60")
        late = await runner.run(*RUN, "scripted", "--limit", "2s", "--json")
        long = await runner.run(*RUN, "scripted", "--limit", "4s", "--json")
        wrong = [
            await runner.run(*RUN, *words.split())
            for words in (
                "nobody",
                "scripted --limit soon",
                "scripted --set x=1",
                "scripted --set temperature=hot",
                "scripted -- bad",
                ",",
            )
        ]
        dead = await runner.run(*RUN, "scripted", OLLM_BASE_URL="http://127.0.0.1:1")
        (runner.workspace / ".ollm/tasks.yaml").write_text((runner.workspace / ".ollm/tasks.yaml").read_text() + "\n")
        changed = await runner.run(*RUN, "scripted")
        with (runner.workspace / ".ollm/tasks.yaml").open("a") as file:
            file.write("  filesFrom: HEAD\n  files: [a.txt, gone.txt]\n")
        await runner.run("trust")
        gone = await runner.run(*RUN, "scripted")

    (run,) = json.loads(late.out)["runs"]
    assert (late.code, run["passed"], run["reason"]) == (0, False, "timeout")
    assert "not passed (check-timeout)" in long.err
    assert [one.code for one in wrong] == [4, 2, 2, 2, 2, 2]
    assert "nobody" in wrong[0].err
    assert (dead.code, changed.code) == (3, 2)
    assert "ollm trust" in changed.err
    assert "good: the commit HEAD has no file gone.txt" in gone.err


async def test_the_best_model_is_named_with_its_reason_and_set_after_yes(tmp_path: Path) -> None:
    async with running(tmp_path, [*GOOD, *GOOD, "Nothing.", "Nothing."], models=("big", "small", "new")) as runner:
        prepare(runner)
        none = await runner.run("compare", "best")
        await add_task(runner)
        meter = tmp_path / "bin/nvidia-smi"
        meter.parent.mkdir()
        meter.write_text("#!/bin/sh\necho '0, 100.50'; echo '1, [N/A]'; echo '2, 20'; exec sleep 60\n")
        meter.chmod(0o755)
        ran = await runner.run(*RUN, "big,small", "--times", "2", "--json", PATH=f"{meter.parent}:{os.environ['PATH']}")
        unasked = await runner.run("compare", "best")
        config = runner.home / "config.yaml"
        before = config.exists()
        done = await runner.run("compare", "best", "--yes", "--json")
        card = await runner.run("models", "card", "small")
        known = await runner.run("doctor", OLLM_MODEL="big", OLLM_CONTEXT_WINDOW="16384")
        new = await runner.run("doctor", "--json", OLLM_MODEL="new", OLLM_CONTEXT_WINDOW="16384")
        shell = {"_OLLM_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
        names = await runner.run(COMP_WORDS="ollm compare run --models big,n", **shell)
        tasks = await runner.run(COMP_WORDS="ollm compare run g", **shell | {"COMP_CWORD": "3"})

    assert (none.code, unasked.code, done.code, before) == (2, 2, 0, False)
    assert "compare run" in none.err
    assert "passed 2 of 2" in unasked.out
    for figures in (run["figures"] for run in json.loads(ran.out)["runs"]):
        assert figures["joules"] == pytest.approx(120.5 * figures["seconds"], abs=10)
    assert json.loads(done.out) == {"main": {"model": "big", "reason": "passed 2 of 2"}}
    assert config.read_text() == "roles:\n  main: big\n"
    assert "compared  passed 0 of 2" in card.out
    assert "compare run" not in known.out
    assert "`ollm compare run --models big,small,new`" in json.loads(new.out)["next"]
    assert (names.out, tasks.out) == ("plain,big,new\n", "plain,good\n")

"""Files and talk go back together: through the command, after a model changed files by edits and by shell commands."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.servers.answers import Answer
from tests.sizes import size

FORMATTER = (
    "for f in *.py; do sed -i 's/  */ /g' $f; done; rm gone.txt; mv moved.txt elsewhere.txt; mkdir new; touch new/x"
)


def read_files(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): path.read_text()
        for path in place.rglob("*")
        if path.is_file() and ".ollm" not in path.parts
    }


def list_all(runner: Runner) -> dict[str, tuple[int, bytes]]:
    """Every file of the workspace and of what is saved, with its time: whoever writes shows here."""
    places = (runner.workspace, runner.home / "checkpoints", runner.home / "sessions")
    paths = [path for place in places for path in place.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def write_project(place: Path) -> dict[str, str]:
    for number in range(50):
        (place / f"module{number}.py").write_text(f"x   =   {number}\n")
    (place / "gone.txt").write_text("precious\n")
    (place / "moved.txt").write_text("moved\n")
    return read_files(place)


def find_session(runner: Runner) -> str:
    return str(runner.sessions()[-1]["sessionId"])


def call(command: str) -> Answer:
    return Answer(calls=[("shell", {"command": command})])


async def test_a_formatter_over_fifty_files_is_taken_back_from_the_command(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", call(FORMATTER), "Formatted.", "And now?"]) as runner:
        before = write_project(runner.workspace)
        await runner.run("-p", "hi")
        done = await runner.run("--continue", "-p", "format everything", "--yes")
        assert done.code == 0, done.err
        after = read_files(runner.workspace)
        assert after["module7.py"] == "x = 7\n"
        assert "gone.txt" not in after

        shown = await runner.run("sessions", "rewind", find_session(runner), "--to", "3", "--files", "--dry-run")
        assert read_files(runner.workspace) == after
        gone = await runner.run("sessions", "rewind", find_session(runner), "--to", "3", "--files", "--json")
        await runner.run("--continue", "-p", "what now?")

    assert "54 files would change back" in shown.out
    assert "`D` elsewhere.txt" in shown.out
    assert read_files(runner.workspace) == before
    assert not (runner.workspace / "new").exists()
    outcome = json.loads(gone.out)
    assert (outcome["what"], len(outcome["files"]), outcome["skipped"]) == ("both", 54, [])
    sent = [message["content"] for message in runner.server.chats[-1]["messages"] if message["role"] == "user"]
    assert ["format everything" in text for text in sent] == [False] * len(sent)


async def test_talk_alone_goes_back_and_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "first words")
        await runner.run("--continue", "-p", "second words")
        wrong = await runner.run("sessions", "rewind", "--to", "2")
        unknown = await runner.run("sessions", "rewind", "abcdef12", "--to", "1")
        done = await runner.run("sessions", "rewind", "--to", "3")
        await runner.run("--continue", "-p", "third words")

    assert (wrong.code, "not one of your messages" in wrong.err) == (2, True)
    assert unknown.code == 1
    assert done.out == "Rewound to before message 3.\n"
    assert "second words" not in json.dumps(runner.server.chats[-1])
    (session,) = runner.sessions()
    assert len(session["messages"]) == 6
    assert [step["step"] for step in session["metadata"]["contextHistory"]] == ["rewind"]


async def test_what_the_user_changed_since_is_left_alone_and_named(tmp_path: Path) -> None:
    async with running(tmp_path, [call("echo model > a.txt; echo model > b.txt"), "Done."]) as runner:
        (runner.workspace / "a.txt").write_text("old\n")
        await runner.run("-p", "change it", "--yes")
        (runner.workspace / "a.txt").write_text("by hand\n")
        done = await runner.run("sessions", "rewind", "--to", "1", "--files")
        kept = read_files(runner.workspace)
        forced = await runner.run("sessions", "rewind", "--to", "1", "--files", "--force")

    assert done.code == 1
    assert "a.txt: changed since, not by the model" in done.out
    assert kept == {"a.txt": "by hand\n"}
    assert forced.code == 0
    assert read_files(runner.workspace) == {"a.txt": "old\n"}


async def test_a_rewind_is_taken_back_from_the_command_with_files_and_talk(tmp_path: Path) -> None:
    async with running(tmp_path, [call("echo model > a.txt"), "Done.", "And now?"]) as runner:
        (runner.workspace / "a.txt").write_text("old\n")
        none = await runner.run("sessions", "redo")
        await runner.run("-p", "change it", "--yes")
        too_early = await runner.run("sessions", "redo")
        await runner.run("sessions", "rewind", "--to", "1", "--files")
        shown = await runner.run("sessions", "redo", "--dry-run")
        assert read_files(runner.workspace) == {"a.txt": "old\n"}
        done = await runner.run("sessions", "redo", "--json")
        again = await runner.run("sessions", "redo")
        await runner.run("--continue", "-p", "what now?")

    assert none.code != 0
    assert (too_early.code, again.code, "Nothing to redo" in again.err) == (2, 2, True)
    assert "This takes back the rewind to before message 1.\n\n1 file would change back:\n- `M` a.txt" in shown.out
    outcome = json.loads(done.out)
    assert (done.code, outcome["what"], outcome["files"]) == (0, "both", [{"path": "a.txt", "change": "M"}])
    assert read_files(runner.workspace) == {"a.txt": "model\n"}
    assert "change it" in json.dumps(runner.server.chats[-1])


async def test_new_files_that_a_new_rule_hides_stay_and_are_named(tmp_path: Path) -> None:
    change = call(
        "mkdir d; printf 'b.txt\\nc.txt\\n' > .gitignore; echo x > b.txt; echo x > d/c.txt; mkdir node_modules"
    )
    async with running(tmp_path, [change, "Done."]) as runner:
        await runner.run("-p", "change it", "--yes")
        shown = await runner.run("sessions", "rewind", "--to", "1", "--files", "--dry-run")
        done = await runner.run("sessions", "rewind", "--to", "1", "--files", "--json")

    outcome = json.loads(done.out)
    names = ("b.txt", "d/c.txt", "node_modules")
    assert [one["path"] for one in outcome["files"]] == [".gitignore"]
    assert outcome["skipped"] == [{"path": path, "why": "is new, and ignored now"} for path in names]
    assert (shown.code, done.code) == (0, 1)
    assert "Not covered: 4 ignored files or folders." in shown.out  # .ollm is one
    assert read_files(runner.workspace) == {"b.txt": "x\n", "d/c.txt": "x\n"}


async def test_a_session_goes_back_where_an_earlier_one_changed_files_too(tmp_path: Path) -> None:
    calls = [Answer(calls=[("shell", {"command": f"echo {name} > {name}.txt"})]) for name in ("first", "second")]
    async with running(tmp_path, [calls[0], "Done.", calls[1], "Done."]) as runner:
        await runner.run("-p", "make the first", "--yes")
        await runner.run("-p", "make the second", "--yes")
        done = await runner.run("sessions", "rewind", "--to", "1", "--files")
        names = sorted(path.name for path in runner.workspace.glob("*.txt"))
    assert done.code == 0, done.err
    assert names == ["first.txt"]


async def test_a_deleted_session_takes_its_saved_files_along(tmp_path: Path) -> None:
    async with running(tmp_path, [call("rm secret.txt"), "Done."]) as runner:
        (runner.workspace / "secret.txt").write_text("hunter2-is-the-password")
        await runner.run("-p", "remove it", "--yes")
        saved = [path for path in (runner.home / "checkpoints").rglob("*") if path.is_file()]
        held = [path for path in saved if b"hunter2" in path.read_bytes()]
        modes = {path.stat().st_mode & 0o777 for path in (runner.home / "checkpoints").rglob("*")}
        told = await runner.run("doctor")
        await runner.run("sessions", "delete", find_session(runner), "--yes")

    assert len(held) == 1
    assert modes == {0o600, 0o700}
    assert "checkpoints" in told.out
    left = [path for path in (runner.home / "checkpoints").rglob("*") if path.is_file()]
    assert [path for path in left if b"hunter2" in path.read_bytes()] == []


@pytest.mark.parametrize("where", ["settings", "home"])
async def test_where_none_are_taken_nothing_is_saved_and_it_is_said(tmp_path: Path, where: str) -> None:
    async with running(tmp_path, [call("touch a"), "Done."]) as runner:
        runner.home.mkdir()
        variables: dict[str, Any] = {"HOME": str(runner.workspace)} if where == "home" else {}
        if where == "settings":
            (runner.home / "config.yaml").write_text("checkpoints: {enabled: false}\n")
        done = await runner.run("-p", "make it", "--yes", **variables)
        back = await runner.run("sessions", "rewind", "--to", "1", "--files", **variables)

    assert done.code == 0
    assert ("home directory" in done.err) == (where == "home")
    assert back.code != 0
    assert "Checkpoints are off" in back.err
    assert not list((runner.home / "checkpoints").glob("*/objects"))


async def test_a_turn_that_only_reads_saves_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {}), ("shell", {"command": "cat a.txt"})]), "Seen."]) as runner:
        (runner.workspace / "a.txt").write_text("x")
        await runner.run("-p", "look")

    assert not (runner.home / "checkpoints").exists()


@pytest.mark.parametrize("moment", range(size(1, 15)))
async def test_a_rewind_that_is_killed_is_completed_by_the_next_command(tmp_path: Path, moment: int) -> None:
    change = "for f in m*.txt; do echo new >> $f; done; rm k*.txt"
    async with running(tmp_path, [call(change), "Done."]) as runner:
        for number in range(150):
            (runner.workspace / f"m{number}.txt").write_text("old")
            (runner.workspace / f"k{number}.txt").write_text("kept")
        before = read_files(runner.workspace)
        await runner.run("-p", "change them", "--yes")
        process = await runner.start("sessions", "rewind", "--to", "1", "--files")
        async with asyncio.timeout(60):
            while process.returncode is None and not list((runner.home / "checkpoints").glob("*/restore.journal")):
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.02 * moment)
        if process.returncode is None:
            process.kill()
        await process.wait()
        left = list_all(runner)
        dry = await runner.run("sessions", "rewind", "--to", "1", "--files", "--dry-run")
        assert list_all(runner) == left
        told = await runner.run("sessions", "rewind", "--to", "1", "--files")

    assert read_files(runner.workspace) == before
    assert dry.code == told.code == 0
    assert ("it is complete now" in told.out) or process.returncode == 0


async def test_what_was_changed_by_hand_after_a_turn_was_killed_stays(tmp_path: Path) -> None:
    change = "echo model > a.txt; echo model > b.txt; while [ -e wait ]; do sleep 0.05; done"
    async with running(tmp_path, [call(change)]) as runner:
        for name in ("a.txt", "b.txt", "c.txt", "wait"):
            (runner.workspace / name).write_text("old\n")
        process = await runner.start("-p", "change it", "--yes")
        async with asyncio.timeout(60):
            while (runner.workspace / "b.txt").read_text() != "model\n":
                await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
        for name in ("b.txt", "c.txt", "mine.txt"):
            (runner.workspace / name).write_text("by hand\n")
        (runner.workspace / "wait").unlink()
        done = await runner.run("sessions", "rewind", "--to", "1", "--files", "--json")
        kept = read_files(runner.workspace)
        forced = await runner.run("sessions", "rewind", "--to", "1", "--files", "--force", "--json")

    outcome = json.loads(done.out)
    assert (done.code, outcome["files"]) == (1, [])
    assert sorted(one["path"] for one in outcome["skipped"]) == ["a.txt", "b.txt", "c.txt", "mine.txt", "wait"]
    assert kept == {"a.txt": "model\n", **dict.fromkeys(("b.txt", "c.txt", "mine.txt"), "by hand\n")}
    assert forced.code == 0
    assert read_files(runner.workspace) == dict.fromkeys(("a.txt", "b.txt", "c.txt", "wait"), "old\n")


async def test_names_that_are_no_text_are_shown_and_come_back(tmp_path: Path) -> None:
    async with running(tmp_path, [call('for f in ./*; do echo more >> "$f"; done'), "Done."]) as runner:
        odd = runner.workspace / os.fsdecode(b"\xff.txt")
        for path in (odd, runner.workspace / "two\nlines"):
            path.write_text("old\n")
        await runner.run("-p", "change it", "--yes")
        shown = await runner.run("sessions", "rewind", "--to", "1", "--files", "--dry-run")
        done = await runner.run("sessions", "rewind", "--to", "1", "--files", "--json")

    assert "- `M` \\xff.txt\n" in shown.out
    assert "- `M` two\\x0alines\n" in shown.out
    assert {one["path"] for one in json.loads(done.out)["files"]} == {"\\xff.txt", "two\\x0alines"}
    assert odd.read_text() == "old\n"


async def test_going_back_twice_to_one_message_is_taken_back_once(tmp_path: Path) -> None:
    async with running(tmp_path, [call("echo model > a.txt"), "Done."]) as runner:
        (runner.workspace / "a.txt").write_text("mine\n")
        await runner.run("-p", "change it", "--yes")
        await runner.run("sessions", "rewind", "--to", "1", "--files")
        again = await runner.run("sessions", "rewind", "--to", "1", "--files")
        back = await runner.run("sessions", "redo")
        more = await runner.run("sessions", "redo")

    assert (again.code, again.out) == (0, "Message 1 is out of the context already.\n\nNo files were changed.\n")
    assert (back.code, more.code) == (0, 2)
    assert read_files(runner.workspace) == {"a.txt": "model\n"}

"""How the command ends: exit codes, signals, work that could not be saved, and the files a turn goes through."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ollm.cli import entry as edge
from ollm.cli.commands import command
from ollm.domain.errors import DeniedError, OllmError, UsageError
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside
from tests.cli.running import running, texts
from tests.cli.terminal import ENTER, at_terminal
from tests.covers import covers
from tests.ordinary_user import bound_by_permissions
from tests.servers.answers import Answer


def ended_by(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "main", fail)
    return edge.main(list(arguments))


@covers("S10.6")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OllmError("it broke"), 1),
        (UsageError("it broke"), 2),
        (DeniedError("it broke"), 5),
        (KeyboardInterrupt(), 130),
        (click.UsageError("it broke"), 2),
        (BrokenPipeError(), 1),
        (ZeroDivisionError("it broke"), 1),
    ],
)
def test_every_error_ends_in_its_exit_code_without_a_traceback(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(monkeypatch, error) == code
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert ("it broke" in shown.err) == bool(str(error))


def test_debug_shows_the_whole_of_an_unforeseen_error_redacted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "a1B2" * 9

    ended_by(monkeypatch, ZeroDivisionError(f"inside {token}"), "sessions", "--debug")

    shown = capfd.readouterr().err
    assert "Traceback" in shown
    assert "inside" in shown
    assert token not in shown


def test_a_reader_that_goes_away_is_no_error() -> None:
    writer = subprocess.Popen([SCRIPT, "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.close()
    _, errors = writer.communicate(timeout=60)

    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors


@covers("S10.6", "D645")
def test_an_error_is_one_line_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended_by(monkeypatch, OllmError("the file a.json is broken.", action="Run `ollm sessions check`."))

    assert capfd.readouterr().err == "ollm: the file a.json is broken.\n  Run `ollm sessions check`.\n"


def test_a_file_the_system_refuses_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    error = OSError(errno.EACCES, "Permission denied", "/some/file")

    assert ended_by(monkeypatch, error) == 1
    assert capfd.readouterr().err == (
        "ollm: /some/file cannot be used: Permission denied.\n  Check its permissions and the room on the disk.\n"
    )


def test_a_home_that_cannot_be_written_is_said_with_another_way(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no directory")

    done = ollm("config", "set", "provider.model", "x", home=tmp_path / "home")

    assert done.returncode == 1
    assert done.stderr.endswith(" Or set OLLM_HOME to another directory.\n"), done.stderr


@pytest.mark.parametrize("name", ["", "missing"])
def test_commands_run_with_a_home_that_is_read_only_or_cannot_be_made(tmp_path: Path, name: str) -> None:
    home = tmp_path / "locked" / name
    (tmp_path / "locked").mkdir(mode=0o555)
    (tmp_path / "work").mkdir()
    line = [SCRIPT, "tools", "run", "shell", "--args", '{"command": "echo alive"}', "--yes"]
    place = {"cwd": tmp_path / "work", "env": {**os.environ, "OLLM_HOME": str(home)}}

    done = subprocess.run(line, **place, preexec_fn=bound_by_permissions, capture_output=True, text=True, check=False)

    assert "alive" in done.stdout, done.stderr
    assert list((tmp_path / "locked").iterdir()) == []


def test_a_full_disk_behind_the_output_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = os.dup(1)
    try:
        assert ended_by(monkeypatch, OSError(errno.ENOSPC, "No space left on device")) == 1
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr().err == (
        "ollm: Cannot write the output: No space left on device.\n  Check the file or disk it is written to.\n"
    )


def test_everyday_lines_do_without_click(inside: Inside) -> None:
    assert inside.run("sessions", "list", "--json").out == "[]\n"
    assert "--limit" in inside.fail("sessions", "list", "--limit", "0", code=2)
    assert "The prompt is empty." in inside.fail("-p", "-", code=2)


def test_an_error_is_kept_in_the_log(inside: Inside) -> None:
    inside.configure("{}\n")
    inside.fail("sessions", "rename", "zzzzzzzz", "x", code=2)

    assert "'zzzzzzzz' is not a session id." in (inside.home / "logs" / "ollm.log").read_text()


def test_an_error_drives_no_terminal(inside: Inside) -> None:
    said = inside.fail("sessions", "rename", "\x1b[31mzz\u202e", "x", code=2)

    assert "\\x1b[31m" in said
    assert not {"\x1b", "\u202e"} & set(said)


SLOW = Answer(text=" ".join(f"word{number}" for number in range(60)), pace=0.1)


@covers("S10.1")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
async def test_a_signal_ends_a_turn_with_its_own_code_and_what_was_said_is_kept(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with running(tmp_path, [SLOW]) as runner:
        process = await runner.start("-p", "count", "-o", "stream-json")
        assert process.stdout
        while b"word2" not in await process.stdout.readline():
            pass
        process.send_signal(number)
        rest, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == code
        await asyncio.wait_for(runner.server.left.wait(), 5)
        (session,) = runner.sessions()
    assert texts(session)[0] == ("user", "count")
    assert texts(session)[1][1].startswith("word0 word1")
    assert session["messages"][-1]["interrupted"] is True
    assert session["metadata"]["title"] == "count"
    last = json.loads(rest.splitlines()[-1])
    assert (last["type"], last["exitCode"], last["error"]["type"]) == ("error", code, "interrupted")


async def test_a_turn_in_a_workspace_that_is_taken_over_ends_with_a_sentence(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", SLOW, "Mine now."]) as runner:
        assert (await runner.run("--new", "-p", "hello")).code == 0
        process = await runner.start("-c", "-p", "count")
        assert process.stdout
        await process.stdout.readexactly(10)
        taken = await runner.run("-c", "--force", "-p", "next")
        _, said = await asyncio.wait_for(process.communicate(), 60)
        (session,) = runner.sessions()
    assert (taken.code, process.returncode) == (0, 138)
    assert "Another process took over this workspace. Your session is saved and can be resumed." in said.decode()
    assert [role for role, _ in texts(session)] == ["user", "assistant"] * 3


@covers("S10.1")
@pytest.mark.parametrize("plain", [False, True], ids=["screen", "plain"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_ends_a_chat_in_mid_turn_with_its_own_code_and_what_was_said_is_kept(
    tmp_path: Path, number: signal.Signals, code: int, plain: bool
) -> None:
    async with running(tmp_path, [SLOW]) as runner:
        async with at_terminal(runner, "chat", **({"TERM": "dumb"} if plain else {})) as terminal:
            await terminal.wait_for("Ctrl-D to quit" if plain else "scripted @")
            terminal.type("count" + ("\n" if plain else ENTER))
            await terminal.wait_for("word3")
            terminal.kill(number)
            assert await terminal.ended() == code
        (session,) = runner.sessions()
    assert texts(session)[0] == ("user", "count")
    assert texts(session)[1][1].startswith("word0 word1")
    assert not list((runner.home / "sessions").glob("*.journal"))


async def test_what_a_chat_could_not_save_is_said_last_with_a_copy_and_exit_1(tmp_path: Path) -> None:
    async with running(tmp_path, ["Answer one."]) as runner:
        (tmp_path / "home").mkdir()
        sessions = tmp_path / "home" / "sessions"
        sessions.write_text("a file where the directory should be")
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("first" + ENTER)
            await terminal.wait_for("Answer one.", "cannot be written")
            terminal.type("/exit" + ENTER)
            await terminal.ended()
            shown = " ".join(terminal.text().split())
            assert terminal.child.exitstatus == 1
    assert "Not saved: 2 messages" in shown
    assert "Resume with" not in shown, "there is no such session"
    place = shown.replace(" ", "").partition("sessionisin")[2].partition(".json;")[0] + ".json"
    assert texts(json.loads(Path(place).read_text())) == [("user", "first"), ("assistant", "Answer one.")]


async def test_what_another_program_did_to_the_files_is_said_when_a_chat_ends(tmp_path: Path) -> None:
    async with running(tmp_path, ["Answer one."]) as runner, at_terminal(runner, "chat") as terminal:
        await terminal.wait_for("scripted @")
        terminal.type("first" + ENTER)
        await terminal.wait_for("Answer one.", gone="Esc stops")
        document = await wait_for_fold(runner.home / "sessions")
        document.unlink()
        terminal.type("/exit" + ENTER)
        await terminal.ended()
        assert terminal.child.exitstatus == 0
        assert "Another program has removed" in terminal.text()
    assert texts(json.loads(document.read_text())) == [("user", "first"), ("assistant", "Answer one.")]


@covers("S10.1")
@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
async def test_a_journal_that_another_program_took_away_in_mid_turn_is_there_again_before_the_turn_ends(
    tmp_path: Path, replaced: bool
) -> None:
    async with running(tmp_path, [SLOW]) as runner:
        process = await runner.start("-p", "count")
        assert process.stdout
        await process.stdout.readexactly(10)
        (journal,) = (runner.home / "sessions").glob("*.journal")
        foreign = tmp_path / "foreign"
        foreign.write_text("another program's\n")
        foreign.replace(journal) if replaced else journal.unlink()
        async with asyncio.timeout(60):
            while not (journal.exists() and b"count" in journal.read_bytes()):
                await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
        seen = (await runner.run("sessions", "export", journal.stem, "--format", "json", "--output", "-")).out
    assert texts(json.loads(seen))[0] == ("user", "count")
    assert "word0 word1" in seen
    kept = [path.read_text() for path in runner.home.rglob("*.journal.replaced-*")]
    assert kept == (["another program's\n"] if replaced else [])


async def wait_for_fold(sessions: Path) -> Path:
    """The document, once the answer stands in it and the journal was begun again."""
    async with asyncio.timeout(60):
        while True:
            for path in sessions.glob("*.json"):
                journal = path.with_suffix(".journal")
                if b"Answer one." in path.read_bytes() and journal.exists() and not journal.stat().st_size:
                    return path
            await asyncio.sleep(0.02)


def enlarge(path: Path) -> None:
    """Make a session large by the output of a call, as the command itself would have written it."""
    call = {"id": "c1", "name": "ls", "args": {}, "result": {"llmContent": "long " * 2_000_000}}
    line = json.dumps({**call, "timestamp": "2026-01-27T10:00:00.000Z", "status": "ok", "messageId": 1})
    path.write_bytes(
        path.read_bytes().replace(b"]}\n", line.replace(": ", ":").replace(", ", ",").encode() + b"\n]}\n")
    )


async def test_closing_a_large_session_does_not_write_all_of_it_again(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", SLOW, "Four."]) as runner:
        await runner.run("-p", "first")
        session = runner.sessions()[0]["sessionId"]
        path = runner.home / "sessions" / f"{session}.json"
        enlarge(path)
        before = path.stat()
        done = await runner.run("-p", "second", "--session", session)
        assert (done.code, done.out) == (0, "Two.\n"), done.err
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        killed = await runner.start("-p", "third", "--session", session)
        assert killed.stdout
        await killed.stdout.readexactly(10)
        killed.kill()
        await killed.wait()
        again = await runner.run("-p", "fourth", "--session", session)
        assert (again.code, again.out) == (0, "Four.\n"), again.err
        assert path.stat().st_ino == before.st_ino
        shown = await runner.run("sessions", "view", session, "--json")
    said = [text for _, text in texts(json.loads(shown.out))]
    assert said[:5] == ["first", "One.", "second", "Two.", "third"]
    assert said[-2:] == ["fourth", "Four."]


async def test_an_answer_that_nobody_can_be_given_is_kept_and_the_exit_code_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, ["One."]) as runner:
        closed = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            '"$@" >&-',
            "sh",
            SCRIPT,
            "-p",
            "first",
            cwd=runner.workspace,
            env=runner.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await asyncio.wait_for(closed.communicate(), 60)
        (session,) = runner.sessions()
    assert closed.returncode == 1
    assert b"Cannot write the output" in said
    assert texts(session) == [("user", "first"), ("assistant", "One.")]


async def test_a_signal_while_a_session_is_closed_counts_however_often_it_comes(tmp_path: Path) -> None:
    async with running(tmp_path, ["One."]) as runner:
        runner.home.mkdir()
        hook = {"command": "touch closing; until [ -e go-on ]; do sleep 0.05; done"}
        (runner.home / "config.yaml").write_text(json.dumps({"hooks": {"session-end": [hook]}}))
        process = await runner.start("-p", "first")
        async with asyncio.timeout(60):
            while not (runner.workspace / "closing").exists():
                await asyncio.sleep(0.02)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
            await asyncio.sleep(0.02)
        (runner.workspace / "go-on").touch()
        out, said = await asyncio.wait_for(process.communicate(), 60)
        (session,) = runner.sessions()
    assert (process.returncode, out) == (143, b"One.\n"), said
    assert texts(session) == [("user", "first"), ("assistant", "One.")]
    assert not list((runner.home / "sessions").glob("*.journal"))


FULL_DISK = """
set -e
mount -t tmpfs -o size=300k tmpfs "$1"
cp -r "$2/." "$1"
head -c 400000 /dev/zero > "$1/fill" 2>/dev/null || true
cd "$1/project"
set +e
OLLM_HOME="$1/home" "$3" -p second --continue < /dev/null
echo "exit $?"
"""


async def test_a_session_goes_on_while_the_disk_is_full_and_what_is_not_saved_is_said(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    (tmp_path / "whole").mkdir()
    async with running(tmp_path / "whole", ["One.", "Two."]) as runner:
        await runner.run("-p", "first")
        (session,) = runner.sessions()
        for file in runner.home.glob("sessions/*.json"):
            file.write_bytes(file.read_bytes().replace(str(runner.workspace).encode(), str(small / "project").encode()))
        process = await asyncio.create_subprocess_exec(
            *("unshare", "-rm", "sh", "-c", FULL_DISK, "sh", str(small), str(tmp_path / "whole"), SCRIPT),
            env=runner.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, said = await asyncio.wait_for(process.communicate(), 90)
    assert out.decode().split("\n") == ["Two.", "exit 1", ""], said
    assert b"Not saved: 2 messages" in said
    assert b"memory.db is on a full disk" in said
    assert session["sessionId"].encode() in said


MAX_FILES, MAX_TEXT_TO_WIRE, MAX_CALL_TO_DISK, MAX_CALLS = 163, 30, 45, 7_000

TRACER = """
import inspect, json, os, sys, threading

sys.argv = ["ollm", *sys.argv[2:]]
stretches = {"all": set(), "text to wire": set(), "call to disk": set()}
open_stretches, ended, calls = {"all"}, set(), 0


def begin(name):
    if name not in ended:
        open_stretches.add(name)


def end(name):
    if name in open_stretches:
        open_stretches.discard(name)
        ended.add(name)


def follow(frame, event, called):
    global calls
    code = frame.f_code
    if event == "c_call" and code.co_name == "write" and getattr(called, "__name__", "") == "send":
        end("text to wire")
    if event != "call" or "/ollm/" not in code.co_filename:
        return
    calls += 1
    place = code.co_filename.rpartition("/ollm/")[2]
    if place == "runtime/conversation.py" and code.co_name == "turn":
        begin("text to wire")
    if place.startswith("runtime/calls/") and code.co_name == "run":
        begin("call to disk")
    for name in open_stretches:
        if name == "all" or code.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a module or class
            stretches[name].add(place)


def hear(event, arguments):
    if event in ("os.rename", "os.link") and str(arguments[1]).endswith("made.txt"):
        end("call to disk")


sys.addaudithook(hear)
threading.setprofile(follow)
sys.setprofile(follow)
try:
    from ollm.cli.main import run

    run()
finally:
    sys.setprofile(None)
    with open(os.environ["TRACE"], "w") as file:
        found = {name: sorted(places) for name, places in stretches.items()}
        json.dump(found | {"ended": sorted(ended), "calls": calls}, file)
"""


async def test_a_turn_with_one_written_file_goes_through_few_files(tmp_path: Path) -> None:
    traced = tmp_path / "trace.json"
    call = Answer(calls=[("write_file", {"path": "made.txt", "content": "x\n"})])
    async with running(tmp_path, [call, "Made.", call, "Made."]) as runner:
        for _ in range(2):  # the first turn of a home also works out what later ones read
            (runner.workspace / "made.txt").unlink(missing_ok=True)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", TRACER, "ollm", "-p", "make it", "--yes"),
                cwd=runner.workspace,
                env={**runner.environment(), "TRACE": str(traced)},
                stdin=asyncio.subprocess.DEVNULL,
            )
            assert await process.wait() == 0
    assert (runner.workspace / "made.txt").read_text() == "x\n"
    found = json.loads(traced.read_text())

    assert found["ended"] == ["call to disk", "text to wire"]
    assert 1_000 < found["calls"] <= MAX_CALLS
    assert [place for place in found["all"] if place.startswith("system/sandbox/")] == []
    assert len(found["all"]) <= MAX_FILES, found["all"]
    assert 5 < len(found["text to wire"]) <= MAX_TEXT_TO_WIRE, found["text to wire"]
    assert 5 < len(found["call to disk"]) <= MAX_CALL_TO_DISK, found["call to disk"]

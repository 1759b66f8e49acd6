"""A pasted password is removed from everything that ollm keeps, also if the removal is killed at any point."""

import asyncio
import io
import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from ollm.store.saved_slots import SavedSlot
from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.servers.answers import Answer, Request
from tests.servers.archive_machine import MakeMachine

SECRET = 'hunter"2 Canär\\y'
KILLS = 20
KILLED_AT = """
import os, signal, sys
from ollm.cli.entry import main
left, changes = int(sys.argv.pop(1)), 0
def count(event, given):
    global changes
    writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
    if writes or event in ("os.rename", "os.remove", "sqlite3.connect", "sqlite3.connect/handle"):
        changes += 1
        if changes == left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
try:
    main(sys.argv[1:])
finally:
    print(changes, file=sys.stderr)
"""

SPLIT = """
import asyncio, os, sys, time
from pathlib import Path
from ollm.app.process import ProcessScope
from ollm.domain.messages import Message, TextPart
async def record(text, place):
    service = ProcessScope(workspace=Path(place)).create_recording_service(lambda event: None, len)
    session = await service.create_session("m", "openai", workspace=place)
    await service.record_message(session, Message(role="user", parts=(TextPart(text="say it"),), timestamp="2026-01-01T00:00:00.000Z"))
    await service.record_text(session, TextPart, text[:6])
    time.sleep(1.2)
    await service.record_text(session, TextPart, text[6:])
    os._exit(1)
asyncio.run(record(*sys.argv[1:]))
"""


def answer(request: Request) -> Answer:
    """Make the call that the message names, or answer with the secret."""
    last = request.body["messages"][-1]
    if last["role"] == "user" and isinstance(last["content"], str) and last["content"].startswith("{"):
        return Answer(calls=[tuple(json.loads(last["content"])["call"])])
    return Answer(text=f"I read {SECRET}.")


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"call": [name, arguments]})


def forms() -> list[bytes]:
    whole, escaped = json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]
    return [form.encode() for form in (SECRET, whole, escaped, json.dumps(whole)[1:-1], json.dumps(escaped)[1:-1])]


def find_secret(runner: Runner) -> list[str]:
    folders = (runner.home, runner.workspace / ".ollm")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(form in path.read_bytes() for form in forms())]


async def put_in(runner: Runner) -> None:
    """Put the secret in by fourteen ways."""
    notes = [
        call("memory", action="set", key=f"key {SECRET}", value=SECRET, scope=scope)
        for scope in ("workspace", "global")
    ]
    for text in (
        f"My password is {SECRET}",
        *notes,
        call("write_todos", action="add", text=f"change {SECRET}"),
        call("write_file", path="a.txt", content=f"{SECRET}\n"),
        call("edit_file", path="a.txt", edits=[{"target": SECRET, "replacement": "gone"}]),
        call("shell", command=f"cat <<'E'\n{SECRET}\nE"),
        call("goal", action="set", text=f"rotate {SECRET}"),
    ):
        done = await runner.run("-p", text, "--yes")
        assert done.code == 0, done.err
    newest = runner.sessions()[0]["sessionId"]
    await runner.run("sessions", "rename", newest, f"about {SECRET}")
    await runner.run("snapshots", "create", newest)
    await runner.run("sessions", "search", "password")
    await runner.run("sessions", "export", newest, "-o", "out.md")
    async with at_terminal(runner, "chat", "--new") as terminal:
        await terminal.wait_for("scripted @")
        terminal.type(f"again {SECRET}" + ENTER)
        await terminal.wait_for("I read hunter")
        terminal.type(CTRL_D)
        await terminal.ended()
    await run_python(runner, SPLIT, SECRET, str(runner.workspace))
    journals = [path.read_bytes() for path in (runner.home / "sessions").glob("*.journal") if path.stat().st_size]
    assert journals
    assert not any(form in journal for form in forms() for journal in journals), "it is split over two records"
    document = next((runner.home / "sessions").glob("*.json"))
    shutil.copy(document, document.with_name(f"{document.name}.damaged-1"))
    for name in ("trash", "logs"):
        (runner.home / name).mkdir(exist_ok=True)
    shutil.copy(document, runner.home / "trash" / document.name)
    (runner.home / "grants.yaml").write_text(f"grants:\n- {json.dumps('shell:echo ' + SECRET)}\n")
    with (runner.home / "logs" / "ollm.log").open("a") as log:
        log.write(json.dumps({"message": SECRET}) + "\n")
    put_slot(runner, newest)


def put_slot(runner: Runner, session_id: str) -> None:
    folder = runner.home.parent / "slots"
    folder.mkdir()
    saved = SavedSlot(session_id=session_id, key="k", folder=str(folder), size=1, sha256="", tokens=1, task=0, held=0)
    saved.path.write_bytes(b"x")
    (runner.home / "slots" / session_id).mkdir(parents=True)
    (runner.home / "slots" / session_id / "k.json").write_bytes(msgspec.json.encode(saved))


async def scrub(runner: Runner, *options: str) -> tuple[int, str]:
    done = await runner.run("sessions", "scrub", *options, stdin=SECRET + "\n")
    return done.code, done.out + done.err


async def run_python(runner: Runner, *arguments: str) -> str:
    program, pipe = (sys.executable, "-c", *arguments), asyncio.subprocess.PIPE
    environment = {"cwd": runner.workspace, "env": runner.environment()}
    process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=pipe, **environment)
    _, err = await process.communicate(SECRET.encode())
    return err.decode()


async def kill_at(runner: Runner, point: int) -> str:
    return await run_python(runner, KILLED_AT, str(point), "sessions", "scrub", "--yes")


@pytest.mark.slow
async def test_a_secret_is_gone_from_every_file_also_after_kills(tmp_path: Path) -> None:
    async with running(tmp_path, answer) as runner:
        await put_in(runner)
        held = find_secret(runner)
        dry = await scrub(runner, "--dry-run")
        assert find_secret(runner) == held
        for folder, copy in ((runner.home, "home-before"), (runner.workspace, "project-before")):
            shutil.copytree(folder, tmp_path / copy, symlinks=True)
        changes = int((await kill_at(runner, 10**9)).split()[-1])
        assert find_secret(runner) == []
        assert "[scrubbed]" in str(runner.sessions())
        for number in range(KILLS):
            for folder, copy in ((runner.home, "home-before"), (runner.workspace, "project-before")):
                shutil.rmtree(folder)
                shutil.copytree(tmp_path / copy, folder, symlinks=True)
            await kill_at(runner, 1 + changes * (number + 1) // (KILLS + 1))
            done = await scrub(runner, "--yes")
            assert done[0] == 0, done
            assert find_secret(runner) == [], number
        again = await scrub(runner, "--yes")
        sessions = await runner.run("sessions", "check")
        resumed = await runner.run("-p", "hello", "-c")

    assert len(held) >= 12, held
    assert dry[0] == 0
    assert "out.md" in dry[1]
    assert "export" in dry[1]
    assert SECRET not in dry[1]
    assert not list((tmp_path / "slots").iterdir())
    assert SECRET in (runner.workspace / "out.md").read_text()
    assert again == (0, "Removed: 0 occurrences.\n") or "not changed: an export" in again[1]
    assert sessions.code == 0, sessions.out
    assert resumed.code == 0, resumed.err


async def test_a_scrub_asks_first_and_refuses_what_would_hit_too_much(tmp_path: Path) -> None:
    async with running(tmp_path, ["one"]) as runner:
        await runner.run("-p", "my password is tulip-73")
        before = find_raw(runner, b"tulip-73")
        unsaid = await runner.run("sessions", "scrub", stdin="tulip-73")
        short = await runner.run("sessions", "scrub", "--yes", stdin="one")
        word = await runner.run("sessions", "scrub", "--yes", stdin="assistant")
        (runner.home / "config.yaml").write_text("provider: {apiKey: tulip-73}\n")
        kept = await runner.run("sessions", "scrub", "--yes", "--json", stdin="tulip-73")

    assert before
    assert [unsaid.code, short.code, word.code, kept.code] == [2, 2, 2, 1]
    assert "file format" in word.err
    assert "assistant" in str(runner.sessions())
    files = {Path(one["path"]).name: one["outcome"] for one in json.loads(kept.out)["files"]}
    assert files["config.yaml"] == "kept"
    assert {Path(path).stem for path in find_raw(runner, b"tulip-73")} == {"config"}  # and the copy that is read faster


def find_raw(runner: Runner, data: bytes) -> list[str]:
    files = [path for path in (*runner.home.rglob("*"), *runner.workspace.rglob("*")) if path.is_file()]
    return [str(path) for path in files if data in path.read_bytes()]


async def test_an_open_chat_is_asked_to_close_and_free_pages_of_a_database_go(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two"]) as runner:
        await runner.run("-p", "first")
        with sqlite3.connect(runner.workspace / ".ollm" / "memory.db") as connection:
            connection.execute("PRAGMA secure_delete = OFF")
            connection.execute("INSERT INTO memory VALUES ('k', ?, 0)", ("tulip-73" * 4000,))
            connection.commit()
            connection.execute("DELETE FROM memory WHERE key = 'k'")
        assert find_raw(runner, b"tulip-73")
        async with at_terminal(runner, "chat", "--new") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("tulip-73" + ENTER)
            await terminal.wait_for("two")
            done = await runner.run("sessions", "scrub", "--yes", stdin="tulip-73")
            await terminal.ended()

    assert done.code == 0, done.err
    assert find_raw(runner, b"tulip-73") == []


async def test_a_key_of_several_lines_is_also_removed_from_diffs_and_numbered_lines(tmp_path: Path) -> None:
    lines = ["-----BEGIN KEY-----", "Ab1" * 21, "Cd2" * 9, "-----END KEY-----"]
    key = "\n".join(lines)
    async with running(tmp_path, answer) as runner:
        await runner.run("-p", call("write_file", path="id.pem", content=f"{key}\n"), "--yes")
        await runner.run("-p", call("read_file", path="id.pem", start_line=2), "--yes")
        before = [find_raw(runner, line.encode()) for line in lines[1:3]]
        done = await runner.run("sessions", "scrub", "--yes", stdin=f"{key}\n")
        left = [find_raw(runner, line.encode()) for line in lines[1:3]]

    assert done.code == 0, done.err
    assert [len(found) > 1 for found in before] == [True, True]
    assert left == [[str(runner.workspace / "id.pem")]] * 2


def read_archive(url: str) -> bytes:
    """Everything that the archive holds."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'ollm'").fetchall()
        rows = [row for (name,) in tables for row in connection.execute(f'SELECT * FROM ollm."{name}"')]
    return b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row)


def test_a_secret_is_gone_from_the_team_archive_or_the_session_that_holds_it_is_named(
    machine: MakeMachine, archive_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop = machine("laptop", redact=False), machine("desktop", redact=False)
    laptop.record(f"my password is {SECRET}", f"I read {SECRET}")
    laptop.run("push")
    elsewhere = desktop.record(f"also {SECRET} there")
    desktop.run("push")
    held = read_archive(archive_url)

    def scrub_laptop(code: int) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SECRET.encode())))
        laptop.ollm("sessions", "scrub", "--yes", code=code)
        return laptop.warned

    named = scrub_laptop(1)
    laptop.run("pull", elsewhere)
    scrub_laptop(0)

    assert sum(form in held for form in forms()) > 1
    assert f"session {elsewhere} of" in named
    assert not any(form in read_archive(archive_url) for form in forms())

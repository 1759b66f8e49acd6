"""Every kind of damage a session's files can have, met by the command and the daemon: no byte that we did not write
disappears, whatever is done with it short of deleting it."""

import asyncio
import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.running import Runner, running, texts
from tests.covers import covers
from tests.daemon.running import Daemon, daemon
from tests.damage_kinds import EVERY, JOURNALS, READABLE, UNREADABLE, WHOLE
from tests.servers.answers import Answer
from tests.sizes import SOAK

SAID = ["The first question", "The first answer", "The second question", "The second answer, with an ü"]
LOOK = Answer(calls=[("ls", {"path": "."})])
BY_COMMAND = list(EVERY) if SOAK else ["random", "byte-order-mark", "part-types-odd", "messages-named-before"]
BY_DAEMON = list(EVERY) if SOAK else [*list(UNREADABLE)[::3], "conflict", *list(READABLE)[::3], *list(WHOLE)[::3]]


async def record(runner: Runner) -> bytes:
    """The document of a sound session, as the command wrote it."""
    await runner.run("-p", SAID[0])
    (session,) = runner.sessions()
    await runner.run("-p", SAID[2], "--session", session["sessionId"])
    path = runner.home / "sessions" / f"{session['sessionId']}.json"
    content = path.read_bytes()
    path.unlink()
    return content


def place(home: Path, sound: bytes, kind: str) -> tuple[str, bytes]:
    """A session of its own with this damage; its id and the bytes on disk."""
    session_id = str(uuid4())
    damaged = EVERY[kind](sound.replace(json.loads(sound)["sessionId"].encode(), session_id.encode()))
    (home / "sessions").mkdir(parents=True, exist_ok=True)
    (home / "sessions" / f"{session_id}.json").write_bytes(damaged)
    return session_id, damaged


def is_kept(home: Path, damaged: bytes) -> bool:
    return any(path.read_bytes() == damaged for path in (home / "sessions").iterdir() if path.suffix != ".lock")


def files_of(home: Path, session_id: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "sessions").glob(f"*{session_id}*")}


@covers("S10.2", "D606", "D607")
@pytest.mark.parametrize("kind", BY_COMMAND)
async def test_resuming_by_the_command_loses_no_byte_with_a_server_or_without(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, [LOOK, *SAID[1::2], "Going on."]) as runner:
        sound = await record(runner)
        session, damaged = place(runner.home, sound, kind)
        viewed = await runner.run("sessions", "view", session)
        before = files_of(runner.home, session)
        done = await runner.run("-p", "go on", "--session", session)
        assert is_kept(runner.home, damaged)
        assert before == {f"{session}.json": damaged}, "looking at it changes nothing"
        assert "Traceback" not in viewed.err + done.err
        assert "wrong inside" not in viewed.err + done.err
        if kind in UNREADABLE:
            assert done.code == 1
            assert "left as it is" in done.err
            assert files_of(runner.home, session) == before
        else:
            assert done.code == 0, done.err
            after = json.loads((runner.home / "sessions" / f"{session}.json").read_bytes())
            assert [text for _, text in texts(after)][-2:] == ["go on", "Going on."]
            if kind in WHOLE:
                assert {text for _, text in texts(after)} >= {said for said in SAID if kind != "no-user"}
    other, damaged = place(runner.home, sound, kind)
    nobody = await runner.run("-p", "go on", "--session", other)
    assert nobody.code == (1 if kind in UNREADABLE else 3)
    assert is_kept(runner.home, damaged)
    gone = await runner.run("sessions", "delete", other, "--yes")
    assert gone.code == 0, gone.err
    assert not files_of(runner.home, other), "what a person asks to delete is gone"


async def record_for_daemon(tmp_path: Path) -> bytes:
    (tmp_path / "recording").mkdir()
    async with running(tmp_path / "recording", [LOOK, *SAID[1::2]]) as runner:
        content = await record(runner)
    return content.replace(str(runner.workspace).encode(), str(tmp_path / "project").encode())


async def resume_in_daemon(found: Daemon, sound: bytes, kind: str) -> str:
    """View, open, talk or not, close; the first thing that is wrong, or nothing."""
    session, damaged = place(found.home, sound, kind)
    shown = await found.ask("GET", f"/sessions/{session}")
    export = await found.ask("GET", f"/sessions/{session}/export?format=markdown")
    history = await found.ask("GET", f"/sessions/{session}/history")
    if {shown.status, export.status, history.status} != {200}:
        return f"viewed with {shown.status}, {export.status}, {history.status}"
    if files_of(found.home, session) != {f"{session}.json": damaged}:
        return "viewing changed a file"
    opened = await found.ask("POST", "/sessions", {"workspacePath": str(found.workspace), "sessionId": session})
    if kind in UNREADABLE:
        wrong = opened.status != 422 or files_of(found.home, session) != {f"{session}.json": damaged}
        return f"opened with {opened.status}: {opened.body!r}" if wrong else ""
    if opened.status != 201:
        return f"opened with {opened.status}: {opened.body!r}"
    said = await found.say(session, "go on")
    closed = await found.ask("DELETE", f"/sessions/{session}")
    if said[-1]["reason"] != "answered" or closed.status != 204:
        return f"{said[-1]} {closed.status}"
    words = [text for _, text in texts((await found.ask("GET", f"/sessions/{session}")).json)]
    if words[-2:] != ["go on", "Going on."]:
        return f"said and gone: {words}"
    return "" if is_kept(found.home, damaged) else "bytes are gone"


@covers("S10.2", "D607")
async def test_the_daemon_views_resumes_and_closes_every_kind_of_damage_and_loses_no_byte(tmp_path: Path) -> None:
    sound = await record_for_daemon(tmp_path)
    async with daemon(tmp_path, ["Going on."] * len(EVERY)) as found:
        wrong = {kind: await resume_in_daemon(found, sound, kind) for kind in BY_DAEMON}
    assert {kind: text for kind, text in wrong.items() if text} == {}


@covers("S10.2", "D607")
async def test_a_journal_of_odd_records_stops_neither_its_session_nor_any_other(tmp_path: Path) -> None:
    sound = await record_for_daemon(tmp_path)
    wrong: dict[str, object] = {}
    async with daemon(tmp_path, ["Going on."] * len(JOURNALS)) as found:
        for kind, journal in JOURNALS.items():
            session, _ = place(found.home, sound, "unknown-fields")
            (found.home / "sessions" / f"{session}.journal").write_bytes(journal)
            listed = await found.ask("GET", "/sessions")
            search = await found.ask("GET", "/search?q=question")
            shown = await found.ask("GET", f"/sessions/{session}")
            opened = await found.ask("POST", "/sessions", {"workspacePath": str(found.workspace), "sessionId": session})
            said = await found.say(session, "go on") if opened.status == 201 else []
            closed = await found.ask("DELETE", f"/sessions/{session}")
            replies = [reply.status for reply in (listed, search, shown, opened, closed)]
            words = [text for _, text in texts((await found.ask("GET", f"/sessions/{session}")).json)]
            if replies != [200, 200, 200, 201, 204] or words[:1] != SAID[:1] or words[-2:] != ["go on", "Going on."]:
                wrong[kind] = replies, words, opened.body, [event for event in said if event["type"] == "notice"]
            erased = await found.ask("DELETE", f"/sessions/{session}?erase=true")
            if erased.status != 204 or files_of(found.home, session):
                wrong[kind] = erased.body
    assert wrong == {}


async def test_damage_done_while_a_session_is_open_costs_nothing_that_is_said_after_it(tmp_path: Path) -> None:
    sound = await record_for_daemon(tmp_path)
    kinds = [*UNREADABLE, *READABLE] if SOAK else ["empty", "cut-in-the-middle", "twice"]
    async with daemon(tmp_path, ["Before.", "After."] * len(kinds)) as found:
        for kind in kinds:
            session = await found.open()
            await found.say(session, "before")
            path = found.home / "sessions" / f"{session}.json"
            damaged = EVERY[kind](sound)
            path.write_bytes(damaged)
            await found.say(session, "after")
            closed = await found.ask("DELETE", f"/sessions/{session}")
            assert closed.status == 204, (kind, closed.body)
            assert is_kept(found.home, damaged), kind
            history = (await found.ask("GET", f"/sessions/{session}/history")).json
            assert [m["parts"][0]["text"] for m in history][-2:] == ["after", "After."], kind


@pytest.mark.parametrize("removed", ["*.journal", "*.json", "*"])
async def test_files_removed_while_a_session_is_open_are_written_anew(tmp_path: Path, removed: str) -> None:
    async with daemon(tmp_path, ["One.", "Two.", "Three."]) as found:
        session = await found.open()
        await found.say(session, "first")
        for path in (found.home / "sessions").glob(removed):
            path.unlink()
        said = await found.say(session, "second")
        shutil.rmtree(found.home / "sessions")
        said += await found.say(session, "third")
        assert (await found.ask("DELETE", f"/sessions/{session}")).status == 204
        history = (await found.ask("GET", f"/sessions/{session}/history")).json
    assert [m["parts"][0]["text"] for m in history] == ["first", "One.", "second", "Two.", "third", "Three."]
    notices = [event["text"] for event in said if event["type"] == "notice"]
    assert any("rewritten" in text for text in notices), notices


async def test_a_journal_replaced_in_mid_turn_is_written_anew_and_told(tmp_path: Path) -> None:
    slow = Answer(text=" ".join(f"word{number}" for number in range(40)), pace=0.05)
    async with running(tmp_path, [slow]) as runner:
        process = await runner.start("-p", "count")
        while not (found := list((runner.home / "sessions").glob("*.journal"))):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        found[0].unlink()
        found[0].write_bytes(b"another program's\n")
        out, err = await process.communicate()
        (session,) = runner.sessions()
    assert process.returncode == 0
    assert texts(session) == [("user", "count"), ("assistant", out.decode().strip())]
    assert b"rewritten" in err
    assert is_kept(runner.home, b"another program's\n")

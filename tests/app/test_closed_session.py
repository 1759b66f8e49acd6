"""Sessions that are not open: context, snapshots, rewind and redo."""

from pathlib import Path

import pytest

from ollm.app import ClosedSession, ProcessScope
from ollm.app.closed_rewind import ClosedRewind
from ollm.domain.errors import BusyError
from ollm.domain.messages import Message, TextPart
from tests.app.places import AppPlace
from tests.app.test_interrupted_restore import kill_between
from tests.cli.running import running
from tests.runtime.talking import Talking
from tests.servers.answers import Answer


async def record(place: AppPlace, *texts: str, window: int | None = 8192, mode: str = "") -> str:
    recording = place.process().create_recording_service(lambda _: None)
    session = await recording.create_session("llama3", "ollama", workspace=str(place.workspace))
    changes: dict[str, object] = {"contextWindow": window} if window else {}
    if mode:
        changes["modeHistory"] = [{"from": "code", "to": mode, "trigger": "manual", "timestamp": "", "confidence": 1}]
    if changes:
        await recording.update_metadata(session, changes)
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        await recording.record_message(session, Message(role=role, parts=(TextPart(text),), timestamp=""))  # type: ignore[arg-type]
    await recording.close_session(session)
    return session


def closed(place: AppPlace) -> ClosedSession:
    return ClosedSession(place.process(), place.workspace)


async def test_a_new_session_begins_as_the_settings_say(place: AppPlace) -> None:
    place.configure(provider={"contextWindow": 16_384, "model": "m"}, modes={"default": "plan"})
    prompt = await closed(place).build_prompt(None)

    assert prompt.compute_budget().window == 16_384
    assert prompt.mode == "plan"
    assert prompt.get_active_context().messages == ()
    assert prompt.used_tokens > 100


async def test_a_snapshot_is_taken_and_restored(place: AppPlace) -> None:
    session = await record(place, "One", "1", "Two", "2")
    scope = closed(place)
    made = await scope.take_snapshot(session)
    assert made is not None
    assert made.session_id == session

    assert await closed(place).restore_snapshot(made.id) == session
    metadata = scope.process.session_files.read(session).session.metadata
    (step,) = metadata.context_history
    assert (step["step"], step["snapshotId"]) == ("restore", made.id)
    assert not metadata.mode_history


async def test_a_restore_goes_back_to_the_mode_of_the_snapshot(place: AppPlace) -> None:
    session = await record(place, "One", "1", "Two", "2")
    made = await closed(place).take_snapshot(session)
    assert made is not None
    recording = place.process().create_recording_service(lambda _: None)
    await recording.open_session(session)
    change = {"from": "code", "to": "debug", "trigger": "manual", "timestamp": "", "confidence": 1}
    await recording.update_metadata(session, {"modeHistory": [change]})
    with pytest.raises(BusyError):
        await closed(place).restore_snapshot(made.id)
    await recording.close_session(session)
    await closed(place).restore_snapshot(made.id)

    history = place.process().session_files.read(session).session.metadata.mode_history
    assert [entry["to"] for entry in history] == ["debug", "code"]


async def test_rewinds_of_the_talk_are_taken_back_one_after_the_other(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "first words")
        await runner.run("--continue", "-p", "second words")
        await runner.run("sessions", "rewind", "--to", "3")
        await runner.run("sessions", "rewind", "--to", "1")
        first = await runner.run("sessions", "redo")
        second = await runner.run("sessions", "redo")
        third = await runner.run("sessions", "redo")
        await runner.run("--continue", "-p", "third words")

    assert [done.out.strip() for done in (first, second)] == [
        f"Undid the rewind to before message {number}." for number in (1, 3)
    ]
    assert (third.code, "Nothing to redo." in third.err) == (2, True)
    said = str(runner.server.chats[-1])
    assert "first words" in said
    assert "second words" in said


CHANGE = Answer(calls=[("shell", {"command": "echo new > a.txt"})])


async def test_files_alone_go_back_and_an_open_session_is_refused(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change it")
        known = talk.conversation.session_id or ""
        closed = ClosedSession(ProcessScope(workspace=talk.workspace), talk.workspace)
        with pytest.raises(BusyError):
            await ClosedRewind(closed, known).run(1, files=True, force=False, dry_run=False)
    done = await ClosedRewind(closed, known).run(1, files=True, force=False, dry_run=False, talk=False)

    assert (done.what, [file["path"] for file in done.files]) == ("files", ["a.txt"])
    assert (talk.workspace / "a.txt").read_text() == "old\n"
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.run("/redo")
    assert (talk.workspace / "a.txt").read_text() == "new\n"


async def test_one_that_was_killed_and_is_asked_for_again_is_done_once(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, keep_old=True)
    closed = ClosedSession(ProcessScope(workspace=talk.workspace), talk.workspace)

    done = await ClosedRewind(closed, known).run(1, files=True, force=False, dry_run=False)

    assert "it is complete now" in done.text
    assert [file["path"] for file in done.files] == ["a.txt"]
    assert [step["step"] for step in talk.document["metadata"]["contextHistory"]] == ["rewind"]

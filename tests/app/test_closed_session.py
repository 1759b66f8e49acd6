"""Sessions without a conversation: closed ones, and restores that were interrupted."""

import asyncio
from pathlib import Path

import pytest

from ollm.app.closed_session import ClosedSession
from ollm.app.process import ProcessScope
from ollm.config.environment import Home
from ollm.domain.errors import BusyError
from ollm.domain.messages import Message, TextPart
from ollm.runtime.rewind import RewindRequest
from ollm.store.workspace_place import has_interrupted_restore
from tests.app.places import AppPlace
from tests.cli.running import running
from tests.runtime.talking import Talk, Talking
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
    prompt = closed(place).build_prompt(None)

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
            await closed.rewind(known, lambda flow: flow.rewind(RewindRequest(number=1, yes=True)))
    request = RewindRequest(number=1, scope="files", yes=True)
    done = await closed.rewind(known, lambda flow: flow.rewind(request))

    assert (done.what, [file["path"] for file in done.files]) == ("files", ["a.txt"])
    assert (talk.workspace / "a.txt").read_text() == "old\n"
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.run("/redo")
    assert (talk.workspace / "a.txt").read_text() == "new\n"


async def test_one_that_was_killed_and_is_asked_for_again_is_done_once(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, keep_old=True)
    closed = ClosedSession(ProcessScope(workspace=talk.workspace), talk.workspace)

    done = await closed.rewind(known, lambda flow: flow.rewind(RewindRequest(number=1, scope="both", yes=True)))

    assert "it is complete now. 1 file restored." in done.text
    assert "Message 1 is out of the context already." in done.text
    assert [step["step"] for step in talk.document["metadata"]["contextHistory"]] == ["rewind"]


async def kill_between(talk: Talk, keep_old: bool) -> str:
    """The state a killed `/rewind 1 both` leaves: its files back, or not all of them, and its talk not."""
    (talk.workspace / "a.txt").write_text("old\n")
    await talk.say("change it")
    checkpoints, session_id = talk.conversation.parts.checkpoints.get(), talk.conversation.session_id
    assert session_id
    plan = checkpoints.plan_rewind(session_id, 1)
    assert plan is not None
    await asyncio.to_thread(checkpoints.restore, session_id, 4, plan, "both")
    if not keep_old:
        (talk.workspace / "a.txt").write_text("new\n")
        forget_end(talk)
    return session_id


def forget_end(talk: Talk) -> None:
    """As if it had been killed before its files were done."""
    (place,) = (talk.home / "checkpoints").glob("*/sessions/*.jsonl")
    place.write_text("".join(place.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("files_done", [True, False])
async def test_the_next_conversation_completes_it(talking: Talking, files_done: bool) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, files_done)
    assert has_interrupted_restore(Home(talk.home))

    async with talking(["Again."], yes=True, session=known) as talk:
        status = await talk.conversation.status()
        await talk.say("and now?")
        assert "Rewound" not in str(status.notices)

    assert (talk.workspace / "a.txt").read_text() == "old\n"
    assert any("was interrupted; it is complete now" in notice for notice in status.notices)
    assert "change it" not in str(talk.server.chats[-1])
    assert not has_interrupted_restore(Home(talk.home))
    assert [step["step"] for step in talk.document["metadata"]["contextHistory"]] == ["rewind"]


async def test_one_redo_after_it_brings_back_files_and_talk_also_after_the_same_rewind_again(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, True)
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.run("/rewind 1 yes")
        await talk.run("/redo")
        await talk.say("and now?")

    assert (talk.workspace / "a.txt").read_text() == "new\n"
    assert "change it" in str(talk.server.chats[-1])


async def test_a_redo_that_was_killed_is_completed_with_its_talk(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change it")
        await talk.run("/rewind 1 yes")
        checkpoints, known = talk.conversation.parts.checkpoints.get(), talk.conversation.session_id
        assert known
        plan = checkpoints.plan_redo(known, checkpoints.list_records(known)[-1].number)
        await asyncio.to_thread(checkpoints.restore, known, 4, plan, "both", "redo")
        (talk.workspace / "a.txt").write_text("old\n")
        forget_end(talk)
    async with talking(["Again."], yes=True, session=known) as talk:
        status = await talk.conversation.status()
        await talk.say("and now?")

    assert any("A /redo was interrupted; it is complete now" in notice for notice in status.notices)
    assert (talk.workspace / "a.txt").read_text() == "new\n"
    assert "change it" in str(talk.server.chats[-1])


async def test_one_of_a_session_that_was_deleted_is_not_told_for_ever(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        await kill_between(talk, True)
    for file in (talk.home / "sessions").iterdir():
        file.unlink()

    async with talking(["Hello."], yes=True) as talk:
        await talk.say("hi")

    assert not has_interrupted_restore(Home(talk.home))


async def test_there_is_none_where_nothing_was_killed(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        assert not has_interrupted_restore(Home(talk.home))
        await talk.say("change it")
        await talk.run("/rewind 1 yes")

    assert not has_interrupted_restore(Home(talk.home))


@pytest.mark.parametrize("kind", ["rewind", "redo"])
async def test_what_was_changed_by_hand_meanwhile_is_not_lost_to_the_next_step(talking: Talking, kind: str) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, kind == "redo")
        if kind == "redo":
            checkpoints = talk.conversation.parts.checkpoints.get()
            checkpoints.finish_restore()
            plan = checkpoints.plan_redo(known, checkpoints.list_records(known)[-1].number)
            await asyncio.to_thread(checkpoints.restore, known, 4, plan, "both", "redo")
            (talk.workspace / "a.txt").write_text("old\n")
            forget_end(talk)
            assert plan.skipped == ()
    (talk.workspace / "mine.txt").write_text("by hand\n")
    async with talking(["Again."], yes=True, session=known) as talk:
        status = await talk.conversation.status()
        back = await talk.run("/redo" if kind == "rewind" else "/rewind 1 yes")

    assert "it is complete now" in str(status.notices)
    assert (talk.workspace / "mine.txt").read_text() == "by hand\n"
    assert (talk.workspace / "a.txt").read_text() == ("new\n" if kind == "rewind" else "old\n")
    assert [one["path"] for one in back.data["skipped"]] == ["mine.txt"]


async def test_the_shell_completes_a_killed_redo_and_says_so(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        await kill_between(talk, True)
        checkpoints, known = talk.conversation.parts.checkpoints.get(), talk.conversation.session_id or ""
        plan = checkpoints.plan_redo(known, checkpoints.list_records(known)[-1].number)
        await asyncio.to_thread(checkpoints.restore, known, 4, plan, "both", "redo")
        (talk.workspace / "a.txt").write_text("old\n")
        forget_end(talk)
    closed = ClosedSession(ProcessScope(workspace=talk.workspace), talk.workspace)
    done = await closed.rewind(known, lambda flow: flow.redo(force=False), kind="redo")

    assert "A /redo was interrupted; it is complete now. 1 file restored." in done.text
    assert [one["path"] for one in done.files] == ["a.txt"]
    assert (talk.workspace / "a.txt").read_text() == "new\n"


async def test_what_a_killed_redo_was_to_leave_alone_can_be_forced_later(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        (talk.workspace / "a.txt").write_text("old\n")
        await talk.say("change it")
        await talk.run("/rewind 1 yes")
        (talk.workspace / "a.txt").write_text("by hand\n")
        checkpoints, known = talk.conversation.parts.checkpoints.get(), talk.conversation.session_id or ""
        plan = checkpoints.plan_redo(known, checkpoints.list_records(known)[-1].number)
        await asyncio.to_thread(checkpoints.restore, known, 4, plan, "both", "redo")
        forget_end(talk)
    async with talking([], yes=True, session=known) as talk:
        assert (talk.workspace / "a.txt").read_text() == "by hand\n"
        await talk.run("/redo force")

    assert (talk.workspace / "a.txt").read_text() == "new\n"

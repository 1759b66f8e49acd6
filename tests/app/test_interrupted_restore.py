"""A rewind that was killed between its files and its talk is completed by the next conversation, which says so."""

import asyncio

import pytest

from ollm.app.interrupted_restore import has_interrupted_restore
from ollm.config.paths import Home
from tests.runtime.talking import Talk, Talking
from tests.servers.answers import Answer

CHANGE = Answer(calls=[("shell", {"command": "echo new > a.txt"})])


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
    return session_id


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


async def test_a_second_redo_after_it_brings_back_files_and_talk(talking: Talking) -> None:
    async with talking([CHANGE, "Done."], yes=True) as talk:
        known = await kill_between(talk, True)
    async with talking(["Again."], yes=True, session=known) as talk:
        await talk.run("/rewind 1 yes")
        await talk.run("/redo")
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

"""When states of the files are taken: before the calls of a step that may change some, and after them."""

import asyncio

import pytest

from ollm.domain.events import ConfirmationRequested, Notice, ToolFinished
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.observers import housekeeping
from ollm.store.file_objects import FileObjects
from tests.runtime.talking import Talk, Talking
from tests.servers.answers import Answer

WRITING_SECONDS = 1.0  # the model writes for so long: time for a person to change a file


def shell(command: str) -> Answer:
    return Answer(calls=[("shell", {"command": command})])


async def test_each_step_that_changes_files_has_a_record_and_others_none(talking: Talking) -> None:
    notes = Answer(calls=[("write_todos", {"action": "add", "text": "x"}), ("ls", {})])
    two = Answer(calls=[("shell", {"command": "echo 2 > b"}), ("shell", {"command": "echo 3 > c"})])
    async with talking([notes, shell("echo 1 > a"), two, "Done.", notes, "Noted."], yes=True) as talk:
        await talk.say("work")
        assert talk.conversation.session_id
        checkpoints = talk.conversation.parts.checkpoints.get()
        records = checkpoints.list_records(talk.conversation.session_id)
        await talk.say("only notes")
        later = checkpoints.list_records(talk.conversation.session_id)

    assert [(record.kind, record.message_id, bool(record.end)) for record in records] == [("turn", 1, True)] * 2
    assert [[change.path for change in checkpoints.list_changes(one)] for one in records] == [["a"], ["b", "c"]]
    assert later == records


async def test_what_a_person_changes_while_the_model_writes_is_theirs(talking: Talking) -> None:
    edit = Answer(calls=[("edit_file", {"path": "a", "oldText": "1", "newText": "2"})], delay=WRITING_SECONDS)
    more = Answer(calls=[("shell", {"command": "echo 3 >> a"})], delay=WRITING_SECONDS)
    done = Answer(text="Done.", delay=WRITING_SECONDS)
    async with talking([shell("echo 1 > a"), edit, more, done], yes=True) as talk:
        mine = [talk.workspace / name for name in ("first", "second", "third")]
        async with talk.conversation.turn("work") as events:
            async for event in events:
                if isinstance(event, ToolFinished):  # the model is asked next
                    await wait_for_end(talk)
                    mine.pop(0).write_text("by hand\n")
        assert (talk.workspace / "a").read_text() == "2\n3\n"
        shown = await talk.run("/diff")
        gone = await talk.run("/rewind 1 yes")

    assert [(turn["messageId"], len(turn["diffs"])) for turn in shown.data["turns"]] == [(1, 1)]
    assert "by hand" not in shown.text
    assert [one["path"] for one in gone.data["skipped"]] == ["first", "second", "third"]
    assert not (talk.workspace / "a").exists()


async def wait_for_end(talk: Talk) -> None:
    while talk.conversation.parts.checkpoints.get().begun:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("built", [True, False])
async def test_a_conversation_that_changes_nothing_builds_nothing(talking: Talking, built: bool) -> None:
    script = [shell("echo 1 > a"), "Done."] if built else ["Hello."]
    async with talking(script, yes=True) as talk:
        await talk.say("hi")
        assert (talk.conversation.parts.checkpoints.built is not None) == built


async def test_a_turn_that_is_cancelled_while_files_are_saved_ends_its_record(talking: Talking) -> None:
    async with talking([shell("echo 1 > a"), shell("echo 2 > b"), "Done."], yes=True) as talk:
        checkpoints = talk.conversation.parts.checkpoints.get()
        async with talk.conversation.turn("work"):
            with FileObjects(checkpoints.objects.folder).hold_lock():
                while not talk.server.chats:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.3)  # the state before the call waits for the lock
                await talk.conversation.cancel()
        assert not checkpoints.begun
        await talk.say("again")
        records = checkpoints.list_records(talk.conversation.session_id or "")

    assert [(record.message_id, bool(record.end)) for record in records][-1] == (records[-1].message_id, True)
    assert len({record.message_id for record in records}) == 2


async def test_what_a_person_changes_while_they_are_asked_is_theirs(talking: Talking) -> None:
    script = [shell("echo 1 > a"), shell("echo 2 >> a"), "Done."]
    async with talking(script) as talk:
        mine, theirs = talk.workspace / "mine", talk.workspace / "a"
        async with talk.conversation.turn("work") as events:
            async for event in events:
                if isinstance(event, ConfirmationRequested):
                    if theirs.exists():
                        mine.write_text("by hand\n")
                    await talk.conversation.respond(event.correlation_id, ConfirmationAnswer(approved=True))
        changed = theirs.read_text()
        shown = await talk.run("/diff")
        gone = await talk.run("/rewind 1 yes")

    assert changed == "1\n2\n"
    assert [(turn["messageId"], len(turn["diffs"])) for turn in shown.data["turns"]] == [(1, 1)]
    assert "by hand" not in shown.text
    assert gone.data["skipped"] == [{"path": "mine", "why": "changed since, not by the model"}]
    assert mine.read_text() == "by hand\n"
    assert not theirs.exists()


@pytest.mark.parametrize(("seconds", "said"), [(-1.0, 1), (3.0, 0)])
async def test_that_saving_took_long_is_said(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, seconds: float, said: int
) -> None:
    monkeypatch.setattr(housekeeping, "SLOW_CHECKPOINT_SECONDS", seconds)
    async with talking([shell("echo 1 > a"), "Done."], yes=True) as talk:
        (talk.workspace / "b").write_text("x")
        events = await talk.say("one")

    told = [event.text for event in events if isinstance(event, Notice) and "first change" in event.text]
    assert told == ["Saved 1 file before the first change; later turns save only what changed."] * said


async def test_a_turn_whose_beginning_was_not_saved_stays_so_and_the_next_is_saved(talking: Talking) -> None:
    script = [shell("echo 1 > a"), shell("echo 2 > b"), "Done.", shell("echo 3 > c"), "Done."]
    async with talking(script, yes=True) as talk:
        checkpoints = talk.conversation.parts.checkpoints.get()
        (talk.workspace / "mine").write_text("x")
        objects = checkpoints.objects.folder / "objects"
        objects.parent.mkdir(parents=True)
        objects.write_text("in the way")
        first = await talk.say("one")
        objects.unlink()
        second = await talk.say("two")
        missed, *saved = checkpoints.list_records(talk.conversation.session_id or "")

    (told,) = [event.text for event in first if isinstance(event, Notice)]
    assert told.endswith("/rewind cannot bring files back.")
    assert (missed.kind, missed.message_id, missed.has_trees) == ("missed", 1, False)
    assert not [event for event in second if isinstance(event, Notice)]
    assert [(record.has_trees, bool(record.end)) for record in saved] == [(True, True)]

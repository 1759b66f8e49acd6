"""When states of the files are taken: before the first call that may change some, and when the turn ends."""

import pytest

from ollm.domain.events import Notice
from tests.runtime.talking import Talking
from tests.servers.answers import Answer


def shell(command: str) -> Answer:
    return Answer(calls=[("shell", {"command": command})])


async def test_a_turn_has_one_record_whatever_it_calls(talking: Talking) -> None:
    notes = Answer(calls=[("write_todos", {"action": "add", "text": "x"}), ("ls", {})])
    async with talking([notes, shell("echo 1 > a"), shell("echo 2 > b"), "Done.", notes, "Noted."], yes=True) as talk:
        await talk.say("work")
        assert talk.conversation.session_id
        checkpoints = talk.conversation.parts.checkpoints.get()
        records = checkpoints.list_records(talk.conversation.session_id)
        await talk.say("only notes")
        later = checkpoints.list_records(talk.conversation.session_id)

    assert [(record.kind, record.message_id, bool(record.end)) for record in records] == [("turn", 1, True)]
    assert [change.path for change in checkpoints.list_changes(records[0])] == ["a", "b"]
    assert later == records


async def test_that_none_are_taken_is_said_once_and_the_call_runs(talking: Talking) -> None:
    async with talking([shell("echo 1 > a"), "Done.", shell("echo 2 > b"), "Done."], yes=True) as talk:
        checkpoints = talk.conversation.parts.checkpoints.get()
        checkpoints._off = "Checkpoints are off: too many files."
        events = [*await talk.say("one"), *await talk.say("two")]

    said = [event.text for event in events if isinstance(event, Notice) and "too many" in event.text]
    assert said == ["Checkpoints are off: too many files. /rewind cannot bring files back."]
    assert (talk.workspace / "b").exists()


@pytest.mark.parametrize("built", [True, False])
async def test_a_conversation_that_changes_nothing_builds_nothing(talking: Talking, built: bool) -> None:
    script = [shell("echo 1 > a"), "Done."] if built else ["Hello."]
    async with talking(script, yes=True) as talk:
        await talk.say("hi")
        assert (talk.conversation.parts.checkpoints.built is not None) == built

"""What is done where a compression alone leaves a prompt over its limit."""

from __future__ import annotations

import pytest

from ollm.domain.events import Compressed, Notice
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.hard_compaction import settle_goals, shrink_to_limit
from tests.runtime.prompt.test_prompt import Talk, filler, minutes
from tests.runtime.test_context_fuzz import Context


@pytest.mark.parametrize("factor", [0.9, 1.0])
def test_a_record_that_is_shortened_for_the_goals_beside_it_counts_as_a_compression(factor: float) -> None:
    machine = Context()
    machine.begin(window=1024, factor=factor, strategy="hybrid", summary="good")
    machine.the_user_speaks(12_000, "digits")
    machine.the_user_compacts()
    machine.a_goal_is_set(481, locked=True)
    machine.a_goal_is_set(552, locked=False)
    for length in (92, 0, 300, 20):  # the machine itself says when something moved that was not counted
        machine.the_user_speaks(length, "prose")
    machine.compressions_are_counted()

    assert len(machine.records) > 1


async def test_a_long_message_stands_whole_where_the_records_can_make_room_for_it() -> None:
    talk = Talk()
    while len(talk.of(Compressed)) < 4:
        talk.user(f"Go on with part {len(talk.events)} and keep src/area_{len(talk.events)}/file.py as it is, please.")
        talk.assistant("I did what was asked of me. " * 40)
        await talk.make_room(minutes)
    budget = talk.prompt.compute_budget()
    longest = "word " * (budget.available // 2 + budget.checkpoints // 2 - 20)
    talk.user(longest)
    talk.step(filler(400))
    await talk.make_room(minutes)

    assert budget.checkpoints > 400
    assert longest in "\n".join(message.content for message in talk.prompt.build_request_messages())
    assert talk.prompt.used_tokens <= talk.prompt.compute_budget().limit
    assert not [told for told in talk.of(Notice) if "half of the room" in told.text]  # type: ignore[attr-defined]


def test_goals_go_into_a_record_and_leave_the_messages_that_were_answered() -> None:
    talk = Talk()
    talk.prompt.goals.set("ship the scanner")
    talk.user("First")
    talk.assistant("Yes.")
    talk.user("Second")
    settled = settle_goals(talk.prompt.view_context(), talk.counter)

    assert "ship the scanner" in settled.checkpoints[-1].text
    assert settled.messages[0].content == "First"


def test_what_is_cut_to_fit_can_be_brought_back() -> None:
    talk = Talk()
    read, recall = (ToolSchema(name=name, description=name, parameters={}) for name in ("read_file", "recall"))
    talk.prompt.set_tools([read], lambda: [read, recall])
    talk.user("Look at it")
    talk.step(filler(40))
    talk.prompt.set_window(640)
    assert talk.prompt.used_tokens > talk.prompt.compute_budget().limit
    assert not talk.prompt.get_active_context().folded

    assert shrink_to_limit(talk.prompt, talk.counter)

    assert talk.prompt.get_active_context().folded
    assert talk.prompt.tools == (read, recall)

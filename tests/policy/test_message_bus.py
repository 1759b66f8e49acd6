"""Questions and answers over the message bus (T8)."""

import asyncio

import pytest

from ollm.domain.events import ConfirmationRequested, ConfirmationResolved
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Risk
from ollm.policy.message_bus import (
    BusEvent,
    ConfirmationCancelledError,
    ConfirmationTimeoutError,
    MessageBus,
)
from tests.covers import covers

YES = ConfirmationAnswer(approved=True)
NO = ConfirmationAnswer(approved=False, reason="not now")


def question(tool: str = "shell") -> ConfirmationDetails:
    return ConfirmationDetails(call_id="call-1", tool=tool, description="run it", risk=Risk.HIGH, reason="it runs")


async def asked(bus: MessageBus, count: int = 1) -> list[str]:
    """Wait until that many questions are pending."""
    while len(bus.pending) < count:
        await asyncio.sleep(0)
    return [entry.correlation_id for entry in bus.pending]


@covers("T8.1", "T8.5")
async def test_every_question_gets_an_id_of_its_own_and_the_answer_that_names_it():
    bus = MessageBus()
    waiting = [asyncio.create_task(bus.request(question(f"tool-{n}"))) for n in range(5)]
    ids = await asked(bus, 5)
    assert len(set(ids)) == 5

    for number, correlation_id in reversed(list(enumerate(ids))):
        assert bus.respond(correlation_id, ConfirmationAnswer(approved=True, reason=str(number)))

    assert [answer.reason for answer in await asyncio.gather(*waiting)] == ["0", "1", "2", "3", "4"]
    assert bus.pending == ()


@covers("T8.2", "T8.3")
async def test_the_first_answer_wins_and_the_second_learns_that_it_did_not():
    bus = MessageBus()
    waiting = asyncio.create_task(bus.request(question()))
    (correlation_id,) = await asked(bus)

    assert bus.respond(correlation_id, NO) is True
    assert bus.respond(correlation_id, YES) is False
    assert await waiting == NO
    assert bus.respond("no such id", YES) is False


@covers("T8.4")
async def test_a_question_nobody_answers_ends_with_a_time_out_and_not_a_refusal():
    bus = MessageBus()
    events: list[BusEvent] = []
    bus.subscribe(events.append)

    with pytest.raises(ConfirmationTimeoutError):
        await bus.request(question(), timeout=0.01)

    assert bus.pending == ()
    assert isinstance(events[-1], ConfirmationResolved)
    assert events[-1].outcome == "timeout"
    assert bus.respond(events[-1].correlation_id, YES) is False


@covers("T8.6")
async def test_cancelling_a_question_is_told_apart_from_a_refusal():
    bus = MessageBus()
    waiting = asyncio.create_task(bus.request(question()))
    (correlation_id,) = await asked(bus)

    assert bus.cancel(correlation_id) is True
    assert bus.cancel(correlation_id) is False
    with pytest.raises(ConfirmationCancelledError):
        await waiting


@covers("T8.6")
async def test_cancelling_the_task_that_asks_takes_the_question_back():
    bus = MessageBus()
    events: list[BusEvent] = []
    bus.subscribe(events.append)
    waiting = asyncio.create_task(bus.request(question()))
    (correlation_id,) = await asked(bus)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert bus.pending == ()
    assert bus.respond(correlation_id, YES) is False
    assert [event.outcome for event in events if isinstance(event, ConfirmationResolved)] == ["cancelled"]


async def test_closing_leaves_nothing_pending_and_asks_nothing_more():
    bus = MessageBus()
    waiting = [asyncio.create_task(bus.request(question())) for _ in range(3)]
    await asked(bus, 3)

    bus.close()

    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, ConfirmationCancelledError) for outcome in outcomes)
    with pytest.raises(ConfirmationCancelledError):
        await bus.request(question())


async def test_cancel_all_says_how_many_it_took_back():
    bus = MessageBus()
    waiting = [asyncio.create_task(bus.request(question())) for _ in range(3)]
    await asked(bus, 3)
    assert bus.cancel_all() == 3
    assert bus.cancel_all() == 0
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_front_end_that_comes_late_is_told_of_what_waits_and_one_that_left_hears_nothing():
    bus = MessageBus()
    waiting = asyncio.create_task(bus.request(question()))
    (correlation_id,) = await asked(bus)
    late: list[BusEvent] = []
    gone: list[BusEvent] = []
    bus.subscribe(late.append)
    leave = bus.subscribe(gone.append)
    leave()
    leave()

    bus.respond(correlation_id, YES)
    await waiting

    assert [type(event) for event in late] == [ConfirmationRequested, ConfirmationResolved]
    assert [type(event) for event in gone] == [ConfirmationRequested]

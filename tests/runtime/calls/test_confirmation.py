"""Who answers when policy asks."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.policy.message_bus import MessageBus
from ollm.runtime.calls.confirmation import (
    UNATTENDED_TIMEOUT_SECONDS,
    AnswerLog,
    BusAsker,
    UnattendedAsker,
    explain_refusal,
)
from tests.covers import covers
from tests.runtime.calls.support import ASK, Table


async def test_nobody_answering_in_time_is_told_apart_from_a_refusal(tmp_path: Path) -> None:
    record = await Table(tmp_path, ASK, asker=BusAsker(MessageBus(), timeout=0.01)).one("log", {"text": "x"})

    assert record.error is not None
    assert record.error.type == "Denied"
    assert "No answer" in record.error.message


async def test_a_question_taken_back_cancels_the_call(tmp_path: Path) -> None:
    bus = MessageBus()
    task = asyncio.create_task(Table(tmp_path, ASK, asker=BusAsker(bus)).one("log", {"text": "x"}))
    while not bus.pending:
        await asyncio.sleep(0)
    bus.cancel_all()

    assert (await task).status == "cancelled"


@covers("T10.4")
async def test_with_nobody_to_ask_the_denial_names_what_would_allow_it(tmp_path: Path) -> None:
    record = await Table(tmp_path, ASK).one("log", {"text": "x"})

    assert record.status == "denied"
    assert record.error is not None
    assert record.error.message == (
        "Not run: it changes files, and ollm cannot ask in non-interactive mode. Use --yes, or grant it with --allow 'log:x'."
    )


async def test_yes_answers_every_question_but_locked_ones(tmp_path: Path) -> None:
    locked = msgspec.structs.replace(ASK, locked=True)

    assert (await Table(tmp_path, ASK, asker=UnattendedAsker(yes=True)).one("log", {"text": "x"})).status == "ok"
    assert (await Table(tmp_path, locked, asker=UnattendedAsker(yes=True)).one("log", {"text": "x"})).status == "denied"


def question(**more: Any) -> ConfirmationDetails:
    return ConfirmationDetails(
        **{"call_id": "c", "tool": "t", "description": "", "risk": "medium", "reason": "it writes."} | more
    )


@pytest.mark.parametrize(
    ("details", "yes", "text"),
    [
        ({}, False, "it writes, and ollm cannot ask in non-interactive mode. Use --yes."),
        ({"reason": ""}, False, "policy asks before it runs, and ollm cannot ask in non-interactive mode. Use --yes."),
        (
            {"grant": "shell:make"},
            False,
            "it writes, and ollm cannot ask in non-interactive mode. Use --yes, or grant it with --allow 'shell:make'.",
        ),
        ({"grant": "shell:make"}, True, "it writes, and ollm cannot ask in non-interactive mode."),
        (
            {"locked": True},
            False,
            "it writes. This always needs your confirmation, and ollm cannot ask in non-interactive mode.",
        ),
    ],
)
async def test_a_refusal_says_why_and_what_would_allow_it(details: dict[str, Any], yes: bool, text: str) -> None:
    asked_about = question(**details)

    assert explain_refusal(asked_about, yes=yes) == text
    answer = await UnattendedAsker(yes=False).ask(asked_about)
    assert (answer.approved, answer.reason) == (False, explain_refusal(asked_about, yes=False))


async def test_yes_answers_without_asking_but_for_what_is_locked() -> None:
    assert (await UnattendedAsker(yes=True).ask(question())).approved
    assert not (await UnattendedAsker(yes=True).ask(question(locked=True))).approved
    bus = MessageBus()
    assert (await BusAsker(bus, yes=True).ask(question())).approved
    with pytest.raises(ToolFailure, match="Not run: "):
        await BusAsker(bus, 0.01, yes=True).ask(question(locked=True))


@pytest.mark.parametrize(
    ("timeout", "attached", "waits"),
    [(None, True, None), (None, False, UNATTENDED_TIMEOUT_SECONDS), (5.0, True, 5.0), (5.0, False, 5.0)],
)
async def test_a_front_end_is_waited_for_as_long_as_somebody_listens(
    timeout: float | None, attached: bool, waits: float | None
) -> None:
    waited: list[float | None] = []

    class Bus(MessageBus):
        async def request(self, details: Any, *, timeout: float | None = None) -> ConfirmationAnswer:
            waited.append(timeout)
            return ConfirmationAnswer(approved=True)

    await BusAsker(Bus(), timeout, attached=lambda: attached).ask(question())

    assert waited == [waits]


def answer_to(log: AnswerLog, call_id: str, text: str, outcome: Any = "approved") -> None:
    asked = ConfirmationRequested(correlation_id=text, details=question(call_id=call_id, description=text))
    answer = ConfirmationAnswer(approved=True)
    log.handle_event(asked)
    log.handle_event(ConfirmationResolved(correlation_id=text, outcome=outcome, answer=answer))


def test_answers_are_kept_with_the_call_they_were_for_or_the_one_that_runs() -> None:
    log = AnswerLog()
    answer_to(log, "c1", "before any call")
    log.begin_call("c1")
    log.begin_call("c2")
    answer_to(log, "c1", "first")
    answer_to(log, "elsewhere", "of a server")
    answer_to(log, "c2", "taken back", "cancelled")
    log.handle_event(ConfirmationResolved(correlation_id="unknown", outcome="approved"))

    assert [found.question for found in log.end_call("c1")] == ["first"]
    assert [found.question for found in log.end_call("c2")] == ["of a server"]
    assert log.end_call("c1") == ()


async def test_who_is_about_to_be_asked_is_told_first_and_only_then() -> None:
    told: list[str] = []

    async def before() -> None:
        told.append("before")

    class Bus(MessageBus):
        async def request(self, details: Any, *, timeout: float | None = None) -> ConfirmationAnswer:
            told.append("asked")
            return ConfirmationAnswer(approved=True)

    await BusAsker(Bus(), yes=True, before=before).ask(question())
    assert told == []
    await BusAsker(Bus(), before=before).ask(question())
    assert told == ["before", "asked"]

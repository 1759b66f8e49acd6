"""When a task is offered without a call; what it brings is driven from tests/cli/test_tasks.py."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.events import ToolFinished, ToolOutput
from ollm.domain.tasks import TaskReport, TaskRequest
from ollm.runtime.task_offer import needs_exploring, offer_task
from ollm.tools.task import render_report


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("where is the retry?", True),
        ("Where are sessions folded?", True),
        ("how does compaction work", True),
        ("find all callers of pay", True),
        ("which files use the lease?", True),
        ("who calls close()?", True),
        ("fix the bug in cart.py", False),
        ("add a test", False),
        ("somewhere isolated", False),
        ("", False),
    ],
)
def test_a_question_over_many_files_is_known_by_its_words(text: str, wide: bool) -> None:
    assert needs_exploring(text) is wide


class Starter:
    def __init__(self, outcome: Any = None) -> None:
        self.asked: list[TaskRequest] = []
        self.outcome = outcome

    async def run(self, request: TaskRequest, emit: Any) -> TaskReport:
        self.asked.append(request)
        emit("looking")
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return TaskReport(text="It is in a.py.", session_id="s1", steps=2, files=("a.py",))


def make_parts(starter: Starter | None, form: str = "blocks", used: int = 60) -> Any:
    events: list[Any] = []
    return SimpleNamespace(
        tasks=SimpleNamespace(get=lambda: starter) if starter else None,
        model=SimpleNamespace(facts=SimpleNamespace(call_form=form)),
        prompt=SimpleNamespace(used_tokens=used, compute_budget=lambda: SimpleNamespace(limit=100)),
        stream=SimpleNamespace(emit=events.append, events=events),
    )


@pytest.mark.parametrize(
    ("text", "form", "used", "offered"),
    [
        ("where is the retry?", "blocks", 51, True),
        ("where is the retry?", "text", 51, True),
        ("where is the retry?", "none", 51, True),
        ("where is the retry?", "native", 51, False),
        ("where is the retry?", "blocks", 50, False),
        ("fix the retry", "blocks", 51, False),
    ],
)
async def test_a_wide_question_is_explored_where_the_context_is_half_full_and_the_model_is_weak(
    text: str, form: str, used: int, offered: bool
) -> None:
    starter = Starter(ToolFailure("Denied", "not here"))
    parts = make_parts(starter, form, used)

    assert await offer_task(parts, text) == ""
    assert [(request.prompt, request.agent) for request in starter.asked] == ([(text, "")] if offered else [])
    assert await offer_task(make_parts(None), text) == ""


@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [(ToolFailure("Denied", "not here"), "Denied", "not here"), (OllmError("no disk"), "Interrupted", "no disk")],
)
async def test_agents_that_are_named_are_asked_three_at_most_and_failures_are_told(
    outcome: Exception, kind: str, message: str
) -> None:
    starter = Starter(outcome)
    parts = make_parts(starter, "native")

    assert await offer_task(parts, "@agent-a (@agent-B x@agent-z @agent-c @agent-a @agent-d go") == ""

    assert [request.agent for request in starter.asked] == ["a", "b", "c"]
    assert {request.prompt for request in starter.asked} == {"a (B x@agent-z c a d go"}
    warned, *rest = parts.stream.events
    assert warned.text == "@agent-d was not asked: a message has at most 3 agents."
    ended = [event for event in rest if isinstance(event, ToolFinished)]
    assert [(event.status, event.name, event.result.error.type) for event in ended] == [("failed", "task", kind)] * 3
    assert {event.result.error.message for event in ended} == {message}
    assert [event.text for event in rest if isinstance(event, ToolOutput)] == ["looking"] * 3
    assert len({event.call_id for event in ended}) == 3


async def test_what_a_task_found_goes_with_the_words_and_says_where_it_comes_from() -> None:
    report = render_report(TaskReport(text="It is in a.py.", session_id="s1", steps=2, files=("a.py",)))

    asked = make_parts(Starter(), "native")
    assert await offer_task(asked, "@agent-a @agent-b look") == (
        f"[Report of agent a:]\n{report}\n\n[Report of agent b:]\n{report}"
    )
    assert [type(event).__name__ for event in asked.stream.events] == ["ToolStarted", "ToolOutput", "ToolFinished"] * 2
    assert asked.stream.events[0].args == {"prompt": "a b look", "agent": "a"}
    assert asked.stream.events[2].result.llm_content == report

    wide = make_parts(Starter())
    assert await offer_task(wide, "where is it?") == f"[Report of a task:]\n{report}"
    assert wide.stream.events[0].text == "Exploring in a task; only its report joins this conversation."
    assert wide.stream.events[1].args == {"prompt": "where is it?"}


async def test_how_long_a_task_took_is_told_in_thousandths(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 101.23456])
    monkeypatch.setattr("ollm.runtime.task_offer.time", SimpleNamespace(monotonic=lambda: next(clock)))
    asked = make_parts(Starter(), "native")
    await offer_task(asked, "@agent-a look")

    assert asked.stream.events[-1].seconds == 1.235


async def test_a_task_whose_turn_is_cancelled_is_shown_as_cancelled() -> None:
    asked = make_parts(Starter(asyncio.CancelledError()), "native")
    with pytest.raises(asyncio.CancelledError):
        await offer_task(asked, "@agent-a look")

    ended = asked.stream.events[-1]
    assert (ended.status, ended.result.error.type) == ("cancelled", "Cancelled")
    assert ended.result.return_display == "The turn was cancelled before this task finished."


async def test_a_person_is_shown_what_a_task_did_and_what_it_found() -> None:
    asked = make_parts(Starter(), "native")
    await offer_task(asked, "@agent-a look")

    assert asked.stream.events[-1].result.return_display == "report after 2 steps\n· lookingIt is in a.py."

"""Parts of a conversation that front ends hold."""

from types import SimpleNamespace
from typing import Any

import pytest

from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.events import ToolFinished, ToolOutput
from ollm.domain.messages import ImagePart, Message, Role, TextPart, ThinkingPart
from ollm.domain.session import TaskReport, TaskRequest
from ollm.runtime.base import Attachment, Status, TurnReport, build_message_parts, get_recap_end
from ollm.runtime.parts import TodoOwner
from ollm.runtime.task_offer import offer_task


@pytest.mark.parametrize(
    ("turn_after", "turn_message", "end"),
    [(None, 0, None), (None, 4, None), (7, 0, None), (0, 4, 5), (7, 4, 5)],
)
def test_a_recap_ends_before_a_running_turn_that_is_written_down(
    turn_after: int | None, turn_message: int, end: int | None
) -> None:
    status = Status(
        session_id="s",
        title="",
        model="m",
        provider="p",
        base_url="",
        window=1,
        mode="code",
        approval="ask",
        workspace="/w",
        turn_after=turn_after,
        turn_message=turn_message,
    )

    assert get_recap_end(status) == end
    assert (status.used, status.limit, status.trigger, status.fixed) == (0, 0, 0, 0)  # before anything was counted


def test_what_is_put_beside_a_message_follows_it() -> None:
    picture = ImagePart("image/png", "aGk=")

    assert build_message_parts("look", ()) == (TextPart("look"),)
    assert build_message_parts("look", (Attachment(name="a.txt", text="x"), Attachment(name="p", image=picture))) == (
        TextPart("look"),
        TextPart("\n\n[a.txt]\nx"),
        picture,
    )


def message(role: Role, text: str) -> Message:
    return Message(role=role, parts=(TextPart(text),), timestamp="")


def report(*messages: Message) -> TurnReport:
    return TurnReport(session_id="s", messages=messages, calls=(), reason="answered")


def test_the_request_is_the_first_of_the_user_and_the_answer_the_last_text_of_the_model() -> None:
    made = report(
        message("system", "s"),
        message("user", "one"),
        message("user", "two"),
        message("assistant", "first"),
        message("assistant", "last"),
        Message(role="assistant", parts=(ThinkingPart("only thought"),), timestamp=""),
        message("tool", "t"),
    )

    assert made.request is not None
    assert (made.request.text, made.answer) == ("one", "last")


def test_todos_of_before_the_first_message_go_over_to_the_session_once() -> None:
    session: list[str] = []
    moved: list[tuple[str, str]] = []
    owner = TodoOwner(lambda: session[0] if session else None, lambda old, new: moved.append((old, new)))
    draft = owner.get()
    assert owner.get() == draft
    assert moved == []
    session.append("s1")

    assert (owner.get(), owner.get()) == ("s1", "s1")
    assert moved == [(draft, "s1")]


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

"""What a turn came to."""

from ollm.domain.messages import Message, Role, TextPart, ThinkingPart
from ollm.runtime.turn_observer import TurnObserver, TurnReport


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


def test_without_either_there_is_none() -> None:
    assert report().request is None
    assert report(message("user", "x")).answer == ""


async def test_an_observer_that_needs_nothing_does_nothing() -> None:
    observer = TurnObserver()

    assert await observer.session_opened("s", resumed=True) is None
    for work in (
        observer.before_turn("x"),
        observer.before_request(),
        observer.after_turn(report()),
        observer.context_changed(),
        observer.session_closed("s"),
    ):
        assert await work is None

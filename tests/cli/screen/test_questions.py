"""Confirmations on the screen: their order, their keys, their words."""

import pytest

from ollm.cli.screen.questions import (
    ConfirmationQueue,
    paint_question,
)
from ollm.domain.events import (
    ConfirmationResolved,
)
from tests.cli.screen.samples import PLAIN, Clock, asked, details
from tests.covers import covers


@covers("T8.5", "T8.6")
def test_questions_wait_in_order_and_take_keys_only_after_a_quiet_moment() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", grant="shell:ls"))
    questions.handle_event(asked("b", locked=True, grant="shell:rm"))
    assert not questions.armed, "somebody may be in mid-sentence"
    clock.time += 0.3
    questions.note_typing()
    clock.time += 0.3
    assert not questions.armed
    clock.time += 0.2
    assert questions.armed
    assert (
        questions.format_choices()
        == "[y] yes · [s] this session · [a] always in this workspace (shell:ls) · [e] everywhere · [n] no · 1 more"
    )
    said = questions.answer("a")
    assert said is not None
    assert said.scope == "always"

    questions.handle_event(ConfirmationResolved(correlation_id="a", outcome="approved"))
    assert not questions.armed, "the next question needs its own moment"
    clock.time += 1
    assert questions.format_choices() == "[y] yes · [n] no"
    assert questions.answer("s") is None, "what is protected is asked about every time"

    questions.handle_event(ConfirmationResolved(correlation_id="b", outcome="cancelled"))
    assert questions.current is None
    assert questions.format_choices() == ""


def test_a_question_with_a_long_change_is_named_again_below_it() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", description="Create b.txt (60 lines)", diff="+x\n" * 60))
    clock.time += 1

    assert questions.format_choices() == "Create b.txt (60 lines)? [y] yes · [n] no"


def test_a_question_cannot_drive_the_terminal() -> None:
    text = paint_question(details(command="echo \x1b[2J; rm\u202e", description="Run\r\x1b]0;x\x07"), PLAIN)

    assert "\x1b" not in text
    assert "\r" not in text
    assert "\u202e" not in text


def armed(**more: object) -> ConfirmationQueue:
    clock = Clock()
    queue = ConfirmationQueue(clock)
    queue.handle_event(asked("a", **more))
    clock.time += 1
    return queue


@pytest.mark.parametrize(
    ("more", "offered"),
    [
        ({"tool": "edit_file"}, True),
        ({"tool": "write_file"}, True),
        ({"tool": "shell"}, False),
        ({"tool": "edit_file", "locked": True}, False),
    ],
)
def test_all_edits_are_offered_for_edits(more: dict[str, object], offered: bool) -> None:
    queue = armed(**more)

    assert queue.offers_all_edits is offered
    assert ("[f] all file edits this session" in queue.format_choices()) is offered
    assert not ConfirmationQueue().offers_all_edits

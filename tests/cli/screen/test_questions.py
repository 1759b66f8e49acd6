"""Confirmations on the screen: their order, their keys, their words."""

import pytest

from ollm.cli.screen.questions import (
    ConfirmationQueue,
    find_choice,
    list_choices,
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
    assert read(questions).startswith(
        "› 1 [y] yes\n  2 [s] yes, for this session\n  3 [a] always in this workspace (shell:ls)"
    )
    assert read(questions).endswith(
        "5 [n] no, with a reason for the model\n  ↑↓ and Enter, a letter or a number · Esc stops · 1 more"
    )
    assert find_choice("a", questions.choices) == find_choice("3", questions.choices) == "a"
    assert not find_choice("9", questions.choices)

    questions.handle_event(ConfirmationResolved(correlation_id="a", outcome="approved"))
    assert not questions.armed, "the next question needs its own moment"
    clock.time += 1
    assert list(questions.choices) == ["y", "n"], "what is protected is asked about every time"

    questions.handle_event(ConfirmationResolved(correlation_id="b", outcome="cancelled"))
    assert questions.current is None
    assert read(questions) == ""


def read(questions: ConfirmationQueue) -> str:
    return "".join(text for _, text in questions.render_lines(100))


def test_a_question_with_a_long_change_is_named_again_below_it() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", description="Create b.txt (60 lines)", diff="+x\n" * 60))
    clock.time += 1

    assert read(questions).startswith("  Create b.txt (60 lines)?\n› 1 [y] yes")


def test_a_question_cannot_drive_the_terminal() -> None:
    text = paint_question(details(command="echo \x1b[2J; rm\u202e", description="Run\r\x1b]0;x\x07"), PLAIN)

    assert "\x1b" not in text
    assert "\r" not in text
    assert "\u202e" not in text


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
    assert ("f" in list_choices(details(**more))) is offered

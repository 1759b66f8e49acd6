"""Confirmations on the screen: their order, their keys, their words."""

import asyncio

import pytest
from prompt_toolkit.buffer import Buffer

from ollm.cli.screen.questions import (
    HOLD_SECONDS,
    AnswerKeys,
    ConfirmationQueue,
    paint_question,
    split_parts,
)
from ollm.domain.events import (
    ConfirmationResolved,
)
from ollm.domain.tools import ConfirmationAnswer, VerdictPart
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


def part(command: str, decision: str) -> VerdictPart:
    return VerdictPart(command=command, decision=decision, reason="why")  # type: ignore[arg-type]


def test_a_command_shows_the_parts_that_ask() -> None:
    asks = details(command="ls && rm x", parts=(part("ls", "allow"), part("rm x", "ask")))

    assert split_parts(asks) == (1, ["rm x (why)"])
    assert paint_question(asks, PLAIN) == (
        f"{'─' * 80}\n  $ ls && rm x\n  high risk · why\n  1 of its 2 parts is allowed; this asks:\n  ? rm x (why)\n"
    )
    assert split_parts(details(command="ls")) == (0, ["Run it"])


class KeysAtQuestion:
    """A question with a draft in the input line, and what was sent as its answer."""

    def __init__(self, **more: object) -> None:
        self.queue, self.buffer = armed(**more), Buffer()
        self.buffer.insert_text("a draft")
        self.sent: list[tuple[str, ConfirmationAnswer]] = []
        self.accepted = 0
        self.keys = AnswerKeys(self.queue, self.buffer, lambda *answer: self.sent.append(answer), self.accept)

    def accept(self) -> None:
        self.accepted += 1


async def test_two_keys_are_words_for_the_input_line() -> None:
    at = KeysAtQuestion()
    at.keys.answer("y")
    at.keys.answer("s")
    await asyncio.sleep(2 * HOLD_SECONDS)

    assert at.sent == []
    assert at.buffer.text == "a draftys"
    assert not at.keys.take_held()


def test_the_reason_for_a_no_takes_the_input_line_and_gives_the_draft_back() -> None:
    at = KeysAtQuestion()
    at.keys.refuse(True)
    assert (at.queue.refusing, at.buffer.text) == (True, "")
    at.keys.refuse(False)
    assert (at.queue.refusing, at.buffer.text) == (False, "a draft")
    at.keys.refuse(True)
    at.buffer.insert_text("too wide")
    at.keys.submit("too wide")

    assert at.sent == [("a", ConfirmationAnswer(approved=False, reason="too wide"))]
    assert (at.queue.refusing, at.buffer.text) == (False, "a draft")


async def test_one_key_accepts_this_edit_and_all_later_ones() -> None:
    at = KeysAtQuestion(tool="write_file")
    at.keys.answer("f")
    assert at.keys.take_held()

    assert at.accepted == 1
    assert at.sent == [("a", ConfirmationAnswer(approved=True, text="all file edits this session"))]

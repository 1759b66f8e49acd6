"""How the next answer in blocks is asked for."""

from collections.abc import AsyncGenerator

import pytest

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.providers.base import AnyPiece, FinishPiece, TextPiece
from ollm.runtime.model.block_steering import (
    TEMPERATURES,
    choose_beginning,
    choose_temperature,
    join_beginning,
    list_turn,
    names_step,
)


def user(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=text, sources=(1,))


def step(command: str, result: str, *, failed: bool = False) -> list[PromptMessage]:
    call = ToolCall(id="c", name="shell", arguments={"command": command})
    return [
        PromptMessage(role="assistant", content="", calls=(call,)),
        PromptMessage(role="tool", content=result, tool_name="shell", call_id="c", failed=failed),
    ]


ASKED = user("Change x in a.py to 2.\n\nFiles here: a.py")
NAMED = user("Now change a.py.")
REFUSED = "Error NotDone: a.py holds exactly this already: nothing was changed."


@pytest.mark.parametrize(
    ("said", "stalled"),
    [
        ([], 0),
        (step("ls", "a.py"), 0),
        ([NAMED], 0),
        ([NAMED, NAMED], 1),
        (step("x", REFUSED, failed=True), 1),
        ([*step("x", REFUSED, failed=True), *step("x", REFUSED, failed=True)], 2),
        (step("x", REFUSED, failed=True) * 9, 3),
        ([*step("x", REFUSED, failed=True), *step("ls", "a.py")], 0),
        (step("python t.py", "Exit code: 1", failed=True), 0),
        ([*step("python t.py", "Exit code: 1", failed=True), *step("python t.py", "Exit code: 1", failed=True)], 1),
    ],
)
def test_steps_that_come_to_nothing_loosen_the_next_answer(said: list[PromptMessage], stalled: int) -> None:
    assert choose_temperature([ASKED, *said]) == TEMPERATURES[stalled]
    assert choose_temperature([ASKED, *said, user("Something else.\n\nFiles here: a.py")]) == 0


def test_a_turn_begins_with_the_users_words_not_with_a_step_that_is_named() -> None:
    assert list_turn([user("before"), ASKED, NAMED]) == [ASKED, NAMED]
    assert list_turn([]) == []
    assert not names_step(user("Now change a.py.\n\nFiles here: a.py"))


def test_the_first_answer_begins_by_the_request_and_later_ones_by_the_step_that_is_left() -> None:
    asked = user("Delete the file old.txt.\n\nFiles here: old.txt")

    assert choose_beginning([asked]) == "```bash\nrm old.txt"
    assert choose_beginning(
        [asked, PromptMessage(role="assistant", content="Done."), user("Now run python a.py.")]
    ) == ("```bash\npython a.py")
    assert choose_beginning([asked, *step("ls", "old.txt")]) == ""
    assert choose_beginning([]) == ""


async def stream(*texts: str) -> AsyncGenerator[AnyPiece, None]:
    for text in texts:
        yield TextPiece(text)
    yield FinishPiece("stop")


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ((" old.txt\n", "```\nDone."), "```bash\nrm old.txt\n```\nDone."),
        (("```ba", "sh\nrm", " old.txt\n```"), "```bash\nrm old.txt\n```"),
        (("I will.\n\n```bash\n", "ls\n```"), "I will.\n\n```bash\nls\n```"),
        ((" old.txt",), "```bash\nrm old.txt"),
        ((), "```bash\nrm"),
    ],
)
async def test_the_beginning_stands_once_whatever_the_server_does_with_it(said: tuple[str, ...], whole: str) -> None:
    pieces = [piece async for piece in join_beginning("```bash\nrm", stream(*said))]

    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == whole
    assert [piece for piece in pieces if isinstance(piece, FinishPiece)] == [FinishPiece("stop")]

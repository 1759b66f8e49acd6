"""How the next answer in blocks is asked for."""

from collections.abc import AsyncGenerator

import pytest

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.providers.base import AnyPiece, FinishPiece, TextPiece
from ollm.providers.text_calls.block_edits import IDLE_SED
from ollm.runtime.model.block_steering import (
    TEMPERATURES,
    asks_for_words,
    choose_beginning,
    choose_temperature,
    find_words_instead,
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
    asked = user("Sort the lines in old.txt.\n\nFiles here: old.txt")

    assert choose_beginning([asked]) == "```bash\nsort -o old.txt"
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


async def test_text_is_held_back_until_it_is_plain_how_it_begins_and_goes_on_as_it_comes() -> None:
    for said, told in (
        (("``", "`bash\nrm", " old.txt", "\n"), ["```bash\nrm", " old.txt", "\n"]),
        (("```bash\nrm old", ".txt"), ["```bash\nrm old", ".txt"]),
        ((" old", ".txt"), ["```bash\nrm old.txt"]),
        ((" a\n```\n", "Done", "."), ["```bash\nrm a\n```\n", "Done", "."]),
        (("I\n```sh\nls", "\n```"), ["I\n```sh\nls", "\n```"]),
    ):
        pieces = [piece async for piece in join_beginning("```bash\nrm", stream(*said))]
        assert [piece.text for piece in pieces if isinstance(piece, TextPiece)] == told


FILE = "a.py:\n```\ndef add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a + b\n```\n"
TRACE = '  File "a.py", line 2, in add\nAssertionError'
PLAIN, LINE = "a.py\n```\n", "a.py\n```diff\n-    return a - b\n+"
MEND = user("Mend a.py.\n\nFiles here: a.py")
FAILED = step("python t.py", f"{TRACE}\n\n{FILE}\nNow change a.py.", failed=True)
LOOKED = [PromptMessage(role="tool", tool_name="read_file", call_id="c", content=TRACE)]
SHOWN = step("ls", f"a.py\n\n{FILE}\nNow mend a.py.")


@pytest.mark.parametrize(
    ("said", "usual", "tiny"),
    [
        (FAILED, PLAIN, LINE),
        (FAILED * 2, LINE, LINE),
        (FAILED * 3, PLAIN, PLAIN),
        (FAILED[1:], LINE, LINE),
        (step("python t.py", f"{TRACE}\n\nNow change a.py.", failed=True), PLAIN, PLAIN),
        ([*step("python t.py", TRACE, failed=True), *SHOWN], PLAIN, LINE),
        ([*LOOKED, *SHOWN], PLAIN, PLAIN),
        (step("python t.py", f"{TRACE}\n\n{FILE}\nNow change a.py too.", failed=True), PLAIN, LINE),
        (step("python t.py", f"{TRACE}\n\n{FILE}\nNow run it.", failed=True), "```bash\n", "```bash\n"),
        ([*step("x", REFUSED, failed=True), user(f"{FILE}\nNow change a.py.")], PLAIN, PLAIN),
        ([*step("x", f"{TRACE}\n{REFUSED}", failed=True), user(f"{FILE}\nNow change a.py.")], PLAIN, LINE),
        ([*step("x", f"{REFUSED}\n{TRACE}", failed=True), user(f"{FILE}\nNow change a.py.")], LINE, LINE),
    ],
)
def test_the_line_that_seems_wrong_is_begun_with_twice_at_most(
    said: list[PromptMessage], usual: str, tiny: str
) -> None:
    assert choose_beginning([MEND, *said]) == usual
    assert choose_beginning([MEND, *said], whole=True) == tiny


COUNT = user("How many lines has a.py?\n\nFiles here: a.py")
SAY = "\n\nNow say in a sentence what was done or found."


@pytest.mark.parametrize(
    ("said", "instead", "tiny"),
    [
        ([COUNT, *step("wc -l a.py", f"2 a.py{SAY}")], "2 a.py", "There are"),
        ([user("Show it."), *step("cat a.py", f"x\n{SAY}")], "x", ""),
        ([COUNT, *step("cat b", "y" * 401), *step("false", f"no{SAY}", failed=True)], "y" * 400, "There are"),
        ([COUNT, *step("cat b", "z"), *LOOKED, user(SAY)], "z", "There are"),
        ([COUNT, *step("true", SAY)], "Done.", "There are"),
        ([user("Delete a.py.\n\nFiles here: a.py"), *step("rm a.py", f"removed{SAY}")], "Done.", ""),
        ([user("See it.\n\nFiles here: delete.py. Delete it."), *step("cat a.py", f"x{SAY}")], "x", ""),
        ([COUNT, *step("wc -l a.py", "2 a.py")], "2 a.py", None),
        ([], "Done.", None),
    ],
)
def test_who_is_asked_for_words_and_has_none_says_what_was_printed(
    said: list[PromptMessage], instead: str, tiny: str | None
) -> None:
    assert asks_for_words(said) is (tiny is not None)
    assert find_words_instead(said) == instead
    if tiny is not None:
        assert choose_beginning(said, whole=True) == tiny
        assert choose_beginning(said) == ""


def test_a_failure_of_another_step_is_no_stall() -> None:
    failed = [*step("a", "Exit code: 1", failed=True), *step("b", "Exit code: 1", failed=True)]

    assert choose_temperature([ASKED, *failed]) == 0
    assert choose_temperature([ASKED, *failed, *step("a", "Exit code: 1", failed=True)]) == 0
    assert choose_temperature([ASKED, *failed, *step("b", "Exit code: 1", failed=True)]) == 0.4


@pytest.mark.parametrize(
    ("said", "temperature"),
    [
        ([*step("ls", "a.py"), *step("ls", "a.py")], 0.4),
        ([*step("ls", "a.py"), *step("ls", "b.py")], 0.0),
        ([*step("ls", "a.py"), *step("ls -a", "a.py")], 0.0),
        ([*step("ls", "a.py"), *step("ls", "a.py"), *step("ls", "a.py")], 0.7),
        (step("sed -i s/q/r/ a.py", IDLE_SED), 0.4),
        ([*step("sed", IDLE_SED), *step("sed", IDLE_SED), *step("ls", "a.py")], 0.0),
        ([*step("a", REFUSED), *step("b", REFUSED), *step("c", REFUSED), *step("d", REFUSED)], 0.9),
        ([NAMED, NAMED, NAMED], 0.7),
        ([NAMED, NAMED, *step("ls", "a.py"), NAMED], 0.0),
        ([PromptMessage(role="assistant", content="Words."), PromptMessage(role="assistant", content="Words.")], 0.0),
    ],
)
def test_a_step_that_brings_the_same_again_is_one_that_came_to_nothing(
    said: list[PromptMessage], temperature: float
) -> None:
    assert choose_temperature([ASKED, *said]) == temperature

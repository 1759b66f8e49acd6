"""Slash commands in general."""

import pytest

from ollm.domain.errors import BusyError, UsageError
from ollm.runtime.commands import run_command
from ollm.runtime.commands.base import fence_text, render_table
from ollm.runtime.commands.mcp import parse_pairs
from tests.runtime.talking import Talking


@pytest.mark.parametrize(
    "line",
    ["/mode wild", "/approval maybe", "/context dance", "/context size 7", "/goal dance x", "/todos dance",
     "/memory dance", "/undo maybe", "/history wild", "/export", "/plan dance", "/trust maybe", "/expand 99", "/expand", "/expand nowhere to be found", "/nonsense"],
)  # fmt: skip
async def test_a_wrong_use_is_told_with_the_right_one(talking: Talking, line: str) -> None:
    async with talking() as talk:
        with pytest.raises(Exception, match=r"/|session"):
            await talk.run(line)


@pytest.mark.parametrize(("text", "fence"), [("a", "~~~"), ("~~~", "~~~~"), ("a ~~~~~ b ~~", "~~~~~~")])
def test_a_fence_is_longer_than_any_in_the_text(text: str, fence: str) -> None:
    assert fence_text(text, "diff") == f"{fence}diff\n{text}\n{fence}"


def test_cells_cannot_break_a_table() -> None:
    assert render_table(("a", "b"), [("x|y", "1\n2")]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |"
    assert render_table(("a",), []) == "| a |\n| --- |"


async def test_an_unknown_command_is_told_with_the_nearest_and_a_busy_one_waits(talking: Talking) -> None:
    async with talking() as talk:
        with pytest.raises(UsageError, match="Unknown command /hlep") as told:
            await talk.run("/hlep")
        assert told.value.action == "Did you mean /help?"
        with pytest.raises(UsageError) as told:
            await talk.run("/zzzzqqq")
        assert told.value.action == "See /help for all commands."
        parts = talk.conversation.parts
        with pytest.raises(BusyError, match="/compact waits until the model is done"):
            await run_command(parts, "compact", "", busy=True)
        assert (await run_command(parts, "help", "", busy=True)).ok


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("a=1 b=2", {"a": "1", "b": "2"}),
        ("a='two words' b=", {"a": "two words", "b": ""}),
        ("a=b=c", {"a": "b=c"}),
    ],
)
def test_arguments_of_a_prompt_are_pairs_quoted_as_in_a_shell(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs(text) == pairs


@pytest.mark.parametrize(("text", "told"), [("a", "no argument to go to"), ("a='x", "The arguments cannot be read: ")])
def test_other_arguments_are_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_pairs(text)

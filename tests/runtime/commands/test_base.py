"""What a slash command is."""

from typing import Any

import pytest

from ollm.domain.errors import BusyError, UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.commands import build_command_table, run_command
from ollm.runtime.commands.base import (
    CommandTable,
    fence_text,
    make_usage_error,
    parse_number,
    render_options,
    render_table,
    split_subcommand,
    split_words,
)
from tests.runtime.talking import Talking


@pytest.mark.parametrize(
    "line",
    ["/mode wild", "/approval maybe", "/context dance", "/context size 7", "/rewind", "/goal dance x", "/todos dance",
     "/memory dance", "/undo maybe", "/history wild", "/export", "/plan dance", "/trust maybe", "/expand 99", "/expand", "/expand nowhere to be found", "/nonsense"],
)  # fmt: skip
async def test_a_wrong_use_is_told_with_the_right_one(talking: Talking, line: str) -> None:
    async with talking() as talk:
        with pytest.raises(Exception, match=r"/|session"):
            await talk.run(line)


@pytest.mark.parametrize(
    ("text", "most", "words"),
    [("", 2, []), ("  ", 2, []), ("a", 2, ["a"]), ("a  b c ", 2, ["a", "b c "]), ("a b c", 3, ["a", "b", "c"])],
)
def test_the_last_word_holds_all_that_follows(text: str, most: int, words: list[str]) -> None:
    assert split_words(text, most) == words


def test_a_usage_error_says_the_right_use() -> None:
    assert str(make_usage_error("new", "")).startswith("Usage: /new.")
    assert str(make_usage_error("mode", "NAME")).startswith("Usage: /mode NAME.")


@pytest.mark.parametrize(("text", "fence"), [("a", "~~~"), ("~~~", "~~~~"), ("a ~~~~~ b ~~", "~~~~~~")])
def test_a_fence_is_longer_than_any_in_the_text(text: str, fence: str) -> None:
    assert fence_text(text, "diff") == f"{fence}diff\n{text}\n{fence}"


def test_cells_cannot_break_a_table() -> None:
    assert render_table(("a", "b"), [("x|y", "1\n2")]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |"
    assert render_table(("a",), []) == "| a |\n| --- |"


async def test_commands_are_kept_by_name_and_listed_in_order() -> None:
    table = CommandTable()

    async def do_b(conversation: Any, arguments: str) -> CommandReply:
        return CommandReply(text=arguments)

    table.register("b", "Do b.", usage="[X]", more="more", during_turn=True)(do_b)
    table.register("a", "Do a.")(do_b)

    assert [command.name for command in table.list_all()] == ["a", "b"]
    found = table.get("b")
    assert found is not None
    assert (found.help, found.usage, found.more, found.during_turn) == ("Do b.", "[X]", "more", True)
    assert (await found.run(None, "x")).text == "x"  # type: ignore[arg-type]
    assert table.get("c") is None
    first = table.get("a")
    assert first is not None
    assert (first.usage, first.more, first.during_turn) == ("", "", False)


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


def test_which_commands_run_while_a_turn_does() -> None:
    during = {command.name for command in build_command_table().list_all() if command.during_turn}

    assert during == {
        *("agents", "approval", "copy", "diff", "exit", "expand", "export", "help", "history", "permissions"),
        *("plan", "quit", "skills", "status", "tools"),
    }


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("7", 7),
        ("0", 0),
        ("999999999", 999_999_999),
        ("1234567890", None),
        ("²", None),
        ("٣", None),
        ("-1", None),
        ("", None),
    ],
)
def test_a_number_is_a_few_plain_digits(word: str, number: int | None) -> None:
    assert parse_number(word) == number


def test_arguments_are_split_into_words() -> None:
    assert split_words("", 2) == []
    assert split_words(" a  b c ", 2) == ["a", "b c "]
    assert [split_subcommand(text) for text in ("", "a", "a b c")] == [("", ""), ("a", ""), ("a", "b c")]
    assert fence_text("a") == "~~~\na\n~~~"
    assert fence_text("~~~~", "x") == "~~~~~x\n~~~~\n~~~~~"


@pytest.mark.parametrize(("text", "fence"), [("x", 3), ("", 3), ("~~", 3), ("a ~~~ b", 4), ("~~~~~\n~~", 6)])
def test_a_block_is_fenced_by_more_than_it_holds(text: str, fence: int) -> None:
    assert fence_text(text, "diff") == f"{'~' * fence}diff\n{text}\n{'~' * fence}"


def test_the_words_a_command_takes_are_a_list_with_their_meanings() -> None:
    assert render_options({"on": "always", "off": "never"}) == "- `on`: always\n- `off`: never"

"""What is offered while somebody types: commands after a slash, files after an @."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from ollm.cli.screen.completion import MAX_COMPLETIONS, ChatCompleter

COMMANDS = [("model", "Choose the model."), ("mode", "Choose the mode."), ("help", "List commands.")]
FILES = ["src/a.py", "two words.md", "odd@name.txt", "tab\tbed.txt"]


def complete(text: str, files: list[str] = FILES) -> list[tuple[str, int]]:
    asked: list[str] = []

    def find(typed: str) -> list[str]:
        asked.append(typed)
        return files

    completer = ChatCompleter(lambda: COMMANDS, find)
    return [(found.text, found.start_position) for found in completer.get_completions(Document(text), CompleteEvent())]


def test_commands_are_completed_by_their_beginning() -> None:
    assert complete("/mod") == [("model", -3), ("mode", -3)]
    assert complete("/") == [("model", 0), ("mode", 0), ("help", 0)]
    assert complete("/x") == []


def test_a_command_is_shown_with_its_slash_and_its_help() -> None:
    (found,) = ChatCompleter(lambda: COMMANDS, lambda _: []).get_completions(Document("/he"), CompleteEvent())

    assert found.display_text == "/help"
    assert found.display_meta_text == "List commands."


@pytest.mark.parametrize("text", ["/mode x", "/mo\nx", "say /mo", "mail me@a", "no at all", "@a b", "@a\tb", "@a\nb"])
def test_nothing_is_completed_where_no_command_and_no_file_is_meant(text: str) -> None:
    assert complete(text) == []


@pytest.mark.parametrize("text", ["@wo", "see @wo", "(@wo", "x\n@wo", "x\t@wo", "a@b @wo"])
def test_files_are_completed_after_an_at_that_begins_a_word(text: str) -> None:
    assert complete(text) == [
        ("src/a.py", -2),
        ('"two words.md"', -2),
        ('"odd@name.txt"', -2),
        ('"tab\tbed.txt"', -2),
    ]


def test_a_command_with_an_argument_may_name_a_file() -> None:
    assert complete("/init @") == [(FILES[0], 0), *((f'"{name}"', 0) for name in FILES[1:])]


def test_only_so_many_files_are_offered() -> None:
    assert len(complete("@", [f"{n}" for n in range(50)])) == MAX_COMPLETIONS == 12

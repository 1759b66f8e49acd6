"""The table of commands, against the commands themselves."""

from importlib import import_module

import click
import pytest

from ollm.cli.command_table import COMMANDS, DEFAULT_SUBCOMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_is_a_command_with_its_own_name_and_a_sentence(name: str) -> None:
    place, text = COMMANDS[name]
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)

    assert isinstance(found, click.Command)
    assert found.name == name
    assert text[0].isupper()
    assert text.endswith(".")


@pytest.mark.parametrize("name", DEFAULT_SUBCOMMANDS)
def test_what_a_group_does_alone_is_one_of_its_commands_that_changes_nothing(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    group = getattr(import_module(module), attribute)

    assert DEFAULT_SUBCOMMANDS[name] in group.list_commands(click.Context(group))
    assert DEFAULT_SUBCOMMANDS[name] in ("list", "show", "check", "status")

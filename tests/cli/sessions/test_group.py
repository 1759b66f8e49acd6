"""`ollm sessions`: its commands, each with the line of help that the command itself gives."""

import click
import pytest

from ollm.cli.sessions.group import COMMANDS, sessions
from tests.cli.inside import Inside


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_family_is_there(name: str) -> None:
    assert isinstance(sessions, click.Group)
    found = sessions.get_command(click.Context(sessions), name)

    assert found is not None
    assert found.name == name
    assert found.help


def test_help_lists_them_and_says_what_an_id_is(inside: Inside) -> None:
    shown = inside.read("sessions", "--help")

    assert "ID is a session id or a prefix of at least 4 characters." in shown
    assert all(f"\n  {name}" in shown for name in COMMANDS)


def test_a_command_that_is_not_there_is_said(inside: Inside) -> None:
    assert "unknown command 'lst'; did you mean list?" in inside.fail("sessions", "lst", code=2)
    assert "unknown command 'xyzzy'; available: list, view, " in inside.fail("sessions", "xyzzy", code=2)

"""A group of commands that imports one at a time."""

import subprocess
import sys

import click
import pytest

from ollm.cli.lazy_group import LazyGroup

TABLE = {
    "redact": ("ollm.cli.redact:redact", "Redact secrets."),
    "trust": ("ollm.cli.trust:trust", "Trust a workspace."),
}


@pytest.fixture
def group() -> LazyGroup:
    return LazyGroup("test", table=TABLE)


def test_the_names_stand_in_the_order_of_the_table(group: LazyGroup) -> None:
    assert group.list_commands(click.Context(group)) == ["redact", "trust"]


def test_a_command_is_found_by_its_name_and_a_wrong_name_is_nothing(group: LazyGroup) -> None:
    context = click.Context(group)
    found = group.get_command(context, "trust")

    assert found is not None
    assert found.name == "trust"
    assert group.get_command(context, "trus") is None


def test_help_shows_the_lines_of_the_table_without_importing_a_command() -> None:
    code = (
        "import sys, click\n"
        "from ollm.cli.lazy_group import LazyGroup\n"
        "group = LazyGroup('test', table={'redact': ('ollm.cli.redact:redact', 'Redact secrets.')})\n"
        "print(group.get_help(click.Context(group)))\n"
        "assert 'ollm.cli.redact' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Commands:\n  redact  Redact secrets.\n" in done.stdout

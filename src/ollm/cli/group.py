"""The lazy command group: a family's module is imported when that family is called, not before."""

from __future__ import annotations

from importlib import import_module

import click

from ollm.cli.main import FAMILIES


class LazyGroup(click.Group):
    """Knows the names of all families, imports one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(FAMILIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in FAMILIES:
            return None
        module, _, attribute = FAMILIES[cmd_name].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found


@click.command(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """A terminal coding agent for the models you host yourself."""

"""`ollm chat` and `ollm -p` as click commands: the same conversation, with a screen or without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ollm.cli.chat_options import OPTIONS, ChatOption
from ollm.cli.completers import complete_model, complete_session

COMPLETERS = {"session": complete_session, "model": complete_model}


def _add_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = _make_option(option)(command)
    return command


def _make_option(option: ChatOption) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    names = (*option.names, option.destination)
    complete = COMPLETERS.get(option.destination)
    if option.kind == "flag":
        return click.option(*names, is_flag=True, help=option.help)
    kind = (
        click.Choice(option.choices)
        if option.choices
        else click.Path(path_type=Path)
        if option.kind == "path"
        else None
    )
    if option.kind == "optional":
        return click.option(
            *names, is_flag=False, flag_value="", metavar=option.metavar, help=option.help, shell_complete=complete
        )
    return click.option(
        *names,
        type=kind,
        multiple=option.kind == "many",
        default=option.default,
        metavar=option.metavar,
        help=option.help,
        shell_complete=complete,
    )


@click.command()
@click.argument("text", metavar="[TEXT]", required=False)
@_add_options
def chat(**options: Any) -> int:
    """Chat about the current project.

    TEXT is your first message. With -p TEXT ollm answers once and exits; piped input is attached to TEXT.
    """
    from ollm.cli.chat_command import run_chat

    return run_chat(options)

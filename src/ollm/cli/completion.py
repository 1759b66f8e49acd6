"""`ollm completion SHELL`: the script that teaches a shell to complete `ollm`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

FISH_HELP_FIX = ('string split ","', 'string split --max 1 ","')  # fish would show help only up to its first comma


@click.command(short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for SHELL.

    bash: add `eval "$(ollm completion bash)"` to ~/.bashrc. zsh: the same with zsh in ~/.zshrc. fish: `ollm completion
    fish > ~/.config/fish/completions/ollm.fish`.
    """
    from ollm.cli.commands import command

    found = get_completion_class(shell)
    assert found is not None
    script = found(command, {}, "ollm", "_OLLM_COMPLETE").source()
    print(script.replace(*FISH_HELP_FIX))

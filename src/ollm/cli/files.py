"""`ollm files`: the files the agent sees, why one is hidden, and an outline of the code (S6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ollm.cli.file_list import open_files, show_files
from ollm.cli.options import print_result, shared_options
from ollm.domain.errors import OllmError
from ollm.domain.messages import ToolCall
from ollm.system.install_command import describe_extra_install
from ollm.system.terminal_text import clean_lines, make_printable

tokens_option = click.option(
    "--tokens", metavar="N", type=click.IntRange(min=1), help="Maximum tokens (default: codeMap.maxTokens)."
)


@click.command("outline")
@click.argument("path")
@tokens_option
@shared_options("workspace", "json")
def show_outline(path: str, tokens: int | None, workspace: Path, as_json: bool) -> None:
    """Show the classes and functions of the file PATH with their line numbers; of a directory, its map."""
    _run_outline(path, tokens, workspace, as_json=as_json)


@click.command("map")
@click.argument("directory", metavar="[DIR]", default=".")
@tokens_option
@shared_options("workspace", "json")
def show_map(directory: str, tokens: int | None, workspace: Path, as_json: bool) -> None:
    """Show the definitions in DIR (default: the workspace) that other files use most, within a budget of tokens."""
    _run_outline(directory, tokens, workspace, as_json=as_json)


def _run_outline(path: str, tokens: int | None, workspace: Path, *, as_json: bool) -> None:
    """Run the outline tool under a model call's policy and limits. Confirmations count as given."""
    import asyncio

    from ollm.app.toolbox import run_tool_call
    from ollm.runtime.base import ConversationOptions
    from ollm.services.code_map.syntax_tree import is_available

    if not is_available():
        raise OllmError("Outlines and maps need the extra `code`.", action=describe_extra_install("code"))
    options = ConversationOptions(
        workspace=workspace,
        grants=("outline",),
        yes=True,
        one_shot=True,
        flags={"tools": {"output": {"maxChars": 10_000_000, "maxLines": 1_000_000}}},
    )
    call = ToolCall(id="c1", name="outline", arguments={"path": path, **({"maxTokens": tokens} if tokens else {})})
    record = asyncio.run(run_tool_call(options, call, lambda _event: None))
    if record.error is not None:
        raise OllmError(record.error.message, action=_advise(record.error.type, path, options.workspace))
    text = record.result.llm_content if record.result else ""
    print_result({"path": path, "text": text}, clean_lines(text), as_json=as_json)


def _advise(kind: str, path: str, workspace: Path) -> str:
    if kind not in ("Denied", "OutsideWorkspace"):
        return ""
    if (workspace / path).resolve().is_relative_to(workspace.resolve()):
        return "Open it yourself: files that may hold secrets are not outlined."
    return "Name the directory it is in with --workspace."


CODE_COMMANDS = {"outline": show_outline, "map": show_map}  # To list a directory of that name, write `map/`.


class FilesCommand(click.Command):
    """Lists files, unless its first word is one of the commands about code."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in CODE_COMMANDS:
            return CODE_COMMANDS[args[0]].make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=FilesCommand)
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--explain", metavar="PATH", help="Show which rule includes or hides PATH.")
@shared_options("workspace", "json")
def files(patterns: tuple[str, ...], explain: str | None, workspace: Path, as_json: bool) -> None:
    """List the files the agent can see, after ignore rules. A PATTERN is a glob or a directory.

    \b
    ollm files outline PATH    show what a file defines, with line numbers
    ollm files map [DIR]       show the definitions that other files use most
    """
    if explain is None:
        show_files(workspace, patterns, as_json=as_json)
        return
    import asyncio

    with open_files(workspace) as discovery:
        why = asyncio.run(discovery.explain(str(workspace), explain))
    shown = "shown" if why.shown else "not shown"
    print_result(why, f"{make_printable(explain)} is {shown}: {make_printable(why.reason)}.", as_json=as_json)

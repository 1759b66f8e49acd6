"""`ollm files`: the files as the agent sees them, and why one is or is not there (S6)."""

from __future__ import annotations

from typing import Any

import click

from ollm.cli.options import json_option, print_json, resolve_workspace, workspace_option
from ollm.cli.quick_list import CODE_COMMANDS
from ollm.domain.errors import ToolFailure, UsageError
from ollm.system.terminal_text import make_printable


class FilesCommand(click.Command):
    """Lists files, unless its first word is one of the commands about code."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in CODE_COMMANDS:
            from ollm.cli import code_map

            command: click.Command = getattr(code_map, f"show_{args[0]}")
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=FilesCommand)
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--explain", metavar="PATH", help="Show which rule includes or hides PATH.")
@click.option("--ignored", is_flag=True, help="Print which of these paths are ignored, or the patterns.")
@workspace_option
@json_option
def files(patterns: tuple[str, ...], explain: str | None, ignored: bool, workspace: str | None, as_json: bool) -> None:
    """List the files the agent can see, after ignore rules. A PATTERN is a glob or a directory.

    \b
    ollm files outline PATH    show what a file defines, with line numbers
    ollm files map [DIR]       show the definitions that other files use most
    """
    from ollm.cli.file_list import show_files

    if explain is not None:
        _explain_path(explain, workspace, as_json=as_json)
    elif ignored:
        _show_ignored(patterns, workspace, as_json=as_json)
    else:
        show_files(patterns, workspace, as_json=as_json)


def _explain_path(path: str, workspace: str | None, *, as_json: bool) -> None:
    import asyncio

    from ollm.app import ProcessScope, WorkspaceScope

    root = resolve_workspace(workspace)
    scope = WorkspaceScope(ProcessScope(workspace=root), root)
    try:
        said = asyncio.run(scope.discovery.explain(str(root), path))
    except ToolFailure as failure:
        raise UsageError(failure.message) from failure
    finally:
        scope.close()
    if as_json:
        print_json(said)
    else:
        print(f"{make_printable(path)} is {'shown' if said.shown else 'not shown'}: {make_printable(said.reason)}.")


def _show_ignored(paths: tuple[str, ...], workspace: str | None, *, as_json: bool) -> None:
    """As `git check-ignore`, with all of our rules: paths are taken from the workspace."""
    import asyncio
    import os

    from ollm.app import ProcessScope, WorkspaceScope

    root = resolve_workspace(workspace)
    scope = WorkspaceScope(ProcessScope(workspace=root), root)
    try:
        rules = asyncio.run(scope.discovery.load_ignore_patterns(str(root)))
        places = {path: os.path.normpath(root / path) for path in paths}
        inside = [path for path in paths if places[path].startswith(f"{root}{os.sep}")]
        found = [path for path in inside if scope.discovery.should_ignore(places[path], rules)] if paths else rules
    finally:
        scope.close()
    if as_json:
        print_json(list(found))
    else:
        print("".join(f"{make_printable(line)}\n" for line in found), end="")

"""`ollm -w NAME` and `ollm worktree`: sessions in git worktrees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from ollm.app.process import ProcessScope
from ollm.app.worktrees import WorktreeManager, find_session_folder
from ollm.cli.options import confirm_or_fail, format_table, print_result, shared_options, warn
from ollm.cli.start import ChatArguments
from ollm.services.worktrees import Ending
from ollm.system.terminal_text import clean_lines, make_printable


def choose_folder(start: ChatArguments, name: str | None) -> ChatArguments:
    """Move a chat into the worktree of this name, or into the folder that its session works in."""
    process = ProcessScope(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
    if name is not None:
        folder = asyncio.run(WorktreeManager(process, start.workspace, warn).open(name))
    else:
        folder = find_session_folder(process, start.workspace, start.session or "")
    return msgspec.structs.replace(start, workspace=folder)


def describe_kept(process: ProcessScope, workspace: Path) -> str:
    manager = WorktreeManager(process, workspace)
    found = manager.find_current()
    if found is None:
        return ""
    name, changes = found.name, manager.worktrees.describe(found)
    return f"Worktree {name} is kept ({changes}).\nFinish with: ollm worktree merge {name} (or drop)"


@click.group()
def worktree() -> None:
    """List, merge and drop the git worktrees of `ollm -w NAME`."""


@worktree.command("list")
@shared_options("workspace", "json")
def list_worktrees(workspace: Path, as_json: bool) -> None:
    """List the worktrees of this repository with their changes."""
    manager = WorktreeManager(ProcessScope(workspace=workspace), workspace)
    found = [(one.name, manager.worktrees.describe(one), str(one.path)) for one in manager.worktrees.list_named()]
    document: list[dict[str, Any]] = [dict(zip(("name", "changes", "path"), one, strict=True)) for one in found]
    print_result(document, format_table(("worktree", "changes", "folder"), found, "No worktrees."), as_json=as_json)


@worktree.command()
@click.argument("name")
@shared_options("workspace", "yes")
def merge(name: str, workspace: Path, yes: bool) -> None:
    """Merge a worktree into the current branch, and remove it. On a conflict nothing is merged."""
    _finish(workspace, name, "merge", yes)


@worktree.command()
@click.argument("name")
@shared_options("workspace", "yes")
def drop(name: str, workspace: Path, yes: bool) -> None:
    """Remove a worktree and its branch. Its work stays reachable by the commit that is shown."""
    _finish(workspace, name, "drop", yes)


def _finish(workspace: Path, name: str, ending: Ending, yes: bool) -> None:
    manager = WorktreeManager(ProcessScope(workspace=workspace), workspace)
    found = manager.worktrees.get(name)
    if question := manager.worktrees.find_question(found, ending):
        confirm_or_fail(make_printable(question), yes)
    print(clean_lines(manager.finish(found, ending)))

"""`ollm -w NAME` and `ollm worktree`: sessions in git worktrees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from ollm.app import ProcessScope
from ollm.app.worktrees import WorktreeManager, find_session_folder
from ollm.cli.options import (
    confirm_or_fail,
    format_table,
    json_option,
    print_result,
    resolve_workspace,
    warn,
    workspace_option,
    yes_option,
)
from ollm.cli.start import ChatArguments


def choose_folder(start: ChatArguments, name: str | None) -> ChatArguments:
    """Move a chat into the worktree of this name, or into the folder that its session works in."""
    process = ProcessScope(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
    if name is not None:
        folder = asyncio.run(WorktreeManager(process, start.workspace, warn).open(name))
    else:
        folder = find_session_folder(process, start.workspace, start.session or "")
    return msgspec.structs.replace(start, workspace=folder)


def describe_kept(process: ProcessScope, workspace: Path) -> str:
    """Describe the worktree that a chat leaves behind, and the commands that finish it."""
    manager = WorktreeManager(process, workspace)
    found = manager.find_current()
    if found is None:
        return ""
    finish = " · ".join(f"{ending}: ollm worktree {ending} {found.name}" for ending in ("merge", "drop"))
    return f"Worktree {found.name} is kept ({manager.describe(found)}).\nContinue: ollm -w {found.name} -c · {finish}"


def finish_worktree(process: ProcessScope, workspace: Path, ending: Literal["merge", "drop"], name: str | None) -> str:
    """Merge or drop the worktree of this name, or the one around the workspace, and return a sentence."""
    manager = WorktreeManager(process, workspace)
    found = manager.worktrees.get(name) if name else manager.find_current()
    assert found
    return manager.finish(found, ending)


@click.group()
def worktree() -> None:
    """List, merge and drop the git worktrees of `ollm -w NAME`."""


def _open_manager(workspace: str | None) -> WorktreeManager:
    place = resolve_workspace(workspace)
    return WorktreeManager(ProcessScope(workspace=place), place)


@worktree.command("list")
@workspace_option
@json_option
def list_worktrees(workspace: str | None, as_json: bool) -> None:
    """List the worktrees of this repository with their changes."""
    manager = _open_manager(workspace)
    found = [(one.name, manager.describe(one), str(one.path)) for one in manager.worktrees.list_named()]
    document: list[dict[str, Any]] = [dict(zip(("name", "changes", "path"), one, strict=True)) for one in found]
    print_result(document, format_table(("worktree", "changes", "folder"), found, "No worktrees."), as_json=as_json)


@worktree.command()
@click.argument("name")
@workspace_option
def merge(name: str, workspace: str | None) -> None:
    """Merge a worktree into the current branch, and remove it. On a conflict nothing is merged."""
    manager = _open_manager(workspace)
    print(manager.finish(manager.worktrees.get(name), "merge"))


@worktree.command()
@click.argument("name")
@workspace_option
@yes_option
def drop(name: str, workspace: str | None, yes: bool) -> None:
    """Remove a worktree and its branch. Its work stays reachable by the commit that is shown."""
    manager = _open_manager(workspace)
    found = manager.worktrees.get(name)
    confirm_or_fail(f"Drop the worktree {name} ({manager.describe(found)})? Ignored files in it are deleted.", yes)
    print(manager.finish(found, "drop"))

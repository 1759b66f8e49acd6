"""Where git keeps a workspace's repository, its own `.git` or that of a linked worktree. Standard library only."""

from __future__ import annotations

import os

from ollm.system.sandbox.box import is_inside


def find_git_directories(workspace: str) -> list[str]:
    """The directories in which git keeps this workspace's repository: its `.git`; for a linked worktree also what
    belongs to it elsewhere, if that names this workspace in turn (a file alone proves nothing)."""
    dot_git = os.path.join(workspace, ".git")
    if os.path.islink(dot_git):
        return []
    if os.path.isdir(dot_git):
        return [dot_git]
    private = _read_line(dot_git).removeprefix("gitdir: ")
    private = os.path.realpath(os.path.join(workspace, private)) if private else ""
    if not private or os.path.realpath(_read_line(os.path.join(private, "gitdir")) or "/") != dot_git:
        return []
    common = os.path.realpath(os.path.join(private, _read_line(os.path.join(private, "commondir")) or "."))
    return [common] if is_inside(private, common) else []


def _read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).rstrip("\n")
    except OSError:
        return ""

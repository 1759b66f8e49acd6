"""Finds the git repository of a workspace, its submodules and its linked worktrees. Standard library only."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ollm.system.atomic import read_small_file
from ollm.system.path_names import follow_dot_git, is_inside, list_names, read_pointer

SETTINGS_NAMES = ("config", "config.worktree")
_WORKTREE = re.compile(rb"(?mi)^[ \t]*worktree[ \t]*=[ \t]*\"?([^\"\r\n]+)")


class Repository(NamedTuple):
    """A work tree, and the directories of its repository: `git` is its own, `common` is shared by all work trees.
    `outer` is the repository of the workspace, for a submodule or a worktree in it."""

    top: str
    git: str
    common: str
    outer: Repository | None = None

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.git, self.common)))


class NoRepository(Exception):  # noqa: N818 - an answer, not a fault
    """Git lines do not work in a folder. The text is the reason, or "" if there is no repository of the workspace."""


def find_repository(directory: str, workspace: str, home: str) -> Repository:
    """Return the repository that a git line changes in a directory: the workspace's own, the one around it, or one of
    its submodules and worktrees. Raises NoRepository."""
    top = directory
    while not os.path.lexists(os.path.join(top, ".git")):
        if top == (top := os.path.dirname(top)):
            raise NoRepository
    if top != workspace and is_inside(top, workspace):
        return _find_inner(top, find_repository(workspace, workspace, home))
    if is_inside(home, top):
        raise NoRepository(f"the root of the repository, {top}, is your home directory or contains it")
    dot_git = os.path.join(top, ".git")
    git, common = follow_dot_git(dot_git)
    if os.path.islink(dot_git) and not is_inside(git, top):
        raise NoRepository(f"{dot_git} is a link that leads out of the repository")
    if not os.path.lexists(os.path.join(git, "HEAD")):
        raise NoRepository(f"{dot_git} is not a git repository")
    if not (is_inside(common, top) and is_inside(git, common)) and not _points_back(git, common, dot_git):
        raise NoRepository(f"{dot_git} names {git}, which does not name it in turn")
    found = Repository(top, git, common)
    if top != workspace and (foreign := find_foreign_owner(found)):
        raise NoRepository(f"{foreign}, a part of the repository around the workspace, belongs to another user")
    return found


def _find_inner(top: str, outer: Repository) -> Repository:
    dot_git = os.path.join(top, ".git")
    git, common = follow_dot_git(dot_git)
    if not os.path.isfile(dot_git) or not is_inside(git, outer.common) or not _points_back(git, common, dot_git):
        raise NoRepository
    return Repository(top, git, common, outer)


def _points_back(git: str, common: str, dot_git: str) -> bool:
    """Return True if the directory of a linked worktree or a submodule names the `.git` that names it."""
    if os.path.dirname(git) == os.path.join(common, "worktrees"):
        return os.path.realpath(os.path.join(git, read_pointer(os.path.join(git, "gitdir")) or "/")) == dot_git
    return git == common and find_work_tree(git) == os.path.dirname(dot_git)


def find_work_tree(git: str) -> str:
    """Return the work tree that the settings of a submodule's git directory name, or ""."""
    try:
        named = _WORKTREE.search(read_small_file(os.path.join(git, "config")))
    except OSError:
        return ""
    return os.path.realpath(os.path.join(git, os.fsdecode(named[1]).strip())) if named else ""


def find_foreign_owner(repository: Repository) -> str:
    """Return a path of a repository that belongs to another user, or "". Git refuses such a repository."""
    ours = {os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        ours.add(int(os.environ["SUDO_UID"]))
    paths = (repository.top, os.path.join(repository.top, ".git"), repository.git)
    return next((path for path in paths if os.lstat(path).st_uid not in ours), "")


def list_git_directories(common: str, look: Callable[[str], object] = lambda _: None) -> list[str]:
    """List a git directory and those of the submodules and worktrees in it. A submodule's name may contain slashes.
    `look` is called with each folder before it is read."""
    look(common)
    worktrees = os.path.join(common, "worktrees")
    look(worktrees)
    found = [common, *(os.path.join(worktrees, name) for name in sorted(list_names(worktrees)))]
    waiting = [os.path.join(common, "modules")]
    for place in found[1:]:
        look(place)
    while waiting:
        folder = waiting.pop()
        look(folder)
        if os.path.islink(folder):
            continue
        if os.path.lexists(os.path.join(folder, "HEAD")):
            found += list_git_directories(folder, look)
        else:
            inner = (os.path.join(folder, name) for name in list_names(folder))
            waiting += [path for path in inner if os.path.isdir(path)]
    return found

"""Lists the paths in a workspace that programs outside read or run, although their names do not say so."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ollm.system.sandbox.git_settings import GitNames, list_settings_files, read_names, read_shared_names
from ollm.system.sandbox.names import follow_pointer, is_inside
from ollm.system.sandbox.outside_links import (
    list_home_links,
    list_loaded_files,
    list_named_files,
    list_opened,
    remember,
)
from ollm.system.sandbox.tree_names import TreeNames


class Anchors:
    """The paths below roots that hooks and servers run (`executed`), that git's settings or the environment name, and
    to which links in the home lead. `names` are those of the tree."""

    def __init__(self, roots: tuple[str, ...], executed: Iterable[str], names: TreeNames) -> None:
        self._roots = roots
        self._executed = tuple(executed)
        self._names = names
        self._git_names: dict[str, GitNames] = {}  # by repository; "" for settings that hold in all of them
        self._shared_tops: list[str] = []
        self._named: set[str] = set()

    def read_settings(self) -> None:
        """Read what the settings of git name: those for every repository, and those of each one."""
        home = os.path.expanduser("~")
        self._names.find_steering()
        shared, self._shared_tops, _ = remember(read_shared_names, self._roots, home)
        self._git_names = {"": shared}
        for git in self._names.repositories:
            if os.path.isdir(git) and not os.path.islink(git):
                self._git_names[git] = read_names(list_settings_files(git), home)
        self._named = self._find_named() | list_named_files(self._roots)

    def list_paths(self) -> list[str]:
        """List the paths, those that settings name in new worktrees too, and what Python and the loader load."""
        links = (*list_home_links(self._roots), *list_loaded_files(self._roots))
        files = (path for path in self._named if os.path.islink(path) or not os.path.isdir(path))
        return [*dict.fromkeys((*self._executed, *files, *self._find_named(new=True), *links))]

    def _find_named(self, *, new: bool = False) -> set[str]:
        """Find the paths that the settings name in the worktrees that are there now."""
        tops = {git: self._list_worktrees(git) for git in self._names.repositories}
        tops[""] = [*self._shared_tops, *(top for some in tops.values() for top in some)]
        opened = list_opened(self._roots)
        every = (names.find_paths(tops.get(git, ()), opened, new=new) for git, names in self._git_names.items())
        return {path for paths in every for path in paths}

    def _list_worktrees(self, git: str) -> list[str]:
        leading = [(one, follow_pointer(one) if os.path.isfile(one) else one) for one in self._names.repositories]
        tops = [os.path.dirname(one) for one, place in leading if is_inside(place, git)]
        return [*tops, *([] if os.path.basename(git) == ".git" else [git])]

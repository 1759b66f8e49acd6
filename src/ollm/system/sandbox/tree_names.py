"""Finds the files that steer tools in a tree by their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ollm.system.folders import FolderMemory, FolderNames
from ollm.system.sandbox.names import (
    GIT_MARKS,
    GIT_NESTED,
    GITHUB_STEERING_NAMES,
    HEADLESS_PARTS,
    PACKAGE_FOLDERS,
    find_repositories,
    is_environment_file,
    is_git_data,
    is_git_operation,
    is_in_any,
    is_nested_repository,
    normalize_name,
    read_pointer,
    steers_by_name,
)


class FolderFindings(NamedTuple):
    """The relevant paths in one folder, and the names among which they were found."""

    names: FolderNames
    folders: list[str]
    steering: list[str]
    environment: list[str]
    repositories: list[str]
    packages: list[str]


class TreeNames:
    """Finds the files that steer tools, and the `.env` files, among the names in folders. Only changed folders are
    searched again; links are not followed."""

    def __init__(self, roots: Iterable[str], folders: FolderMemory, unlock: Callable[[str], None]) -> None:
        self._roots = tuple(roots)
        self._folders = folders
        self._unlock = unlock
        self._known: dict[str, FolderFindings] = {}
        self._state: object = None
        self.repositories: list[str] = []
        self._steering: list[str] = []
        self.git_directories: list[str] = []  # those of submodules and worktrees too
        self.git_parts: dict[str, list[str]] = {}  # by repository: what is not on the allow-list
        self.git_links: list[str] = []  # on the allow-list by name, and neither files nor folders
        self.operations: list[str] = []  # of git, in progress
        self.environment: list[str] = []
        self.packages: list[str] = []  # folders of installed ones, which are not searched
        self._in_packages: list[str] = []

    def add_repositories(self, in_packages: list[str]) -> None:
        """Search these repositories too, which lie in folders of packages: git follows links in an index to them."""
        if in_packages != self._in_packages:
            self._in_packages, self._state = in_packages, None

    def find_steering(self) -> list[str]:
        """Return the outermost files and folders that steer tools, as of the last scan of the folders."""
        if self._state is not self._folders.state:
            self._walk()
        return self._steering

    def _walk(self) -> None:
        self._state = self._folders.state  # before: somebody else may look meanwhile
        known, self._known, self._steering, self.environment, self.packages = self._known, {}, [], [], []
        self.repositories = [root for root in self._roots if os.path.basename(root) == ".git"]  # of a linked worktree
        waiting = [root for root in self._roots if os.path.basename(root) != ".git"]
        while waiting:
            folder = waiting.pop()
            names, found = self._folders.read(folder), known.get(folder)
            if isinstance(names.failure, PermissionError):
                names = self._enter(folder)
            if found is None or found.names is not names:
                found = self._sort_names(folder, names)
                if found.steering or found.repositories:
                    self._unlock(folder)
            self._known[folder] = found
            waiting += found.folders
            self._steering += found.steering
            self.environment += found.environment
            self.repositories += found.repositories
            self.packages += found.packages
        self.git_directories, self.git_parts, self.git_links, self.operations = [], {}, [], []
        self.repositories += self._in_packages
        for git in self.repositories:
            self.git_parts[git] = [git] if os.path.islink(git) or not os.path.isdir(git) else self._search(git)
            self._steering += self.git_parts[git]

    def _enter(self, folder: str) -> FolderNames:
        self._unlock(folder)
        return self._folders.read(folder)

    def _search(self, git: str) -> list[str]:
        """Search a git directory, with those of its submodules and worktrees. Return what is not on the allow-list."""
        first = self._enter(git)
        if os.path.basename(git) != ".git" and "HEAD" not in (*first.files, *first.others):
            return [os.path.join(git, name) for name in HEADLESS_PARTS if name in {*first.files, *first.folders}]
        found: list[str] = []
        waiting = [(git, "")]
        for top, below in waiting:  # grows
            folder = os.path.join(top, below) if below else top
            names = self._enter(folder)
            nested = below in GIT_NESTED
            if not below and not (nested := top != git and not is_nested_repository({*names.files, *names.folders})):
                self.git_directories.append(top)
            if nested:  # between repositories: a submodule's name may contain slashes
                found += [os.path.join(folder, name) for name in (*names.files, *names.others)]
                waiting += [(os.path.join(folder, name), "") for name in names.folders]
            else:
                inner = [f"{below}/{name}" if below else name for name in names.folders]
                waiting += [(top, one) for one in inner if one in GIT_NESTED or is_git_data(one, folder=True)]
                found += _find_hidden_repository(folder, names) if below else []
                found += self._sort_git_names(top, f"{below}/" if below else "", names)
        return found

    def _sort_git_names(self, top: str, below: str, names: FolderNames) -> Iterator[str]:
        """Yield what is not on the allow-list in a folder of a git directory, and collect operations and links."""
        for name in (*names.files, *names.folders, *names.others):
            inner, path = below + name, os.path.join(top, below + name)
            data = is_git_data(inner, folder=name in names.folders)
            if name in names.others:
                data = data or is_git_data(inner, folder=True) or is_git_operation(inner)
                self.git_links += [path] if data else []
            elif is_git_operation(inner):
                self.operations.append(path)
                continue
            nested = inner == ".git" or (inner in GIT_NESTED and name in names.folders)
            if not data and not nested and (name not in names.folders or self._holds_something(path)):
                yield path

    def _holds_something(self, folder: str) -> bool:
        """Return True if there is more than empty folders in a folder: `git init` makes one."""
        names = self._enter(folder)
        inner = (os.path.join(folder, name) for name in names.folders)
        return bool(names.files or names.others or names.failure or any(map(self._holds_something, inner)))

    def find_foreign_worktrees(self) -> Iterator[str]:
        """Find what repositories keep for worktrees outside of the roots: the folders of linked ones, which git in a
        sandbox does not see and would remove, and the index and HEAD of the main one."""
        for git in filter(os.path.isdir, self.repositories):
            if os.path.basename(git) == ".git" and not is_in_any(os.path.dirname(git), self._roots):
                yield from filter(os.path.isfile, (os.path.join(git, name) for name in ("index", "HEAD")))
            above = os.path.join(git, "worktrees")
            for folder in (os.path.join(above, name) for name in self._folders.read(above).folders):
                dot_git = os.path.realpath(os.path.join(folder, read_pointer(os.path.join(folder, "gitdir"))))
                if os.path.lexists(dot_git) and not is_in_any(dot_git, self._roots):
                    yield folder

    def _sort_names(self, folder: str, names: FolderNames) -> FolderFindings:
        found = FolderFindings(names, [], [], [], [], [])
        in_github = normalize_name(os.path.basename(folder)) == ".github"
        links, folders = set(names.others), set(names.folders)
        every = {*names.files, *folders, *links}
        found.repositories.extend(find_repositories(folder, every))
        for name in (*names.files, *names.folders, *names.others):
            plain, path = normalize_name(name), os.path.join(folder, name)
            if plain.startswith(".env") and is_environment_file(name):
                found.environment.append(path)
            if (
                steers_by_name(plain)
                or (in_github and plain in GITHUB_STEERING_NAMES)
                or (plain == ".github" and name in links)
            ):
                found.steering.append(path)
            elif name in folders and name != ".git":  # others may only look like it
                (found.packages if name in PACKAGE_FOLDERS else found.folders).append(path)
        return found


def _find_hidden_repository(folder: str, names: FolderNames) -> list[str]:
    """Return what makes a folder among git's data a repository, to which a link or an address may lead."""
    every = {*names.files, *names.folders, *names.others}
    found = find_repositories(folder, every)
    marks = [os.path.join(folder, mark) for mark in GIT_MARKS if mark in every]
    return [*(marks if folder in found else ()), *(path for path in found if path != folder)]

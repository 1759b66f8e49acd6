"""Finds the files that steer tools in a tree by their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ollm.system.folders import FolderMemory, FolderNames
from ollm.system.sandbox.names import (
    GITHUB_STEERING_NAMES,
    INSTALLED_FOLDERS,
    PACKAGE_FOLDERS,
    find_git_links,
    is_environment_file,
    is_repository,
    list_git_parts,
    list_repositories,
    normalize_name,
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
        self.git_links: list[str] = []
        self.environment: list[str] = []
        self.packages: list[str] = []  # folders of installed ones, which are not searched

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
        self.git_links = [link for git in self.repositories for link in self._find_git_links(git)]
        self._steering += [part for git in self.repositories for part in list_git_parts(git, self._enter)]

    def _enter(self, folder: str) -> FolderNames:
        self._unlock(folder)
        return self._folders.read(folder)

    def _find_git_links(self, git: str) -> Iterator[str]:
        """Find the links in a repository. Another folder without a HEAD may only look like one."""
        certain = os.path.basename(git) == ".git" or os.path.lexists(os.path.join(git, "HEAD"))
        if certain and os.path.isdir(git) and not os.path.islink(git):
            for repository in list_repositories(git, self._enter):
                yield from find_git_links(repository, self._enter)

    def _sort_names(self, folder: str, names: FolderNames) -> FolderFindings:
        found = FolderFindings(names, [], [], [], [], [])
        in_github = normalize_name(os.path.basename(folder)) == ".github"
        links, folders = set(names.others), set(names.folders)
        every = {*names.files, *folders, *links}
        if is_repository(every) and ".git" not in every:
            found.repositories.append(folder)
        for name in (*names.files, *names.folders, *names.others):
            plain, path = normalize_name(name), os.path.join(folder, name)
            if plain.startswith(".env") and is_environment_file(name):
                found.environment.append(path)
            if plain == ".git":
                found.repositories.append(path)
            elif (
                steers_by_name(plain)
                or (in_github and plain in GITHUB_STEERING_NAMES)
                or (plain == ".github" and name in links)
            ):
                found.steering.append(path)
            elif name in folders and plain not in INSTALLED_FOLDERS:
                found.folders.append(path)
            elif name in folders and name in PACKAGE_FOLDERS:
                found.packages.append(path)
        return found

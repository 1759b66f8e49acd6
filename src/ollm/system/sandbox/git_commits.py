"""Finds the files that steer tools in what a command has committed or staged. They do not move aside, and git writes
them to the worktree later, when the user switches, merges or rebases."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ollm.system.sandbox.git_settings import ask_repository
from ollm.system.sandbox.names import is_inside, read_regular
from ollm.system.sandbox.outside_links import Visit, get_state, remember
from ollm.system.sandbox.taken import TakenFile

BRANCHES = ("HEAD", "refs/heads/", "refs/stash", "refs/replace/")  # what git writes to a worktree, or reads instead
MAX_REPOSITORIES = 20
EMPTY_TREES = {  # by the length of ids
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
FAILURES = (OSError, subprocess.SubprocessError)
Branches = dict[str, str]  # by name: a commit


class CommittedFile(NamedTuple):
    """A file that is new or different in a branch, a stash or the index; without a name if git cannot tell."""

    where: str
    name: str = ""
    mode: str = ""
    blob: str = ""


class Commits:
    """Compares branches and indexes before and after commands. `tops` are worktrees that the user works in."""

    def __init__(self, tops: Iterable[str]) -> None:
        self._tops = [*tops]
        self._before: dict[str, tuple[Branches, object]] = {}

    def begin(self, gits: Iterable[str]) -> None:
        """Read the state of these git directories, each of which is the `.git` of a worktree."""
        self._before = _read(sorted(gits, key=len)[:MAX_REPOSITORIES])

    def look(self, steers: Callable[[str], bool]) -> list[TakenFile]:
        """Return the paths for which `steers` is true, if since the last look a commit or an index has a version that
        no worktree has. `why` is the branch, or the index."""
        found: list[TakenFile] = []
        for git, (now, index) in _read(self._before).items():
            before, index_before = self._before[git]
            self._before[git] = now, index
            changes = [*_compare_branches(git, before, now)] if now != before else []
            changes += _compare_index(git, now.get("HEAD")) if index != index_before else []
            top = os.path.dirname(git)
            root = next((root for root in self._tops if is_inside(top, root)), top)
            for one in changes:
                path = os.path.join(top, one.name)
                if not one.name or (steers(path) and not self._has(top, one)):
                    found.append(TakenFile(path, root, "", one.where, "committed"))
        return found

    def _has(self, top: str, change: CommittedFile) -> bool:
        """Return True if a worktree has this version of a file."""
        return any(_is_same(os.path.join(folder, change.name), change) for folder in (top, *self._tops))


def _read(gits: Iterable[str]) -> dict[str, tuple[Branches, object]]:
    return {git: (remember(_read_branches, git), get_state(os.path.join(git, "index"))) for git in gits}


def _read_branches(git: str, visit: Visit) -> Branches:
    """Return the branches and stashes that git lists. A command may also write the files of refs in place."""
    stashes = os.path.join(git, "logs/refs/stash")
    for path in (os.path.join(git, "HEAD"), os.path.join(git, "packed-refs"), stashes):
        visit(path)
    for place in (os.path.join(git, "refs"), os.path.join(git, "reftable")):
        visit(place)
        for folder, _, names in os.walk(place):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                visit(path)
    pairs = [line.split(" ", 1) for line in _ask_lines(git, "show-ref", "--head")]
    branches = {name: commit for commit, name in sorted(pairs, reverse=True) if name.startswith(BRANCHES)}
    if os.path.lexists(stashes) or "refs/stash" in branches:
        for line in _ask_lines(git, "log", "-g", "--format=%gd %H %P", "refs/stash"):
            name, commit, *parents = line.split(" ")
            others = {f"{name}^{number}": one for number, one in enumerate(parents[1:], 2)}  # its index, new files
            branches |= {name: commit, **others}
    return branches


def _ask_lines(git: str, *words: str) -> list[str]:
    try:
        return [line for line in os.fsdecode(ask_repository(git, *words)).split("\n") if line]
    except FAILURES:  # or there are none
        return []


def _compare_branches(git: str, before: Branches, now: Branches) -> Iterator[CommittedFile]:
    """Find what is different in commits that no branch had before."""
    seen = {*before.values()}
    for branch, commit in sorted(now.items(), reverse=True):  # HEAD last: it mostly has the commit of a branch
        if commit not in seen:
            seen.add(commit)
            if branch.startswith("refs/replace/"):
                yield CommittedFile(branch)  # of whatever files
                continue
            base = before.get(branch) or before.get("HEAD") or EMPTY_TREES[len(commit)]
            yield from _list_changes(git, branch.removeprefix("refs/heads/"), "diff-tree", base, commit)


def _compare_index(git: str, head: str | None) -> Iterator[CommittedFile]:
    return _list_changes(git, "the index", "diff-index", "--cached", head or EMPTY_TREES[40])


def _list_changes(git: str, where: str, command: str, *words: str) -> Iterator[CommittedFile]:
    try:
        fields = os.fsdecode(ask_repository(git, command, "-r", "-z", "--no-renames", *words)).split("\0")
    except FAILURES:
        yield CommittedFile(where)
        return
    for about, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, _ = about.split(" ")
        if blob.strip("0"):
            yield CommittedFile(where, name, mode, blob)


def _is_same(path: str, change: CommittedFile) -> bool:
    """Return True if the content of a file or link is the one that git has, and can be executed or not like that."""
    try:
        mode = os.lstat(path).st_mode
        data = os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else read_regular(path)
    except OSError:
        return False
    kind = "120000" if stat.S_ISLNK(mode) else "100755" if mode & stat.S_IXUSR else "100644"
    digest = hashlib.new("sha1" if len(change.blob) == 40 else "sha256", b"blob %d\0" % len(data) + data)
    return (kind, digest.hexdigest()) == (change.mode, change.blob)

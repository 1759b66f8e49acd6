"""Finds the files that steer tools in what a command has committed or staged. They do not move aside, and git writes
them to the worktree later, when the user switches, merges or rebases."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator

from ollm.system.sandbox.git_settings import ask_repository
from ollm.system.sandbox.names import read_regular, read_target
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


class Commits:
    """Compares branches and indexes before and after commands. `tops` are worktrees that the user works in."""

    def __init__(self, tops: Iterable[str]) -> None:
        self._tops = [*tops]
        self._before: dict[str, tuple[Branches, object]] = {}

    def begin(self, gits: Iterable[str]) -> None:
        """Read the state of these git directories, each of which is the `.git` of a worktree."""
        self._before = _read(sorted(gits, key=len)[:MAX_REPOSITORIES])

    def look(self, steers: Callable[[str, str], bool]) -> list[TakenFile]:
        """Return the files for which `steers` is true, called with the top of a worktree and a name in it, if since the
        last look commits or an index have versions that no worktree has. `why` is the branch, or the index."""
        found: list[TakenFile] = []
        for git, (now, index) in _read(self._before).items():
            before, index_before = self._before[git]
            self._before[git] = now, index
            changes = [*_compare_branches(git, before, now)] if now != before else []
            changes += _compare_index(git, now.get("HEAD")) if index != index_before else []
            top = os.path.dirname(git)
            new = [one for one in changes if not one[1] or (steers(top, one[1]) and not self._has(top, *one[1:]))]
            found += [TakenFile(os.path.join(top, name), top, "", where, "committed") for where, name, _ in new]
        return found

    def _has(self, top: str, name: str, blob: str) -> bool:
        """Return True if a worktree has this version of a file."""
        return any(_hash_file(os.path.join(folder, name), len(blob)) == blob for folder in (top, *self._tops))


def _read(gits: Iterable[str]) -> dict[str, tuple[Branches, object]]:
    return {git: (remember(_read_branches, git), get_state(os.path.join(git, "index"))) for git in gits}


def _read_branches(git: str, visit: Visit) -> Branches:
    """Return the branches that git lists. A command may also write their files in place."""
    for name in ("HEAD", "packed-refs"):
        visit(os.path.join(git, name))
    for place in ("refs/heads", "refs/replace", "reftable"):
        for folder, _, names in os.walk(os.path.join(git, place)):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                visit(path)
        visit(os.path.join(git, place))
    try:
        pairs = [line.split(" ", 1) for line in os.fsdecode(ask_repository(git, "show-ref", "--head")).splitlines()]
    except FAILURES:  # or there are none
        return {}
    return {name: commit for commit, name in sorted(pairs, reverse=True) if name.startswith(BRANCHES)}


def _compare_branches(git: str, before: Branches, now: Branches) -> Iterator[tuple[str, str, str]]:
    """Yield branch, name and blob of what is different in commits that no branch had before."""
    seen = {*before.values()}
    for branch, commit in sorted(now.items(), reverse=True):  # HEAD last: it mostly has the commit of a branch
        if commit not in seen:
            seen.add(commit)
            base = before.get(branch) or before.get("HEAD") or EMPTY_TREES[len(commit)]
            shown = branch.removeprefix("refs/heads/")
            yield from ((shown, *change) for change in _list_changes(git, "diff-tree", base, commit))


def _compare_index(git: str, head: str | None) -> Iterator[tuple[str, str, str]]:
    yield from (("the index", *one) for one in _list_changes(git, "diff-index", "--cached", head or EMPTY_TREES[40]))


def _list_changes(git: str, command: str, *words: str) -> Iterator[tuple[str, str]]:
    """Yield name and blob of every file that is new or different; no name if git cannot tell."""
    try:
        fields = os.fsdecode(ask_repository(git, command, "-r", "-z", "--no-renames", *words)).split("\0")
    except FAILURES:
        yield "", ""
        return
    for about, name in zip(fields[::2], fields[1::2], strict=False):
        blob = about.split(" ")[3]
        if blob.strip("0"):
            yield name, blob


def _hash_file(path: str, length: int) -> str:
    """Return the id that git gives to the content of a file or to a link, or "" without one."""
    try:
        target = read_target(path)
        data = read_regular(path) if target is None else os.fsencode(target)
    except OSError:
        return ""
    return hashlib.new("sha1" if length == 40 else "sha256", b"blob %d\0" % len(data) + data).hexdigest()

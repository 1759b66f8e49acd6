"""Judges the parts of a git repository that a command made or changed: git in the sandbox keeps working, and because of
them git outside starts no program and uses no file out of the worktree."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress

from ollm.system.sandbox.git_settings import (
    NEW_REPOSITORY_KEYS,
    is_harmless_setting,
    list_settings_files,
    parse_plain_file,
    read_files,
    run_git,
)
from ollm.system.sandbox.names import (
    GIT_SETTINGS_NAMES,
    GIT_STATE_NAMES,
    follow_dot_git,
    follow_pointer,
    has_other_names,
    is_inside,
    list_names,
    list_own_parts,
    list_repositories,
    read_regular,
)
from ollm.system.sandbox.outside_links import Visit, remember

MERGE_STRATEGIES = frozenset("octopus ort ours recursive resolve subtree".split())  # others are programs
REBASE_STEPS = frozenset(
    "pick p reword r edit e squash s fixup f drop d label l merge m reset t noop break b update-ref u".split()
)
_LEADS_OUT = re.compile(rb"(?i)\0/|[\0/](?:\.\.?|\.git)[\0/]")


def is_harmless(
    path: str,
    roots: tuple[str, ...],
    repositories: Sequence[str],
    known: Collection[str],
    used: Collection[str],
    *followed: str,
) -> bool:
    """Return True if a new part of a git repository starts no program, judged by its content: `git init`, `clone` and
    `worktree add` keep working. A file with a second name is not harmless: it can be changed through that."""
    name = os.path.basename(path)
    if os.path.islink(path) or has_other_names(path):
        return False
    if name in GIT_STATE_NAMES:
        return _is_harmless_state(path)
    if name == "hooks":
        with suppress(OSError):
            return all(entry.endswith(".sample") for entry in os.listdir(path))
    if name in ("commondir", "gitdir", ".git") and os.path.isfile(path):
        return _is_harmless_pointer(path, roots, repositories, known, used, followed)
    inside = any(is_inside(path, git) for git in repositories)
    return name in GIT_SETTINGS_NAMES and inside and _has_harmless_settings(path)


def _is_harmless_pointer(
    path: str,
    roots: tuple[str, ...],
    repositories: Sequence[str],
    known: Collection[str],
    used: Collection[str],
    followed: tuple[str, ...],
) -> bool:
    """Return True if a pointer leads to a watched repository that is harmless too, or was `known` before and `used`: a
    command can prepare one for the next. Nobody can clone or unpack another one's `.git`."""
    name, above = os.path.basename(path), os.path.dirname(path)
    target = follow_pointer(path, "gitdir: " if name == ".git" else "")
    if name == "gitdir":  # of a worktree: names the `.git` in it, which elsewhere only others can have made
        mutual = any(is_inside(target, root) for root in roots) or follow_pointer(target) == above
        return os.path.basename(target) == ".git" and mutual
    if name == "commondir" and os.path.dirname(above) != os.path.join(target, "worktrees"):
        return False  # git makes one for a worktree, in the repository of that
    watched = any(target in list_repositories(git) for git in repositories if is_inside(target, git))
    trusted = known if target in used or ".git" in target.split("/") else ()
    parts = () if target in followed else [part for part in list_own_parts(target) if part not in trusted]
    return watched and all(is_harmless(part, roots, repositories, known, used, *followed, target) for part in parts)


def _is_harmless_state(path: str) -> bool:
    """Return True if what git goes by in a repository leads to no program and to no file out of the worktree: `git
    rebase`, `--continue`, `add` and `merge` keep working."""
    name = os.path.basename(path)
    if name == "index":
        return remember(_has_harmless_index, os.path.dirname(path))
    if name == "MERGE_RR":
        return _has_harmless_resolutions(path)
    options = os.path.join(path, "opts")
    chosen = parse_plain_file(options) or [("options.strategy", "?")] if os.path.lexists(options) else []
    strategies = [value for name, value in chosen if name == "options.strategy"]
    if lines := _read_lines(os.path.join(path, "strategy")):
        strategies.append("".join(lines).removesuffix("\n"))
    return all(strategy in MERGE_STRATEGIES for strategy in strategies) and all(
        _has_harmless_steps(os.path.join(path, name)) for name in ("git-rebase-todo", "todo")
    )


def _read_lines(file: str) -> list[str]:
    """Return the lines of a file, none if it is absent, and "?" if it cannot be read: git may be able to."""
    try:
        return read_regular(file).decode().splitlines(keepends=True) if os.path.lexists(file) else []
    except (OSError, UnicodeDecodeError):
        return ["?"]


def _has_harmless_index(git: str, visit: Visit) -> bool:
    """Return False if an index has a path that leads out of the worktree or into a repository: `git restore .` writes
    there without a check. An index that git cannot read does no harm."""
    for name in ("index", *(name for name in list_names(git) if name.startswith("sharedindex."))):
        visit(os.path.join(git, name))
    private, common = follow_dot_git(git)
    settings = read_files([file for one in (private, common) for file in list_settings_files(one)], "")
    named = {"GIT_DIR": git, "GIT_WORK_TREE": "/", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        paths = run_git("/", ["ls-files", "-z"], "/", [private, common, *settings], named)
    except subprocess.CalledProcessError:
        return True
    except (OSError, subprocess.SubprocessError):
        return False
    return _LEADS_OUT.search(b"\0" + paths) is None


def _has_harmless_resolutions(file: str) -> bool:
    """Return True if the files that `git rerere` is to read after a conflict are in the worktree."""
    try:
        paths = [line.partition(b"\t")[2] for line in read_regular(file).split(b"\0")]
    except OSError:
        return False
    top, name = os.path.split(os.path.realpath(os.path.dirname(file)))
    named = [os.path.join(top, os.fsdecode(path)) for path in paths if path]
    return not named or (name == ".git" and all(os.path.realpath(one) == one and is_inside(one, top) for one in named))


def _has_harmless_steps(file: str) -> bool:
    lines = _read_lines(file)
    words = (line.split(None, 1)[0] for line in lines if line.strip())
    return not (os.path.islink(file) or (lines and has_other_names(file))) and all(
        word in REBASE_STEPS or word[0] == "#" for word in words
    )


def _has_harmless_settings(file: str) -> bool:
    """Return True if git settings start no program. The format is read strictly: anything unusual is harmful."""
    settings = parse_plain_file(file)
    return settings is not None and all(
        is_harmless_setting(name, value, NEW_REPOSITORY_KEYS) for name, value in settings
    )

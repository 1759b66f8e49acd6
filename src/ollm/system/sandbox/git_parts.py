"""Judges what a command made in a git directory beyond the allow-list of `names`: what git itself writes for a new
repository or worktree stays. Also the index, whose paths git outside follows."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote

from ollm.system.sandbox.git_settings import (
    NEW_REPOSITORY_KEYS,
    ask_repository,
    is_harmless_setting,
    parse_plain_file,
)
from ollm.system.sandbox.names import (
    GIT_SETTINGS_NAMES,
    find_repositories,
    follow_pointer,
    has_other_names,
    is_in_any,
    list_names,
    read_pointer,
)
from ollm.system.sandbox.outside_links import Visit

_LEADS_OUT = re.compile(rb"(?i)\0/|[\0/](?:\.\.?|\.git)[\0/]")


class Places(NamedTuple):
    """Folders in which a new repository may find another one: `roots` that commands write and that are searched,
    folders that commands write and nobody searches, and known repositories."""

    roots: Collection[str]
    unsearched: Collection[str]
    repositories: Collection[str]


def is_expected(path: str, places: Places) -> bool:
    """Return True for what `git init`, `clone` and `worktree add` write: settings that start no program, sample hooks,
    and the pointers of a worktree of a known repository. A file with a second name can be changed through that."""
    name = os.path.basename(path)
    if os.path.islink(path) or has_other_names(path):
        return False
    if name == "hooks":
        return all(one.endswith(".sample") and _is_plain_file(os.path.join(path, one)) for one in list_names(path))
    if name in (".git", "gitdir", "commondir") and os.path.isfile(path):
        return _is_worktree_pointer(path, places.repositories)
    settings = parse_plain_file(path) if name in GIT_SETTINGS_NAMES else None
    if settings is None or not all(is_harmless_setting(*setting, NEW_REPOSITORY_KEYS) for setting in settings):
        return False
    remotes = {name.removeprefix("remote.").rpartition(".")[0] for name, _ in settings if name.startswith("remote.")}
    used = {value for name, value in settings if name.endswith(".remote")} - remotes - {"."}
    addresses = {*used, *(name for name in remotes if "/" in name)}  # a name may be an address too
    addresses.update(value for name, value in settings if name.endswith(".url"))
    return all(_leads_to_known_place(path, address, places) for address in addresses)


def _leads_to_known_place(path: str, address: str, places: Places) -> bool:
    """Return False for an address that leads to a folder where a command may have made, or may make later, a repository
    with hooks that nobody finds: git runs them at a push."""
    local = unquote(address.removeprefix("file://")) if address.startswith("file://") else address
    if re.match(r"[^/]*:", local):
        return True  # on another machine
    if re.search(r"(?<!\.\.)/\.\.(/|$)", local):
        return False  # a detour may lead elsewhere
    git = os.path.dirname(path)
    named = os.path.normpath(os.path.join(os.path.dirname(git) if os.path.basename(git) == ".git" else git, local))
    target = os.path.realpath(named)
    if is_in_any(target, places.unsearched) or (target != named and is_in_any(named, places.roots)):
        return False
    return not is_in_any(target, places.roots) or bool(find_repositories(target, list_names(target)))


def _is_plain_file(path: str) -> bool:
    about = os.lstat(path)
    return stat.S_ISREG(about.st_mode) and about.st_nlink == 1


def _is_worktree_pointer(path: str, repositories: Collection[str]) -> bool:
    """Return True for a pointer that is exactly as `git worktree add` writes it: the `.git` file of a worktree and the
    folder REPOSITORY/worktrees/NAME name each other."""
    private = follow_pointer(path) if os.path.basename(path) == ".git" else os.path.dirname(path)
    above, named = os.path.split(os.path.dirname(private))
    names, common = os.path.join(private, "gitdir"), os.path.join(private, "commondir")
    dot_git = follow_pointer(names, "")
    return (
        named == "worktrees"
        and above in repositories
        and os.path.basename(dot_git) == ".git"
        and all(map(os.path.isfile, (dot_git, names, common)))
        and not any(os.path.islink(one) or has_other_names(one) for one in (dot_git, names, common))
        and follow_pointer(dot_git) == private
        and read_pointer(common) == "../.."
    )


def has_harmless_index(git: str, visit: Visit) -> bool:
    """Return False if an index has a path that leads out of the worktree or into a repository: `git restore .` writes
    there without a check. One that git cannot read now may be readable later."""
    for name in ("index", *(name for name in list_names(git) if name.startswith("sharedindex."))):
        visit(os.path.join(git, name))
    try:
        paths = ask_repository(git, "ls-files", "-z", visit=visit, GIT_WORK_TREE="/")
    except (OSError, subprocess.SubprocessError):
        return False
    return _LEADS_OUT.search(b"\0" + paths) is None

"""Names and places that programs treat specially, for file tools, policy and sandbox. Standard library only."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache

from ollm.system.atomic import read_small_file

_BASH = frozenset({".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"})
_ZSH = frozenset({".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"})
_OTHER_SHELLS = frozenset(
    {".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", "config.fish", ".pam_environment"}
)
_X_SESSION = frozenset({".xprofile", ".xinitrc", ".xsession", ".xsessionrc"})
SHELL_START_UP_FILES = _BASH | _ZSH | _OTHER_SHELLS | _X_SESSION
# Files at the top of a workspace that steer editors, agents or CI. Changes of them are named, not prevented.
STEERING_NAMES = frozenset(
    [
        "agents.md",
        "claude.md",
        ".vscode",
        ".idea",
        ".claude",
        ".cursor",
        ".mcp.json",
        ".husky",
        ".gitattributes",
        ".gitmodules",
        ".github/workflows",
    ]
)
PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages", "dist-packages"})
# The places that ollm runs from, with the programs beside it
OWN_PLACES = frozenset(
    os.path.realpath(place)
    for place in (sys.prefix, sys.base_prefix, os.path.join(os.path.dirname(__file__), os.pardir))
)
writable_roots: set[str] = set()  # No program is started outside a box from the workspaces of this process.
MAX_POINTER_CHARS = 4096
MAX_LINKS = 40  # The kernel follows as many links.
SCRIPT_ENDINGS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php")
EXAMPLE_ENDINGS = (".example", ".sample", ".template")
_INVISIBLE = "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"


@cache
def list_home_places() -> tuple[list[str], ...]:
    """Return the places of a home that commands see: folders of programs, installations, and others."""
    with open(os.path.join(os.path.dirname(__file__), "home_places.txt"), encoding="utf-8") as file:
        sections = file.read().split("\n\n")
    return tuple([line for line in section.splitlines() if not line.startswith("#")] for section in sections)


def is_inside(path: str, directory: str) -> bool:
    """Return True if a path is this directory or inside it; both absolute and resolved."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def is_in_any(path: str, directories: Iterable[str]) -> bool:
    return any(is_inside(path, directory) for directory in directories)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder, or [] if it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def find_git_directories(workspace: str) -> list[str]:
    """Return the directories in which git keeps this workspace's repository: its `.git`, one in the workspace that the
    file `.git` names, or for a linked worktree the one elsewhere, if that names this workspace in turn (the file alone
    proves nothing)."""
    dot_git = os.path.join(workspace, ".git")
    if os.path.islink(dot_git) or not os.path.lexists(dot_git):
        return []
    if os.path.isdir(dot_git):
        return [dot_git]
    private, common = follow_dot_git(dot_git)
    if is_inside(private, workspace) and is_inside(common, workspace):
        return [] if private == workspace else [*dict.fromkeys((private, common))]
    if os.path.realpath(read_pointer(os.path.join(private, "gitdir")) or "/") != dot_git:
        return []
    return [common] if is_inside(private, common) else []


def follow_dot_git(dot_git: str) -> tuple[str, str]:
    """Return the directory of a worktree that a `.git` is or names, and the one it shares with other worktrees."""
    named = "" if os.path.isdir(dot_git) else read_pointer(dot_git).removeprefix("gitdir: ")
    private = os.path.realpath(os.path.join(os.path.dirname(dot_git), named)) if named else os.path.realpath(dot_git)
    shared = read_pointer(os.path.join(private, "commondir"))
    return private, os.path.realpath(os.path.join(private, shared)) if shared else private


def read_pointer(path: str) -> str:
    """Read a file in which git names a folder, completely as git does. Return "" if there is none to follow."""
    try:
        text = os.fsdecode(read_small_file(path)).rstrip("\r\n")
    except OSError:
        return ""
    return "" if "\0" in text or len(text) > MAX_POINTER_CHARS else text


def find_steering_name(below: str) -> str | None:
    """Return the name that steers editors, agents or CI of a path relative to the workspace, or None."""
    first, *rest = below.split("/")
    name = normalize_name(first)
    name = f"{name}/{normalize_name(rest[0])}" if name == ".github" and rest else name
    return name if name in STEERING_NAMES else None


def read_steering(workspace: str) -> dict[str, tuple[int, int, int]]:
    """Return the files of a workspace that steer editors, agents or CI, with what changes if they do."""
    found, waiting = dict[str, tuple[int, int, int]](), list_names(workspace)
    if ".git" in waiting and os.path.islink(os.path.join(workspace, ".git")):
        found[".git"] = (os.lstat(os.path.join(workspace, ".git")).st_ino, 0, 0)  # No mount can protect a link.
    for below in waiting:  # The list grows in the loop.
        if find_steering_name(below) is None and normalize_name(below) != ".github":
            continue
        try:
            about = os.lstat(os.path.join(workspace, below))
        except OSError:
            continue
        if stat.S_ISDIR(about.st_mode):
            waiting += [f"{below}/{name}" for name in list_names(os.path.join(workspace, below))]
        else:
            found[below] = about.st_mtime_ns, about.st_size, about.st_ino
    return found


def find_own_place(path: str, roots: Iterable[str]) -> str | None:
    """Return the folder below a root that ollm runs from and that a path lies in, or None."""
    inside = (place for place in OWN_PLACES if is_inside(path, place))
    return next((place for place in inside if is_in_any(place, roots)), None)


def trace_path(path: str) -> Iterator[str]:
    """Walk a path as the kernel does: return every link on the way, then the end, which may be missing. After a missing
    part `..` goes back by name."""
    place, waiting, links = os.getcwd() if path[:1] != "/" else "/", path.split("/")[::-1], 0
    while waiting and links <= MAX_LINKS:
        part = waiting.pop()
        if part == "..":
            place = os.path.dirname(place)
        elif part not in ("", "."):
            above, place = place, f"{place.rstrip('/')}/{part}"
            with suppress(OSError, ValueError):  # It may be no link.
                target = os.readlink(place)
                yield place
                links += 1
                place = "/" if target.startswith("/") else above
                waiting += target.split("/")[::-1]
    yield place


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """Normalize a filename as the most lenient file system would compare it."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    import re
    import unicodedata

    visible = re.sub(_INVISIBLE, "", unicodedata.normalize("NFKC", name))
    return visible.casefold().rstrip(". ") or name


def is_environment_file(name: str) -> bool:
    """Return True for `.env*` except examples: recursive reads skip such files and report how many."""
    plain = normalize_name(name)
    return plain.startswith(".env") and not plain.endswith(EXAMPLE_ENDINGS)


def find_executable(name: str, folders: Iterable[str] | None = None) -> str | None:
    """Find a program in folders, by default those of the PATH."""
    places = os.environ.get("PATH", os.defpath).split(":") if folders is None else folders
    paths = (os.path.join(folder, name) for folder in places)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)

"""Describe a sandbox: which places a command may see and change. Standard library only.

`list_places` is the one plan that every level carries out: with mounts (`base`, `mounts`, `bubblewrap`) or with
Landlock rules (`landlock`). The nearest place above a path decides about it.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Literal, NamedTuple

Kind = Literal["reading", "working"]
Network = Literal["none", "loopback", "all"]
Level = Literal["full", "bubblewrap", "landlock", "seatbelt", "none"]
Access = Literal["empty", "read", "write"]
LEVELS: tuple[Level, ...] = ("full", "bubblewrap", "landlock", "none")
WHOLE_LEVELS: tuple[Level, ...] = ("full", "bubblewrap")  # with namespaces and mounts
TEMPORARY_PLACES = ("/tmp", "/var/tmp")
SYSTEM_SECRETS = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers.d",
    "/etc/ssl/private",
)
SYSTEM_DIRECTORIES = frozenset("bin boot dev etc home lib lib64 proc root run sbin sys usr var".split())
BUBBLEWRAP_PLACES = (
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)
SCRATCH_PREFIX = "ollm-box-"  # name of temporary directories made for boxes


class Box(NamedTuple):
    """The places of one command. All paths are absolute and resolved.

    `covered` places (the homes) are empty except for what the other fields bring back: `visible` for every command of
    a session, `readable` for this one. A `working` box writes to the workspace, `writable` and `caches`, but not to
    the `protected` files in them; a `reading` box writes to its temporary directory only, and does not see
    `environment_files`. `hidden` places are empty. `approved` paths are open for this run. `scratch` is the private
    temporary directory at levels that cannot mount one; `wrapper` is the program that makes the mounts for us."""

    kind: Kind
    workspace: str
    home: str
    network: Network = "none"
    covered: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    environment_files: tuple[str, ...] = ()
    scratch: str = ""
    wrapper: str = ""

    def to_fields(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Box:
        whole: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**whole)

    @property
    def session_part(self) -> Box:
        """The part that all commands of a session share."""
        none: tuple[str, ...] = ()
        mine = self._replace(readable=none, approved=none, protected=none, environment_files=none)
        return mine._replace(kind="working", network="none")

    def list_writable(self) -> list[str]:
        """Directories and files that the command may change, without its temporary places."""
        if self.kind == "reading":
            return []
        outside = [path for path in find_git_directories(self.workspace) if not is_inside(path, self.workspace)]
        return [self.workspace, *self.writable, *outside, *self.caches, *self.approved]


def list_places(box: Box) -> list[tuple[str, Access]]:
    """Every place with what a command may do there, those above first, without those that do not exist or say the
    same as the place above."""
    private = TEMPORARY_PLACES if box.kind == "reading" else ()
    places: dict[str, Access] = dict.fromkeys((*private, *box.covered), "empty")
    places |= dict.fromkeys((path for path in SYSTEM_SECRETS if os.access(path, os.R_OK)), "empty")
    places |= dict.fromkeys((*box.visible, *box.readable), "read")
    places |= dict.fromkeys(box.hidden, "empty")
    places |= dict.fromkeys(box._replace(kind="working").list_writable(), "write")
    if box.kind == "reading":
        places |= {path: "read" for path, access in places.items() if access == "write"}
        places |= dict.fromkeys(box.environment_files, "empty")
    needed: list[tuple[str, Access]] = []
    for path, access in sorted(places.items(), key=lambda one: len(one[0])):
        if os.path.lexists(path) and find_access(path, needed)[1] != access:
            needed.append((path, access))
    return needed


def find_access(path: str, places: list[tuple[str, Access]]) -> tuple[str, Access]:
    """The nearest place at or above a path, and what may be done there; the root can be read."""
    return next(((place, access) for place, access in reversed(places) if is_inside(path, place)), ("/", "read"))


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is this directory or lies in it; both absolute and resolved."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def explain_why_unboxable(workspace: str, home: str) -> str | None:
    """Return why no box can be drawn around this workspace, or None. One that contains the home or the whole system
    would have to be writable as a whole, including the secrets and start-up files in it."""
    if workspace == "/":
        return "the workspace is the whole file system"
    if workspace == home:
        return "the workspace is your home directory"
    if is_inside(home, workspace):
        return "the workspace contains your home directory"
    if os.path.dirname(workspace) == "/" and os.path.basename(workspace) in SYSTEM_DIRECTORIES:
        return f"the workspace is the system directory {workspace}"
    return None


def find_bubblewrap() -> str:
    """Return the path of bwrap, or "". Only system folders are searched: a program in PATH may be anybody's."""
    for place in BUBBLEWRAP_PLACES:
        try:
            found = os.stat(place)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and os.access(place, os.X_OK):
            return place
    return ""


def find_git_directories(workspace: str) -> list[str]:
    """Return the directories in which git keeps this workspace's repository: its `.git`, or for a linked worktree the
    one elsewhere, if that names this workspace in turn (the file alone proves nothing)."""
    dot_git = os.path.join(workspace, ".git")
    if os.path.islink(dot_git):
        return []
    if os.path.isdir(dot_git):
        return [dot_git]
    private = read_line(dot_git).removeprefix("gitdir: ")
    private = os.path.realpath(os.path.join(workspace, private)) if private else ""
    if not private or os.path.realpath(read_line(os.path.join(private, "gitdir")) or "/") != dot_git:
        return []
    common = os.path.realpath(os.path.join(private, read_line(os.path.join(private, "commondir")) or "."))
    return [common] if is_inside(private, common) else []


def read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).rstrip("\n")
    except OSError:
        return ""

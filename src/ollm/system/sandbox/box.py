"""What a box holds: the description that travels to the process which builds it. Standard library only."""

from __future__ import annotations

import os
import stat
from typing import Any, Literal, NamedTuple

Kind = Literal["reading", "working"]
Network = Literal["none", "loopback", "all"]
Level = Literal["full", "bubblewrap", "landlock", "seatbelt", "none"]
LEVELS: tuple[Level, ...] = ("full", "bubblewrap", "landlock", "none")
WHOLE_LEVELS: tuple[Level, ...] = ("full", "bubblewrap")  # with namespaces: whatever runs there, the box holds
TEMPORARY_PLACES = ("/tmp", "/var/tmp")
BUBBLEWRAP_PLACES = (
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)

SCRATCH_PREFIX = "ollm-box-"  # what a temporary directory of boxes is called


class Box(NamedTuple):
    """What a command may change and see. All paths are absolute and resolved.

    `reading`: nothing but the private temporary directory can be written, and no socket opened. `working`: the
    workspace and `writable` can, but for the names that steer tools and agents and the `executed` files, which hooks
    and servers run; `approved` paths are open for this one run whatever their name. `hidden` paths are not there, save
    what `readable` or `approved` bring back; a reading box shows of the homes and of /tmp nothing but the workspace and
    what is `kept`; nor does it have `.env` files. `scratch` is the private temporary
    directory where there are no mounts of ours to make one; `wrapper` the program that makes the mounts instead."""

    kind: Kind
    workspace: str
    home: str
    network: Network = "none"
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    executed: tuple[str, ...] = ()
    scratch: str = ""
    wrapper: str = ""

    @property
    def hides_environment_files(self) -> bool:
        """Whether the `.env` files of the workspace are not there."""
        return self.kind == "reading"

    def to_fields(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Box:
        whole: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**whole)

    def is_approved(self, path: str) -> bool:
        """Whether the user approved this path, or one above it, for this run."""
        return any(is_inside(path, approved) for approved in self.approved)


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is this directory or lies in it; both absolute and resolved."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def explain_why_unboxable(workspace: str, home: str) -> str | None:
    """Why nothing can be held back from a command in this workspace, or None. One that holds the home or the whole
    system would have to be writable as a whole, the secrets and start-up files in it included."""
    if workspace == "/":
        return "the workspace is the whole file system"
    if is_inside(home, workspace):
        return (
            "the workspace is your home directory"
            if workspace == home
            else "the workspace contains your home directory"
        )
    if os.path.dirname(workspace) == "/" and os.path.basename(workspace) in SYSTEM_DIRECTORIES:
        return f"the workspace is the system directory {workspace}"
    return None


SYSTEM_DIRECTORIES = frozenset("bin boot dev etc home lib lib64 proc root run sbin sys usr var".split())


def find_bubblewrap() -> str:
    """Where the program is, or nothing. Only where the system keeps it: one in a PATH may be anybody's."""
    for place in BUBBLEWRAP_PLACES:
        try:
            found = os.stat(place)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and os.access(place, os.X_OK):
            return place
    return ""

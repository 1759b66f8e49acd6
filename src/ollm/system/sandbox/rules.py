"""What a box lets its processes write, name and, where mounts cannot hide it, read. Standard library only."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from ollm.system.file_names import is_environment_file
from ollm.system.sandbox.box import Box, is_inside
from ollm.system.sandbox.names import (
    find_steering_name,
    is_moved_as_a_whole,
    is_near_steering_name,
    is_plain_name,
    list_covered_places,
    list_kept_places,
    list_secret_places,
)

MAX_KNOWN_DIRECTORIES = 4096
PLAIN_DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"]
READ_DEVICES = ["/dev/random", "/dev/urandom", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"]


class BoxDeniedError(OSError):
    """The box does not allow it; `filename` is the path."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES), path)


class BoxRules:
    """Decides about absolute paths whose directory is resolved. `scratch` are the places that are private."""

    def __init__(self, box: Box, scratch: list[str], git_outside: list[str], *, hiding: bool) -> None:
        self._box = box
        self._scratch = [*scratch, "/proc", *(PLAIN_DEVICES if hiding else ["/dev"])]
        self._executed = frozenset(box.executed)
        self._plain_directories: dict[str, bool] = {}
        self._guarded = [box.workspace, *box.writable, *git_outside] if box.kind == "working" else []
        self._hidden = _resolve_places((*list_secret_places(box.home), *box.hidden)) if hiding else []
        self._seen_again = (box.workspace, *box.writable, *box.readable, *box.approved, *scratch)
        self._reading = hiding and box.kind == "reading"
        if self._reading:
            self._hidden += list_covered_places(box.home)
            self._seen_again += (*box.kept, *list_kept_places(box.home), *git_outside)

    def check_write(self, path: str) -> None:
        """Raise BoxDeniedError unless a file may be made, changed or removed at this path."""
        above, _, name = path.rpartition("/")
        if self._is_plain_directory(above) and is_plain_name(name) and path not in self._executed:
            return
        if self._box.is_approved(path):
            return
        if self._is_guarded(path):
            if path in self._executed or find_steering_name(self._cut_guarded_root(path)) is not None:
                raise BoxDeniedError(path)
        elif not any(is_inside(path, place) for place in self._scratch):
            raise BoxDeniedError(path)

    def _is_plain_directory(self, path: str) -> bool:
        """Whether in this directory everything may be written but what has a name of its own that steers. Remembered: a
        thousand files are mostly made in few directories."""
        known = self._plain_directories.get(path)
        if known is None:
            if len(self._plain_directories) >= MAX_KNOWN_DIRECTORIES:
                self._plain_directories.clear()
            below = self._cut_guarded_root(path)
            known = self._is_guarded(path) and not is_near_steering_name(below)
            self._plain_directories[path] = known
        return known

    def check_move_directory(self, source: str, target: str) -> None:
        """A directory brings what is in it along, so it must not come in from where names are not looked at."""
        if self._is_guarded(target) and not self._is_guarded(source):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        for path in (source, target):
            self._check_contents(path)

    def check_link(self, path: str) -> None:
        """Raise BoxDeniedError unless a symbolic link may be made here: a directory can come in by one, too."""
        self.check_write(path)
        self._check_contents(path)

    def _check_contents(self, path: str) -> None:
        """What comes to be at this path, or leaves it, would bring files along that must not come or go."""
        if not self._is_guarded(path) or self._box.is_approved(path):
            return
        if is_moved_as_a_whole(path) or any(is_inside(file, path) for file in self._executed):
            raise BoxDeniedError(path)

    def check_connect(self, path: str) -> None:
        """Raise BoxDeniedError unless the socket at this path is one of the box's own, not that of a daemon outside."""
        if not self._box.is_approved(path) and not any(
            is_inside(path, place) for place in (*self._guarded, *self._scratch)
        ):
            raise BoxDeniedError(path)

    def check_read(self, path: str) -> None:
        """Raise BoxDeniedError when what is at this path is hidden."""
        if not self._hidden:
            return
        if self._box.hides_environment_files and any(map(is_environment_file, path.split("/"))):
            raise BoxDeniedError(path)
        if path.startswith("/dev/") and not any(is_inside(path, one) for one in (*PLAIN_DEVICES, *READ_DEVICES)):
            raise BoxDeniedError(path)
        for place in self._hidden:
            if is_inside(path, place) and not any(
                is_inside(path, back) and is_inside(back, place) for back in self._seen_again
            ):
                raise BoxDeniedError(path)

    def _is_guarded(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self._guarded)

    def _cut_guarded_root(self, path: str) -> str:
        """The part of a path below the roots that are guarded: how these are reached is not the command's doing. A
        git directory outside is looked at with its own name."""
        for root in self._guarded:
            if is_inside(path, root):
                return (".git/" if os.path.basename(root) == ".git" else "") + path[len(root) :]
        return path


def _resolve_places(places: Iterable[str]) -> list[str]:
    """Where they are. One that is not there is taken by its name: to look for it part by part costs more."""
    return [os.path.realpath(place) if os.path.lexists(place) else place for place in places]

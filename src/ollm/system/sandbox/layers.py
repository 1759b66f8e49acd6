"""Private layers over the directories that every box may write to: all that is there can be read, and what is written
stays inside. Standard library only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from ollm.system.sandbox import kernel

MAX_ENTRIES = 1000  # of a directory in which other file systems are mounted: the newest; each costs two mounts
MAX_DEPTH = 4
_PLAIN = kernel.MS_NOSUID | kernel.MS_NODEV


class LayerEntry(NamedTuple):
    """What is in a directory: a link by its text, a file or directory by a descriptor of its mounts."""

    name: str
    text: str = ""
    tree: int = -1
    mode: int = 0


def lay_over(place: str, memory: str, depth: int = 0) -> None:
    """Lay a layer over a directory; what is written goes to `memory`, a file system of ours. A socket of a running
    daemon cannot be connected to through it. The kernel lays nothing over a directory in which other file systems are
    mounted: there every directory in it gets a layer of its own, and files stay as they are, to be read."""
    mode = stat.S_IMODE(os.stat(place).st_mode)
    upper = f"{memory}/{os.stat(memory).st_nlink}"  # as many as there are directories in it
    os.mkdir(upper)
    os.chmod(upper, mode)
    os.mkdir(f"{upper}-work")
    options = f"lowerdir={_escape(place)},upperdir={upper},workdir={upper}-work,userxattr"
    try:
        kernel.mount("overlay", place, "overlay", _PLAIN, options)
    except OSError:
        entries = list(_clone_entries(place)) if depth < MAX_DEPTH else []
        kernel.mount("tmpfs", place, "tmpfs", _PLAIN, f"mode={mode:o}")
        for entry in entries:
            _put_back(entry, os.path.join(place, entry.name), memory, depth)


def _clone_entries(place: str) -> Iterator[LayerEntry]:
    """The links, files and directories in it; sockets and pipes lead to programs outside."""
    for path, mode in _list_newest(place):
        name = os.path.basename(path)
        with suppress(OSError):  # it went away, or may not be seen
            if stat.S_ISLNK(mode):
                yield LayerEntry(name, text=os.readlink(path))
            elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                yield LayerEntry(name, tree=kernel.clone_tree(path), mode=mode)


def _list_newest(place: str) -> list[tuple[str, int]]:
    found = []
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                found.append((about.st_mtime, entry.path, about.st_mode))
    return [(path, mode) for _, path, mode in sorted(found, reverse=True)[:MAX_ENTRIES]]


def _put_back(entry: LayerEntry, path: str, memory: str, depth: int) -> None:
    if entry.text:
        os.symlink(entry.text, path)
    elif stat.S_ISREG(entry.mode):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with suppress(FileNotFoundError):  # deleted meanwhile: what has no name is mounted nowhere
            kernel.attach_tree(entry.tree, path)
    else:
        os.mkdir(path)
        with suppress(FileNotFoundError):
            kernel.attach_tree(entry.tree, path)
            lay_over(path, memory, depth + 1)


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")

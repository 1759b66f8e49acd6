"""Builds the same sandboxes with bubblewrap, which some systems allow to create namespaces that they refuse to us.

It drops its privileges before it starts anything, so every mount of a box is passed as an argument. It starts the
process that runs commands (`host`), which adds Landlock, seccomp and the broker as usual. That process is reused by the
next command with the same box. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

from ollm.system.sandbox.box import TEMPORARY_PLACES, Box, Places, find_access, list_places
from ollm.system.sandbox.mounts import ACCELERATORS, RUN, RUN_KEPT, list_protections

START_SECONDS = 30
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
_HOST = (
    "import sys; sys.path.append(sys.argv[1]); from ollm.system.sandbox.host import serve_orders; "
    "serve_orders(int(sys.argv[2]))"
)


def start_wrapped_host(box: Box) -> tuple[socket.socket, int, int]:
    """Start a process in this box that takes orders. Return its control socket, the process id of bubblewrap, which is
    our child, and its own. The caller must be single-threaded."""
    _make_scratch(box.scratch)
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    arguments = _pass_arguments(list(make_arguments(box)))
    options = ["--args", str(arguments), "--info-fd", str(writing)]
    program = [os.path.realpath(sys.executable), "-I", "-S", "-c", _HOST, _PACKAGES, str(theirs.fileno())]
    empty = subprocess.DEVNULL
    process = subprocess.Popen(
        [box.wrapper, *options, *program],
        stdin=empty,
        stdout=empty,
        stderr=empty,
        env={},
        pass_fds=(arguments, writing, theirs.fileno()),
    )
    process.returncode = 0  # The process is reaped elsewhere.
    for descriptor in (writing, arguments):
        os.close(descriptor)
    theirs.close()
    with os.fdopen(reading, "rb") as told:
        said = told.read()
    try:
        inner = int(json.loads(said)["child-pid"])
        ours.settimeout(START_SECONDS)
        if ours.recv(5) != b"host\n":
            raise ValueError
        ours.settimeout(None)
    except (ValueError, KeyError, OSError):
        ours.close()
        os.waitpid(process.pid, 0)
        raise OSError(1, "bubblewrap made no box") from None
    return ours, process.pid, inner


def _make_scratch(directory: str) -> None:
    """Create the directory and check that it is ours: a cleanup after a killed agent may have removed it."""
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    about = os.lstat(directory)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        raise OSError(1, "the temporary directory of the box is not ours", directory)


def _pass_arguments(words: list[str]) -> int:
    """Return a descriptor from which bubblewrap reads its arguments: they may exceed a command line."""
    descriptor = os.memfd_create("arguments", 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def make_arguments(box: Box) -> Iterator[str]:
    """Convert a box to bubblewrap options, which are applied in order."""
    yield from ("--unshare-pid", "--unshare-ipc", "--as-pid-1", "--die-with-parent", "--new-session")
    if box.kind == "reading" or box.network != "all":
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    for name in (*ACCELERATORS, *(name for name in os.listdir("/dev") if name.startswith("nvidia"))):
        yield from ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")
    yield from _make_run()
    for place in TEMPORARY_PLACES:
        yield from ("--bind", box.scratch, place)
    emptied: list[str] = []
    yield from _lay_out(box, emptied)
    for path, writable in list_protections(box) if box.kind == "working" else ():
        yield from ("--bind" if writable else "--ro-bind", path, path)
    for place in (*emptied, "/proc"):
        yield from ("--remount-ro", place)


def _lay_out(box: Box, emptied: list[str]) -> Iterator[str]:
    """Iterate over options for every place; `emptied` receives those that become read-only at the end."""
    emptied_first: Places = dict.fromkeys(TEMPORARY_PLACES, "empty")
    places, ourselves = emptied_first | list_places(box), (os.path.realpath(sys.base_prefix), f"{_PACKAGES}/ollm")
    needed = [one for one in ourselves if find_access(one, places)[1] == "empty" and os.access(one, os.X_OK)]
    places |= dict.fromkeys(needed, "read")
    for path in sorted(places, key=len):
        access, above = places[path], find_access(os.path.dirname(path), places)[1]
        if path in TEMPORARY_PLACES:
            continue
        if access == "write":
            yield from ("--bind", path, path)
        elif access == "read" and os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path) if above == "empty" else ()
        elif access == "read":
            yield from ("--ro-bind", path, path) if above != "read" else ()
        elif not os.path.isdir(path):
            yield from ("--dev-bind", "/dev/null", os.path.realpath(path)) if above != "empty" else ()
        elif above != "empty" or any(path.startswith(f"{place}/") for place in TEMPORARY_PLACES):
            yield from ("--tmpfs", path)
            emptied.append(path)


def _make_run() -> Iterator[str]:
    yield from ("--tmpfs", RUN)
    for name in RUN_KEPT:
        path = os.path.join(RUN, name)
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from ("--perms", "0700", "--dir", os.path.join(RUN, "user", str(os.geteuid())))
    if os.path.isdir("/var/run") and not os.path.islink("/var/run"):
        yield from ("--tmpfs", "/var/run")

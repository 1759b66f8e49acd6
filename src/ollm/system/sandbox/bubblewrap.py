"""The same boxes made by bubblewrap, a program that some systems let make the namespaces they refuse to us.

It gives up its powers before it starts anything, so every mount of a box is an argument of it. What it starts is the
process that runs commands (`host`), which adds Landlock, seccomp and the broker as everywhere; one that serves a box
is used again by the next command whose box is the same. Standard library only.
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
    """Start a process in this box that takes orders: its control socket, the process id of bubblewrap, our child, and
    its own. The caller is single-threaded."""
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
    process.returncode = 0  # collected elsewhere
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
    """It must be there, and ours: who cleaned up after a killed agent may have taken it away."""
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    about = os.lstat(directory)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        raise OSError(1, "the temporary directory of the box is not ours", directory)


def _pass_arguments(words: list[str]) -> int:
    """A descriptor from which bubblewrap reads its arguments: there may be more than a command line takes."""
    descriptor = os.memfd_create("arguments", 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def make_arguments(box: Box) -> Iterator[str]:
    """A box as options of bubblewrap, which are carried out in order."""
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
    """Options for every place; `emptied` receives those that are to become read-only in the end."""
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

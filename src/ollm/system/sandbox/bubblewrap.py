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
import sys
from collections.abc import Iterator
from contextlib import suppress

from ollm.system.sandbox.base import ACCELERATORS, RUN, RUN_KEPT
from ollm.system.sandbox.box import TEMPORARY_PLACES, Box, is_inside
from ollm.system.sandbox.git_places import find_git_directories
from ollm.system.sandbox.mounts import GIT_READ_ONLY, find_opened_directory, list_shown_again
from ollm.system.sandbox.names import list_covered_places, list_kept_places, list_present_secrets

START_SECONDS = 30
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
_HOST = (
    "import sys; sys.path.append(sys.argv[1]); from ollm.system.sandbox.host import serve_orders; "
    "serve_orders(int(sys.argv[2]))"
)


def start_wrapped_host(box: Box, environment_files: list[str]) -> tuple[socket.socket, int, int]:
    """Start a process in this box that takes orders: its control socket, the process id of bubblewrap, our child, and
    its own. The caller is single-threaded."""
    _make_scratch(box.scratch)
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    arguments = _pass_arguments(list(make_arguments(box, environment_files)))
    child = os.fork()
    if child == 0:
        try:
            _execute(box.wrapper, arguments, writing, theirs.fileno())
        finally:
            os._exit(1)
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
        os.waitpid(child, 0)
        raise OSError(1, "bubblewrap made no box") from None
    return ours, child, inner


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


def _execute(wrapper: str, arguments: int, telling: int, control: int) -> None:
    for descriptor in (arguments, telling, control):
        os.set_inheritable(descriptor, True)
    empty = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(empty, stream)
    ours = ["--args", str(arguments), "--info-fd", str(telling)]
    program = [os.path.realpath(sys.executable), "-I", "-S", "-c", _HOST, _PACKAGES, str(control)]
    os.execve(wrapper, [wrapper, *ours, *program], {})  # noqa: S606 - no shell is wanted


def make_arguments(box: Box, environment_files: list[str]) -> Iterator[str]:
    """A box as bubblewrap's options. They are carried out in order: what lies over others, what is seen again in it,
    and what is hidden in that."""
    yield from ("--unshare-pid", "--unshare-ipc", "--as-pid-1", "--die-with-parent", "--new-session")
    if box.kind == "reading" or box.network != "all":
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    for name in (*ACCELERATORS, *(name for name in os.listdir("/dev") if name.startswith("nvidia"))):
        yield from ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")
    yield from _make_run()
    for place in TEMPORARY_PLACES:
        yield from ("--bind", box.scratch, place)
    shown = _list_shown(box)
    hidden = _list_hidden(box, environment_files)
    inner = [place for place in hidden if not os.path.isdir(place) or any(is_inside(place, one) for one in shown)]
    outer = sorted({*_list_covers(box), *hidden} - {*inner}, key=len)
    for place in outer:
        yield from ("--tmpfs", place)
    yield from _show(box, shown, (*outer, *TEMPORARY_PLACES))
    yield from _protect_git_directories(box)
    for place in inner:
        yield from _hide(box, place, shown)
    for place in (*outer, *filter(os.path.isdir, inner), "/proc"):
        yield from ("--remount-ro", place)


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


def _list_covers(box: Box) -> list[str]:
    """The homes, of which a reading box shows nothing by itself."""
    places = list_covered_places(box.home) if box.kind == "reading" else []
    homes = [place for place in places if place not in TEMPORARY_PLACES and os.path.isdir(place)]
    return [place for place in homes if not is_inside(place, box.workspace)]


def _list_shown(box: Box) -> list[str]:
    """What is to be seen, wherever it lies: what the box is for, and ourselves."""
    ourselves = [os.path.realpath(sys.base_prefix), os.path.join(_PACKAGES, "ollm")]
    kept = (
        [*box.kept, *list_kept_places(box.home)] if box.kind == "reading" else map(find_opened_directory, box.approved)
    )
    paths = dict.fromkeys([*list_shown_again(box), *kept, *ourselves])
    return sorted((path for path in paths if path != "/" and os.path.exists(path)), key=len)


def _show(box: Box, paths: list[str], laid_over: tuple[str, ...]) -> Iterator[str]:
    """Put back what lies in the places that something was laid over, and make writable what is to be: the outermost
    alone, since nothing can be moved to where something is mounted."""
    done: dict[bool, list[str]] = {True: [], False: []}
    for path in paths:
        writable = _may_write(box, path)
        needed = writable or any(is_inside(path, one) for one in laid_over)
        if needed and not any(is_inside(path, one) for one in done[writable]):
            done[writable].append(path)
            yield from ("--bind" if writable else "--ro-bind", path, path)


def _may_write(box: Box, path: str) -> bool:
    places = [
        box.workspace,
        *box.writable,
        *find_git_directories(box.workspace),
        *map(find_opened_directory, box.approved),
    ]
    return box.kind == "working" and any(is_inside(path, place) for place in places)


def _protect_git_directories(box: Box) -> Iterator[str]:
    """Make `.git` a mount of its own, which cannot be moved away, and what steers git in it read-only."""
    if box.kind == "reading":
        return
    dot_git = os.path.join(box.workspace, ".git")
    for directory in find_git_directories(box.workspace):
        if directory == dot_git:
            yield from ("--bind", directory, directory)
        for path in (os.path.join(directory, name) for name in GIT_READ_ONLY):
            if os.path.exists(path) and not os.path.islink(path) and not box.is_approved(path):
                yield from ("--ro-bind", path, path)
    if os.path.isfile(dot_git) and not os.path.islink(dot_git) and not box.is_approved(dot_git):
        yield from ("--ro-bind", dot_git, dot_git)


def _list_hidden(box: Box, environment_files: list[str]) -> list[str]:
    places = [*list_present_secrets(box.home), *box.hidden, *environment_files]
    present = {os.path.realpath(place) for place in places if os.path.lexists(place) and not box.is_approved(place)}
    return sorted((place for place in present if place != box.workspace and os.path.exists(place)), key=len)


def _hide(box: Box, place: str, shown: list[str]) -> Iterator[str]:
    if os.path.isdir(place):
        yield from ("--tmpfs", place)
        yield from _show(box, [path for path in shown if path != place and is_inside(path, place)], (place,))
    else:
        yield from ("--dev-bind", "/dev/null", place)

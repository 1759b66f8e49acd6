"""Landlock: restricts which places a process and its children may read and write. Standard library only."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Iterator

from ollm.system.path_names import list_names
from ollm.system.sandbox.box import TEMPORARY_PLACES, Access, Box, Places, list_places, list_tool_folders
from ollm.system.sandbox.kernel import call

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE, REFER, TRUNCATE = (
    1 << bit for bit in (0, 1, 2, 3, 4, 5, 13, 14)
)
READING = EXECUTE | READ_FILE | READ_DIR
MAKE_ANYTHING = sum(1 << bit for bit in range(6, 13))
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
READ_DEVICES = (*PLAIN_DEVICES, "/dev/random", "/dev/urandom")


def get_landlock_version() -> int:
    """Return the version of the kernel's Landlock interface, or 0 without Landlock."""
    try:
        return call("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def restrict_box(box: Box, *, mounted: bool) -> None:
    """Restrict this thread, which can gain no privileges any more, and its children to a box. With mounts, Landlock
    repeats the write restrictions; without them, it also restricts reading."""
    version = get_landlock_version()
    writing = _get_writing_rights(version)
    if not version:
        if not mounted:
            raise OSError(38, "Landlock is not there")
        return
    if mounted:
        rules = [(path, writing) for path in (*TEMPORARY_PLACES, "/dev", *box.list_writable())]
        _restrict(writing, rules, version, tcp=True)
        return
    rules = [(path, READING) for path in split_places({**list_places(box), "/dev": "empty"})]
    rules += [(path, writing | READING) for path in (box.scratch, *PLAIN_DEVICES) if path]
    rules += [(path, READING) for path in READ_DEVICES]
    rules += [(path, READ_DIR) for path in list_tool_folders(box.home)]
    rules += [(path, writing) for path in box.list_writable()]
    _restrict(READING | writing, rules, version, tcp=box.network == "all")


def split_places(places: Places, top: str = "/", access: Access = "read") -> Iterator[str]:
    """Iterate over directories and files that together cover everything readable: Landlock can allow a folder, but not
    exclude a part of it. Links are skipped, since Landlock checks their targets."""
    inside = {path: one for path, one in places.items() if path.startswith(top.rstrip("/") + "/")}
    if access != "empty" and "empty" not in inside.values():
        yield top
        return
    if not inside:
        return
    taken = {path.removeprefix(top.rstrip("/") + "/").partition("/")[0] for path in inside}
    for name in taken if access == "empty" else list_names(top):
        path = os.path.join(top, name)
        if os.path.islink(path):
            continue
        if name in taken:
            yield from split_places(inside, path, places.get(path, access))
        elif access != "empty":
            yield path


def restrict_to_reading(readable: Iterable[str], version: int) -> None:
    """Restrict this thread and its children to reading below these paths. Landlock still permits truncating a file
    opened for reading, which the seccomp filter forbids."""
    reading = READ_FILE | READ_DIR
    everything = reading | _get_writing_rights(version) & ~TRUNCATE
    rules = [*((path, reading) for path in readable), (os.devnull, reading | WRITE_FILE)]
    _restrict(everything, rules, version, tcp=False)


def _restrict(handled: int, rules: Iterable[tuple[str, int]], version: int, *, tcp: bool) -> None:
    network = BIND_TCP | CONNECT_TCP if version >= 4 and not tcp else 0
    scope = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scope)
    ruleset = call("landlock_create_ruleset", attributes, 24 if version >= 6 else 16 if version >= 4 else 8, 0)
    try:
        for path, rights in rules:
            _add_rule(ruleset, path, rights)
        call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _get_writing_rights(version: int) -> int:
    rights = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_ANYTHING
    return rights | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # A missing place needs no permission.
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= WRITE_FILE | TRUNCATE | READ_FILE | EXECUTE
        call("landlock_add_rule", ruleset, 1, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)

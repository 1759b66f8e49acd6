"""Landlock: which places a process and all it starts may write to. Standard library only."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from ollm.system.sandbox.kernel import PR_SET_NO_NEW_PRIVS, call, prctl

WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE, REFER, TRUNCATE = (
    1 << bit for bit in (1, 2, 3, 4, 5, 13, 14)
)
MAKE_ANYTHING = sum(1 << bit for bit in range(6, 13))
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2


def get_landlock_version() -> int:
    """The version of Landlock's interface that this kernel speaks; 0 without Landlock."""
    try:
        return call("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def restrict_writes(writable: Iterable[str], version: int, *, tcp: bool = True, scoped: bool = True) -> None:
    """From here on this process and its children change files under these paths only; where the kernel can, they
    reach neither processes nor abstract sockets outside (`scoped`), and without `tcp` bind and connect none."""
    handled = _get_writing_rights(version)
    _restrict(handled, [(path, handled) for path in writable], version, tcp=tcp, scoped=scoped)


def restrict_to_reading(readable: Iterable[str], version: int) -> None:
    """From here on this thread and what it starts read below these paths only, and change nothing; but for cutting a
    file that is opened to be read, which the filter of its system calls forbids."""
    reading = READ_FILE | READ_DIR
    everything = reading | _get_writing_rights(version) & ~TRUNCATE
    rules = [*((path, reading) for path in readable), (os.devnull, reading | WRITE_FILE)]
    _restrict(everything, rules, version, tcp=False, scoped=True)


def _restrict(handled: int, rules: Iterable[tuple[str, int]], version: int, *, tcp: bool, scoped: bool) -> None:
    network = BIND_TCP | CONNECT_TCP if version >= 4 and not tcp else 0
    scope = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if version >= 6 and scoped else 0
    attributes = struct.pack("=QQQ", handled, network, scope)
    length = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = call("landlock_create_ruleset", ctypes.create_string_buffer(attributes, 24), length, 0)
    try:
        for path, rights in rules:
            _add_rule(ruleset, path, rights)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
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
        return  # what is not there needs no permission
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= WRITE_FILE | TRUNCATE | READ_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
        call("landlock_add_rule", ruleset, 1, rule, 0)
    finally:
        os.close(place)

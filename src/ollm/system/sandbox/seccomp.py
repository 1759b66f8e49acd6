"""Filters the system calls of a sandboxed process: assembles a BPF program and passes it to seccomp."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from functools import cache, cached_property
from typing import NamedTuple

from ollm.system.sandbox.kernel import ALL_NAMESPACES, AUDIT_ARCH, MACHINE, call, get_call_number

ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
NEW_LISTENER, WAIT_KILLABLE = 8, 32
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_DGRAM, SOCK_RAW = 2, 3
TERMINAL_INJECTIONS = (0x5412, 0x541C)  # The numbers of TIOCSTI and TIOCLINUX.
# SETFLAGS in both widths, SETVERSION, FSSETXATTR, ENABLE_VERITY, SET_ENCRYPTION_POLICY: a file open to read is enough
FILE_FLAG_CHANGES = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613)
# what changes another process of the user without a signal, and which argument is the process; 0 is the caller itself
OTHER_PROCESSES = dict.fromkeys(
    "prlimit64 sched_setscheduler sched_setparam sched_setattr sched_setaffinity migrate_pages move_pages".split(), 0
) | {"setpriority": 1, "ioprio_set": 1}
X32_BIT = 0x40000000
UNCHANGED = ALL_BITS = 0xFFFFFFFF

FORBIDDEN = (
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp mount umount2 pivot_root chroot "
    "open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr unshare setns keyctl "
    "add_key request_key io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd "
    "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl "
    "quotactl_fd open_by_handle_at syslog iopl ioperm vhangup settimeofday clock_settime adjtimex clock_adjtime "
    "sethostname setdomainname fanotify_init"
).split()
SHARED_MEMORY = ("shmget", "semget", "msgget", "mq_open")  # Without an IPC namespace its names are visible outside.
NAMING = (
    "creat mkdir mkdirat mknod mknodat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat "
    "rmdir truncate"
).split()
CHANGING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MODES = {"chmod": 1, "fchmodat": 2, "fchmodat2": 2, "fchmod": 1}  # The value is the index of the mode argument.
MODES_OF_NEW = {"creat": 1, "mknod": 1, "mknodat": 2}  # The kernel makes no setuid or setgid folder.
OPENING = {"open": 1, "openat": 2}  # The value is the index of the flags; the mode follows.
CREATING_FLAGS = os.O_CREAT | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY
FOREIGN_RIGHTS = 0o6000  # A setuid or setgid file runs with its owner's or group's rights.
OLD_TIMES = ("utime", "utimes", "futimesat")
OWNERS = {"chown": 1, "lchown": 1, "fchown": 1, "fchownat": 2}  # The value is the index of the user argument.
ATTRIBUTES = (
    "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr"
).split()

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
Instruction = tuple[int, int, int, int]
INSTRUCTION_BYTES = 8


def fail_with(number: int) -> int:
    """Return the action that makes a call fail with this error."""
    return 0x00050000 | number


class ArgumentTest(NamedTuple):
    """A test of the lower half of an argument, masked: `operation` with one of the values, or with none of them."""

    argument: int
    operation: int
    values: tuple[int, ...]
    mask: int = ALL_BITS
    negated: bool = False

    def assemble(self, rest: int) -> list[Instruction]:
        """Go on after these instructions if the condition is met, else skip the `rest` that follows."""
        ahead = range(len(self.values) - 1, -1, -1)
        tests = [
            (self.operation, count + rest, 0, value)
            if self.negated
            else (self.operation, count, 0 if count else rest, value)
            for count, value in zip(ahead, self.values, strict=True)
        ]
        return [(_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * self.argument), (_AND, 0, 0, self.mask), *tests]


def has_any_bit(argument: int, bits: int) -> ArgumentTest:
    return ArgumentTest(argument, _ANY_BIT, (bits,))


def is_one_of(argument: int, *values: int, mask: int = ALL_BITS) -> ArgumentTest:
    return ArgumentTest(argument, _EQUAL, values, mask)


def is_none_of(argument: int, *values: int, mask: int = ALL_BITS) -> ArgumentTest:
    return ArgumentTest(argument, _EQUAL, values, mask, negated=True)


class CallFilter:
    """A seccomp program, built rule by rule: the first one that applies decides, and a call without one is allowed."""

    def __init__(self) -> None:
        self._program: list[Instruction] = [
            (_LOAD, 0, 0, _ARCH),
            (_EQUAL, 1, 0, AUDIT_ARCH),
            (_RETURN, 0, 0, fail_with(errno.ENOSYS)),
            (_LOAD, 0, 0, _NUMBER),
        ]
        if MACHINE == "x86_64":
            self._program += [(_AT_LEAST, 0, 1, X32_BIT), (_RETURN, 0, 0, fail_with(errno.ENOSYS))]

    def add_rule(self, names: Iterable[str], action: int, *conditions: ArgumentTest) -> None:
        """Apply `action` to these calls if their arguments meet all conditions."""
        body: list[Instruction] = [(_RETURN, 0, 0, action)]
        for condition in reversed(conditions):
            body = [*condition.assemble(len(body)), *body]
        if conditions:
            body.append((_LOAD, 0, 0, _NUMBER))  # The next rules need the call number.
        for number in map(get_call_number, names):
            self._program += [(_EQUAL, 0, len(body), number), *body] if number >= 0 else []

    @cached_property
    def _code(self) -> ctypes.Array[ctypes.c_char]:
        program = [*self._program, (_RETURN, 0, 0, ALLOW)]
        code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
        return ctypes.create_string_buffer(code, len(code))

    def install(self, *, listen: bool) -> int:
        """Install the filter permanently; with `listen`, return the descriptor for its notifications."""
        header = struct.pack("@HP", len(self._code) // INSTRUCTION_BYTES, ctypes.addressof(self._code))
        if not listen:
            call("seccomp", 1, 0, header)
            return -1
        try:
            return call("seccomp", 1, NEW_LISTENER | WAIT_KILLABLE, header)
        except OSError:
            return call("seccomp", 1, NEW_LISTENER, header)


def _forbid_changes_of_system(calls: CallFilter, *, alone: bool) -> None:
    """Forbid what no sandbox may do; with `alone`, also what separate namespaces would contain."""
    refused = fail_with(errno.EPERM)
    calls.add_rule(FORBIDDEN, refused)
    calls.add_rule(["clone"], refused, has_any_bit(0, ALL_NAMESPACES & ~0x80))
    calls.add_rule(["ioctl"], refused, is_one_of(1, *TERMINAL_INJECTIONS, *FILE_FLAG_CHANGES))
    if alone:
        calls.add_rule(["clone3"], fail_with(errno.ENOSYS))  # Its flags are in memory; C libraries then use clone.
        calls.add_rule(SHARED_MEMORY, refused)
        for name, argument in OTHER_PROCESSES.items():
            calls.add_rule([name], refused, is_none_of(argument, 0))


@cache
def build_box_filter(
    *, network: bool, unix_sockets: bool, namespaces: bool, protects_files: bool = False
) -> CallFilter:
    """Build the filter of a box. Files are opened and named at native speed; only connections to sockets, modes with
    setuid or setgid, and without `namespaces` all modes and times of files go to the broker. Without `namespaces`,
    named shared memory and changes of owners and attributes are also forbidden, since no mount or Landlock rule covers
    them. With `protects_files`, all calls that change files go to the broker."""
    calls, refused = CallFilter(), fail_with(errno.EPERM)
    decided = NOTIFY if unix_sockets else refused  # A box that only reads has no broker.
    for name, flags in OPENING.items():  # Opening is decided first, so it costs only a few steps.
        if protects_files:  # The broker opens the file without such modes.
            calls.add_rule([name], NOTIFY, has_any_bit(flags, CHANGING_FLAGS))
        else:
            calls.add_rule([name], refused, has_any_bit(flags, CREATING_FLAGS), has_any_bit(flags + 1, FOREIGN_RIGHTS))
        calls.add_rule([name], ALLOW)
    calls.add_rule(["openat2"], fail_with(errno.ENOSYS))  # The filter cannot see its flags and mode in memory.
    for name, argument in MODES_OF_NEW.items():
        calls.add_rule([name], refused, has_any_bit(argument, FOREIGN_RIGHTS))
    _forbid_changes_of_system(calls, alone=not namespaces)
    _limit_sockets(calls, network=network, unix_sockets=unix_sockets)
    if namespaces:
        for name, argument in MODES.items():
            calls.add_rule([name], decided, has_any_bit(argument, FOREIGN_RIGHTS))
    else:
        calls.add_rule(ATTRIBUTES, fail_with(errno.EOPNOTSUPP))
        for name, user in OWNERS.items():
            calls.add_rule([name], refused, is_none_of(user, os.geteuid(), UNCHANGED))
            calls.add_rule([name], refused, is_none_of(user + 1, os.getegid(), UNCHANGED))
            calls.add_rule([name], fail_with(0))  # Copying programs need it for files of ours.
        calls.add_rule(OLD_TIMES, fail_with(errno.ENOSYS))
        calls.add_rule(["utimensat", *MODES], decided)
    if protects_files:
        calls.add_rule(NAMING, NOTIFY)
    return calls


def _limit_sockets(calls: CallFilter, *, network: bool, unix_sockets: bool) -> None:
    """Leave only sockets of the network and, connected by the broker, those of Unix. Datagrams of Unix are forbidden:
    they are sent to an address in memory. (The kernel's raw Unix sockets are datagram sockets as well, and one of a
    pair can send elsewhere.)"""
    refused = fail_with(errno.EACCES)
    datagrams = is_one_of(0, AF_UNIX), is_one_of(1, SOCK_DGRAM, SOCK_RAW, mask=0xF)
    calls.add_rule(["socket", "socketpair"], refused, *datagrams)
    families = [*([AF_INET, AF_INET6] if network else []), *([AF_UNIX] if unix_sockets else [])]
    if network:
        calls.add_rule(["socket"], ALLOW, is_one_of(0, AF_NETLINK), is_one_of(2, 0))  # Programs read routes with it.
    if unix_sockets:
        calls.add_rule(["connect"], NOTIFY)
    calls.add_rule(["socket"], refused, is_none_of(0, *families))
    calls.add_rule(["socketpair"], refused, is_none_of(0, AF_UNIX))


@cache
def build_helper_filter() -> CallFilter:
    """Build the filter of our read-only helpers: they cannot name or truncate files, change metadata or use sockets.
    Truncating a file opened for reading is forbidden here, since Landlock would check that right for each file at every
    directory up to the root."""
    calls, refused = CallFilter(), fail_with(errno.EPERM)
    for name, flags in OPENING.items():
        not_writing = is_none_of(flags, os.O_WRONLY, os.O_RDWR, mask=os.O_ACCMODE)
        calls.add_rule([name], refused, has_any_bit(flags, os.O_TRUNC), not_writing)
        calls.add_rule([name], ALLOW)
    calls.add_rule(["openat2"], fail_with(errno.ENOSYS))  # The filter cannot see its flags in memory.
    _forbid_changes_of_system(calls, alone=True)
    calls.add_rule([*OWNERS, *ATTRIBUTES, *NAMING, *MODES, *OLD_TIMES, "utimensat"], refused)
    calls.add_rule(["socket", "socketpair", "connect"], fail_with(errno.EACCES))
    return calls

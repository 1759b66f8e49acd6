"""Filters the system calls of a sandboxed process: assembles a BPF program and passes it to seccomp."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from functools import cache, cached_property

from ollm.system.sandbox.kernel import ALL_NAMESPACES, AUDIT_ARCH, MACHINE, call, get_call_number

ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
NEW_LISTENER, WAIT_KILLABLE = 8, 32
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_DGRAM, SOCK_RAW = 2, 3
TERMINAL_INJECTIONS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
# SETFLAGS in both widths, SETVERSION, FSSETXATTR, ENABLE_VERITY, SET_ENCRYPTION_POLICY: a file open to read is enough
FILE_FLAG_CHANGES = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613)
# what changes another process of the user without a signal, and which argument is the process; 0 is the caller itself
OTHER_PROCESSES = dict.fromkeys(
    "prlimit64 sched_setscheduler sched_setparam sched_setattr sched_setaffinity migrate_pages move_pages".split(), 0
) | {"setpriority": 1, "ioprio_set": 1}
X32_BIT = 0x40000000
UNCHANGED = 0xFFFFFFFF

FORBIDDEN = (
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp mount umount2 pivot_root chroot "
    "open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr unshare setns keyctl "
    "add_key request_key io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd "
    "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl "
    "quotactl_fd open_by_handle_at syslog iopl ioperm vhangup settimeofday clock_settime adjtimex clock_adjtime "
    "sethostname setdomainname fanotify_init"
).split()
SHARED_MEMORY = ("shmget", "semget", "msgget", "mq_open")  # has names outside where there is no IPC namespace
NAMING = (
    "creat mkdir mkdirat mknod mknodat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat "
    "rmdir truncate"
).split()
CHANGING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MODES = {"chmod": 1, "fchmodat": 2, "fchmodat2": 2, "fchmod": 1}  # and which argument is the mode
MODES_OF_NEW = {"creat": 1, "mknod": 1, "mknodat": 2}  # the kernel itself makes no folder setuid or setgid
OPENING = {"open": 1, "openat": 2}  # and which argument holds the flags; the mode follows
CREATING_FLAGS = os.O_CREAT | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY
FOREIGN_RIGHTS = 0o6000  # setuid and setgid: whoever runs such a file has the rights of its owner or group
OLD_TIMES = ("utime", "utimes", "futimesat")
OWNERS = {"chown": 1, "lchown": 1, "fchown": 1, "fchownat": 2}  # and which argument is the user
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


class CallFilter:
    """A seccomp program, built rule by rule; calls without a rule are allowed."""

    def __init__(self) -> None:
        self._program: list[Instruction] = [
            (_LOAD, 0, 0, _ARCH),
            (_EQUAL, 1, 0, AUDIT_ARCH),
            (_RETURN, 0, 0, fail_with(errno.ENOSYS)),
            (_LOAD, 0, 0, _NUMBER),
        ]
        if MACHINE == "x86_64":
            self._program += [(_AT_LEAST, 0, 1, X32_BIT), (_RETURN, 0, 0, fail_with(errno.ENOSYS))]

    def add_rule(self, names: Iterable[str], action: int) -> None:
        for name in names:
            if (number := get_call_number(name)) >= 0:
                self._program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, action)]

    def add_bit_rule(self, name: str, argument: int, bits: int, action: int) -> None:
        """Apply `action` to calls with any of these bits set in an argument."""
        self._add_call_body(name, [*_load(argument), (_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, action)])

    def forbid_cutting(self, name: str, argument: int, action: int) -> None:
        """Decide completely about a call that opens files with the flags in this argument: `action` if it would
        truncate a file without opening it for writing, else allow. Added first, it costs a few steps per file instead
        of all later rules."""
        cuts = [(_ANY_BIT, 0, 4, os.O_TRUNC), (_AND, 0, 0, os.O_ACCMODE), (_EQUAL, 2, 0, os.O_WRONLY)]
        tests = [*cuts, (_EQUAL, 1, 0, os.O_RDWR), (_RETURN, 0, 0, action), (_RETURN, 0, 0, ALLOW)]
        self._add_call_body(name, [*_load(argument), *tests])

    def forbid_new_modes(self, name: str, flags: int, bits: int, action: int) -> None:
        """All there is to say about a call that opens files: `action` if it makes one with any of these bits in the
        mode, which is the argument after the flags. Said first, like `forbid_cutting`."""
        made = [*_load(flags), (_ANY_BIT, 0, 3, CREATING_FLAGS), *_load(flags + 1), (_ANY_BIT, 0, 1, bits)]
        self._add_call_body(name, [*made, (_RETURN, 0, 0, action), (_RETURN, 0, 0, ALLOW)])

    def add_value_rule(self, name: str, argument: int, values: Iterable[int], action: int) -> None:
        """Apply `action` to calls in which an argument has one of these values."""
        tests: list[Instruction] = []
        for value in values:
            tests += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, action)]
        self._add_call_body(name, [*_load(argument), *tests])

    def allow_only(self, name: str, allowed: Iterable[tuple[int, int | None]], action: int) -> None:
        """Allow only calls whose first argument (and third, if given) is among these."""
        body: list[Instruction] = []
        for first, third in allowed:
            then = [*_load(0), (_EQUAL, 0, 1 if third is None else 3, first)]
            if third is not None:
                then += [*_load(2), (_EQUAL, 0, 1, third)]
            body += [*then, (_RETURN, 0, 0, ALLOW)]
        self._add_call_body(name, [*body, (_RETURN, 0, 0, action)])

    def forbid_unix_datagrams(self, name: str) -> None:
        """Forbid sockets that send to an address in memory, which is visible only when it is too late. (The kernel's
        raw Unix sockets are datagram sockets as well, and one of a pair can send elsewhere.)"""
        kinds = [*_load(1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, SOCK_DGRAM), (_EQUAL, 0, 1, SOCK_RAW)]
        tests = [*_load(0), (_EQUAL, 0, len(kinds) + 1, AF_UNIX), *kinds]
        self._add_call_body(name, [*tests, (_RETURN, 0, 0, fail_with(errno.EACCES))])

    def allow_for_self(self, name: str, argument: int, action: int) -> None:
        """Allow only calls about the caller itself, given as 0 in this argument."""
        self._add_call_body(name, [*_load(argument), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, action)])

    def pretend_own(self, name: str, first: int, action: int) -> None:
        """Let a call that gives a file to ourselves succeed without effect, as needed by programs that copy files with
        their metadata. Any other owner or group (arguments `first` and the next) gets `action`."""
        body: list[Instruction] = []
        for argument, own in ((first, os.geteuid()), (first + 1, os.getegid())):
            body += [*_load(argument), (_EQUAL, 2, 0, own), (_EQUAL, 1, 0, UNCHANGED), (_RETURN, 0, 0, action)]
        self._add_call_body(name, [*body, (_RETURN, 0, 0, fail_with(0))])

    def _add_call_body(self, name: str, body: list[Instruction]) -> None:
        """Add `body` for this call only. It may fall through, so the call's number is loaded again after it."""
        number = get_call_number(name)
        if number >= 0:
            self._program += [(_EQUAL, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NUMBER)]

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


def _load(argument: int) -> list[Instruction]:
    return [(_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument)]


def _forbid_changes_of_system(calls: CallFilter, *, alone: bool) -> None:
    """Forbid what no sandbox may do; with `alone`, also what separate namespaces would contain."""
    calls.add_rule(FORBIDDEN, fail_with(errno.EPERM))
    calls.add_bit_rule("clone", 0, ALL_NAMESPACES & ~0x80, fail_with(errno.EPERM))
    calls.add_value_rule("ioctl", 1, (*TERMINAL_INJECTIONS, *FILE_FLAG_CHANGES), fail_with(errno.EPERM))
    if alone:
        calls.add_rule(["clone3"], fail_with(errno.ENOSYS))  # its flags are in memory; C libraries fall back to clone
        calls.add_rule(SHARED_MEMORY, fail_with(errno.EPERM))
        for name, argument in OTHER_PROCESSES.items():
            calls.allow_for_self(name, argument, fail_with(errno.EPERM))


@cache
def build_box_filter(
    *, network: bool, unix_sockets: bool, namespaces: bool, protects_files: bool = False
) -> CallFilter:
    """Build the filter of a box. Files are opened and named at native speed; only connections to sockets, modes with
    setuid or setgid, and without `namespaces` all modes and times of files go to the broker. Without `namespaces`,
    named shared memory and changes of owners and attributes are also forbidden, since no mount or Landlock rule covers
    them. With `protects_files`, all calls that change files go to the broker."""
    calls = CallFilter()
    if not protects_files:  # else the broker opens files, without such modes
        for name, flags in OPENING.items():
            calls.forbid_new_modes(name, flags, FOREIGN_RIGHTS, fail_with(errno.EPERM))
    calls.add_rule(["openat2"], fail_with(errno.ENOSYS))  # its flags and mode are in memory
    for name, argument in MODES_OF_NEW.items():
        calls.add_bit_rule(name, argument, FOREIGN_RIGHTS, fail_with(errno.EPERM))
    _forbid_changes_of_system(calls, alone=not namespaces)
    families: list[tuple[int, int | None]] = [(AF_NETLINK, 0)] if network else []
    families += [(AF_INET, None), (AF_INET6, None)] if network else []
    families += [(AF_UNIX, None)] if unix_sockets else []
    decided = NOTIFY if unix_sockets else fail_with(errno.EPERM)  # a box that only reads has no broker
    calls.forbid_unix_datagrams("socket")
    calls.forbid_unix_datagrams("socketpair")
    if unix_sockets:
        calls.add_rule(["connect"], NOTIFY)
    calls.allow_only("socket", families, fail_with(errno.EACCES))
    calls.allow_only("socketpair", [(AF_UNIX, None)], fail_with(errno.EACCES))
    if not namespaces:
        calls.add_rule(ATTRIBUTES, fail_with(errno.EOPNOTSUPP))
        for name, first in OWNERS.items():
            calls.pretend_own(name, first, fail_with(errno.EPERM))
        calls.add_rule(OLD_TIMES, fail_with(errno.ENOSYS))
        calls.add_rule(["utimensat", *MODES], decided)
    else:
        for name, argument in MODES.items():
            calls.add_bit_rule(name, argument, FOREIGN_RIGHTS, decided)
    if protects_files:
        calls.add_rule(NAMING, NOTIFY)
        calls.add_bit_rule("openat", 2, CHANGING_FLAGS, NOTIFY)
        calls.add_bit_rule("open", 1, CHANGING_FLAGS, NOTIFY)
    return calls


@cache
def build_helper_filter() -> CallFilter:
    """Build the filter of our read-only helpers: they cannot name or truncate files, change metadata or use sockets.
    Truncating a file opened for reading is forbidden here, since Landlock would check that right for each file at every
    directory up to the root."""
    calls = CallFilter()
    calls.forbid_cutting("openat", 2, fail_with(errno.EPERM))
    calls.forbid_cutting("open", 1, fail_with(errno.EPERM))
    calls.add_rule(["openat2"], fail_with(errno.ENOSYS))  # its flags are in memory
    _forbid_changes_of_system(calls, alone=True)
    calls.add_rule([*OWNERS, *ATTRIBUTES, *NAMING, *MODES, *OLD_TIMES, "utimensat"], fail_with(errno.EPERM))
    calls.add_rule(["socket", "socketpair", "connect"], fail_with(errno.EACCES))
    return calls

"""The Linux system calls that sandboxes need, with their x86-64 and aarch64 numbers. Standard library only."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

LINUX = sys.platform == "linux"
MACHINE = os.uname().machine if LINUX else ""
AUDIT_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # ELF machine with flags for 64 bits and little-endian.
AUDIT_ARCH = AUDIT_ARCHES.get(MACHINE, 0)
_COLUMN = 0 if MACHINE == "x86_64" else 1

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
ALL_NAMESPACES = 0x7E020080  # Every CLONE_NEW* flag, also the time namespace's.

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE, MS_RDONLY = 2, 4, 8, 0x4000, 0x40000, 1
OPEN_TREE_CLONE, AT_RECURSIVE, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, AT_FDCWD = 1, 0x8000, 0x1000, 0x100, -100
STATX_BYTES, STATX_BIRTH, STATX_BIRTH_AT = 256, 0x800, 80
MOUNT_RDONLY, MOUNT_NOSUID, MOUNT_NODEV = 1, 2, 4

# name: (x86-64, aarch64); -1 where a machine has no such call
NUMBERS = {
    "open": (2, -1),
    "creat": (85, -1),
    "openat": (257, 56),
    "openat2": (437, 437),
    "mkdir": (83, -1),
    "mkdirat": (258, 34),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "rename": (82, -1),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, -1),
    "linkat": (265, 37),
    "symlink": (88, -1),
    "symlinkat": (266, 36),
    "unlink": (87, -1),
    "unlinkat": (263, 35),
    "rmdir": (84, -1),
    "truncate": (76, 45),
    "chmod": (90, -1),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchmod": (91, 52),
    "utimensat": (280, 88),
    "statx": (332, 291),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "chown": (92, -1),
    "lchown": (94, -1),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "ioctl": (16, 29),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "syncfs": (306, 267),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "fanotify_init": (300, 262),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "seccomp": (317, 277),
    "close_range": (436, 436),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "capset": (126, 91),
    "prctl": (157, 167),
}
NAMES = {numbers[_COLUMN]: name for name, numbers in NUMBERS.items() if numbers[_COLUMN] >= 0}

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def get_call_number(name: str) -> int:
    """Return the number of a system call on this machine, or -1 if there is none."""
    return NUMBERS[name][_COLUMN]


def call(name: str, *arguments: int | str | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Make a system call. Raises OSError if it fails."""
    words = [
        ctypes.c_long(one) if isinstance(one, int) else os.fsencode(one) if isinstance(one, str) else one
        for one in arguments
    ]
    result = int(_syscall(ctypes.c_long(get_call_number(name)), *words))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int) -> None:
    call("prctl", option, value, 0, 0, 0)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    call("mount", source, target, kind, flags, options)


def clone_tree(path: str, *, recursive: bool = True) -> int:
    """Return a descriptor of a copy of the mount at a path, and of those under it, for `attach_tree`."""
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC
    return call("open_tree", AT_FDCWD, path, flags | (AT_RECURSIVE if recursive else 0))


def attach_tree(tree: int, path: str) -> None:
    """Attach the mounts of a descriptor at a path, and close it."""
    try:
        call("move_mount", tree, "", AT_FDCWD, path, 0x4)  # The flag is MOVE_MOUNT_F_EMPTY_PATH.
    finally:
        os.close(tree)


def bind(source: str, target: str, *, attributes: int = 0, writable: bool = False, recursive: bool = True) -> None:
    """Mount a path, with the mounts under it, at another one too, with added attributes; or `writable`, if we made it
    read-only before."""
    tree = clone_tree(source, recursive=recursive)
    if attributes:
        set_mount_attributes("", attributes, tree=tree)
    if writable:  # Only the topmost mount becomes writable.
        call("mount_setattr", tree, "", AT_EMPTY_PATH, struct.pack("=QQQQ", 0, MOUNT_RDONLY, 0, 0), 32)
    attach_tree(tree, target)


def set_mount_attributes(path: str, attributes: int, *, tree: int = AT_FDCWD) -> None:
    """Add attributes to every mount at and under a path (or, with an empty path, of the descriptor `tree`)."""
    wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call("mount_setattr", tree, path, AT_RECURSIVE | (0 if path else AT_EMPTY_PATH), wanted, 32)


def read_birth_time(descriptor: int, path: str = "") -> float | None:
    """Return the time at which a file or link was made, which no program can change, or None if it is not known."""
    buffer = ctypes.create_string_buffer(STATX_BYTES)
    call("statx", descriptor, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BIRTH, buffer)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, STATX_BIRTH_AT)
    known = struct.unpack_from("=I", buffer)[0] & STATX_BIRTH
    return float(seconds + nanoseconds / 1e9) if known else None

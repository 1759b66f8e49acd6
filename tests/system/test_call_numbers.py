"""The numbers of system calls, against the kernel's own tables: a wrong one would leave a call free that must be held.

The facts are those of the kernel's headers: asm/unistd_64.h for x86-64, asm-generic/unistd.h for aarch64. Where the
headers are installed they are read as well.
"""

import re
from pathlib import Path

import pytest

from ollm.system.sandbox.kernel import AUDIT_ARCHES, NUMBERS
from ollm.system.sandbox.seccomp import ATTRIBUTES, FORBIDDEN, NAMING, OLD_TIMES, OWNERS, SHARED_MEMORY

HEADERS = (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm-generic/unistd.h"))
DEFINED = re.compile(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", re.MULTILINE)
FACTS = """
acct=163/89 add_key=248/217 adjtimex=159/171 bpf=321/280 capset=126/91 chmod=90/- chown=92/- chroot=161/51
clock_adjtime=305/266 clock_settime=227/112 clone=56/220 clone3=435/435 close_range=436/436 connect=42/203
creat=85/- delete_module=176/106 fanotify_init=300/262 fchmod=91/52 fchmodat=268/53 fchown=93/55 fchownat=260/54
finit_module=313/273 fremovexattr=199/16 fsconfig=431/431 fsetxattr=190/7 fsmount=432/432 fsopen=430/430
fspick=433/433 futimesat=261/- init_module=175/105 io_uring_enter=426/426 io_uring_register=427/427
io_uring_setup=425/425 ioctl=16/29 ioperm=173/- iopl=172/- kcmp=312/272 kexec_file_load=320/294 kexec_load=246/104
keyctl=250/219 landlock_add_rule=445/445 landlock_create_ruleset=444/444 landlock_restrict_self=446/446 lchown=94/-
link=86/- linkat=265/37 lremovexattr=198/15 lsetxattr=189/6 mkdir=83/- mkdirat=258/34 mknod=133/- mknodat=259/33
mount=165/40 mount_setattr=442/442 move_mount=429/429 mq_open=240/180 msgget=68/186 open=2/-
open_by_handle_at=304/265 open_tree=428/428 openat=257/56 openat2=437/437 perf_event_open=298/241
pidfd_getfd=438/438 pidfd_open=434/434 prlimit64=302/261 setpriority=141/140 ioprio_set=251/30 sched_setscheduler=144/119
sched_setparam=142/118 sched_setattr=314/274 sched_setaffinity=203/122 migrate_pages=256/238 move_pages=279/239 pivot_root=155/41 prctl=157/167 process_madvise=440/440 process_vm_readv=310/270
process_vm_writev=311/271 ptrace=101/117 quotactl=179/60 quotactl_fd=443/443 reboot=169/142 removexattr=197/14
rename=82/- renameat=264/38 renameat2=316/276 request_key=249/218 rmdir=84/- seccomp=317/277 semget=64/190
setdomainname=171/162 sethostname=170/161 setns=308/268 settimeofday=164/170 setxattr=188/5 shmget=29/194
socket=41/198 socketpair=53/199 statx=332/291 swapoff=168/225 swapon=167/224 symlink=88/- symlinkat=266/36 syncfs=306/267 syslog=103/116
truncate=76/45 umount2=166/39 unlink=87/- unlinkat=263/35 unshare=272/97 userfaultfd=323/282
utime=132/- utimensat=280/88 utimes=235/- vhangup=153/58
"""
# Calls newer than those headers. From 424 on a number is the same on every machine.
NEW = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469, "open_tree_attr": 467}


def parse_facts() -> dict[str, tuple[int, int]]:
    words = (word.partition("=")[::2] for word in FACTS.split())
    return {
        name: tuple(-1 if one == "-" else int(one) for one in numbers.split("/"))  # type: ignore[misc]
        for name, numbers in words
    }


def test_every_number_is_that_of_the_kernel() -> None:
    assert {**parse_facts(), **{name: (number, number) for name, number in NEW.items()}} == NUMBERS


def test_new_calls_have_one_number_everywhere() -> None:
    assert all(x86 == arm for x86, arm in NUMBERS.values() if x86 >= 424 or arm >= 424)


@pytest.mark.parametrize("column", [0, 1], ids=["x86-64", "aarch64"])
def test_the_headers_of_this_machine_say_the_same(column: int) -> None:
    if not HEADERS[column].exists():
        assert parse_facts()  # there is nothing to compare with here
        return
    defined = {}
    for name, number in DEFINED.findall(HEADERS[column].read_text()):
        defined.setdefault(name, int(number))
    for name, numbers in parse_facts().items():
        assert defined.get(name, -1) == numbers[column], name


def test_every_call_that_a_filter_names_has_a_number() -> None:
    assert set(FORBIDDEN + NAMING + ATTRIBUTES) | set(OWNERS) | set(SHARED_MEMORY) | set(OLD_TIMES) <= NUMBERS.keys()


def test_a_filter_is_for_the_machine_it_says() -> None:
    elf_machines = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64
    assert {name: 0xC0000000 | number for name, number in elf_machines.items()} == AUDIT_ARCHES


def test_what_has_no_number_on_arm_has_a_newer_call_there() -> None:
    newer = {"creat": "openat", "rename": "renameat2", "rmdir": "unlinkat", "lchown": "fchownat"}
    times = dict.fromkeys(OLD_TIMES, "utimensat")
    gone = [name for name, (_, arm) in NUMBERS.items() if arm < 0 and name not in ("iopl", "ioperm")]
    assert all(
        NUMBERS[{**newer, **times}.get(name, {"chmod": "fchmodat", "chown": "fchownat"}.get(name, f"{name}at"))][1] >= 0
        for name in gone
    )

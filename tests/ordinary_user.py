"""Runs a test's body as an ordinary user: root may read and write everything, so a test about permissions proves nothing as root."""

import ctypes
import gc
import os
import pwd
import shutil
import signal
import sqlite3  # noqa: F401 - an ordinary user may not be able to read the interpreter, so what tests need is here before
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

SECONDS = 120


def as_ordinary_user(
    body: Callable[[Path], None],
    *,
    starts_command: bool = False,
    seconds: int = SECONDS,
    within: Path | None = None,
) -> None:
    """Call `body` with a new directory that the user running it owns; fail when it fails, never skip. One that starts the
    command stays root, whose Python may lie where nobody else can go, and what it starts has none of root's powers.
    `within` is where the directory is made, if not among temporary files."""
    directory = Path(tempfile.mkdtemp(prefix="ollm-user-", dir=within)).resolve()
    try:
        if os.geteuid() != 0:
            body(directory)
        else:
            _in_child(body, directory, pwd.getpwnam("root" if starts_command else "nobody"), seconds)
    finally:
        _remove(directory)


def bound_by_permissions() -> None:
    """To be called in a child before it starts a program: what root may do whatever the permissions say, it may not."""
    if os.geteuid() == 0:
        for capability in (1, 2, 3):  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def give_up_permissions() -> None:
    """The same for this process, which starts no program but is one: it, and what it starts, may not."""
    bound_by_permissions()
    if os.geteuid() == 0:
        library, header = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 2)(0x20080522, 0)
        held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
        if library.capget(header, held):
            raise OSError(ctypes.get_errno(), "capget")
        for at in (0, 1, 2):
            held[at] &= ~0b1110
        if library.capset(header, held):
            raise OSError(ctypes.get_errno(), "capset")


def without_capabilities() -> None:
    """The same, for everything root may do: the program looks at other processes as one of the same user does."""
    if os.geteuid() == 0:
        for capability in range(64):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def _in_child(body: Callable[[Path], None], directory: Path, user: pwd.struct_passwd, seconds: int) -> None:
    os.chown(directory, user.pw_uid, user.pw_gid)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        gc.freeze()  # what other tests left behind is theirs: an object with threads would wait here for ever to be freed
        signal.alarm(seconds)
        _run(body, directory, user, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise AssertionError(f"the body failed as an ordinary user (exit {code}):\n{report}")


def _run(body: Callable[[Path], None], directory: Path, user: pwd.struct_passwd, report: int) -> None:
    """The child's whole life: become the user, run the body, tell what went wrong, leave without pytest's own ending."""
    code = 1
    try:
        if user.pw_uid == 0:
            without_capabilities()
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        os.environ["HOME"] = os.environ["OLLM_HOME"] = str(directory)
        os.chdir(directory)
        body(directory)
        code = 0
    except BaseException:
        os.write(report, traceback.format_exc().encode("utf-8", "replace")[-60_000:])
    finally:
        sys.stdout.flush()
        os._exit(code)


def _remove(directory: Path) -> None:
    for path in [directory, *(item for item in directory.rglob("*") if item.is_dir() and not item.is_symlink())]:
        path.chmod(0o700)
    shutil.rmtree(directory)

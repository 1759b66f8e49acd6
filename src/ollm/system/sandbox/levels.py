"""Detects by trying which sandboxes the kernel lets us build, and creates the namespaces of a session.

A version proves nothing: some systems allow a user namespace but remove its capabilities, and containers forbid single
calls. So the exact operations that a command needs are performed and the restrictions verified. Standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from ollm.system.process_tree import become_subreaper, kill_all
from ollm.system.sandbox.box import LEVELS, Box, Level

TRIAL_SECONDS, PROBE_SECONDS = 8, 30  # The limits for one level and for all levels.
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETIMEDOUT)  # They do not concern the kernel.
_PACKAGES = str(Path(__file__).parents[3])
_PROBE = "import sys; sys.path.append(sys.argv[1]); from ollm.system.sandbox.levels import main; main()"


def detect_level() -> tuple[Level, str]:
    """Return the best level that works, tried in a separate process, and why a better one could not be tried, or "" if
    all were."""
    if sys.platform == "darwin":
        from ollm.system.sandbox.seatbelt import is_seatbelt_there

        return "seatbelt" if is_seatbelt_there() else "none", ""
    if sys.platform != "linux":
        return "none", ""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROBE, _PACKAGES],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "none", getattr(error, "strerror", "") or "the test of the sandbox took too long"
    said, _, number = done.stdout.decode("ascii", "replace").strip().partition(" ")
    for level in LEVELS:
        if level == said:
            return level, os.strerror(int(number)) if int(number or 0) else ""
    return "none", "the test of the sandbox ended early"


def main() -> None:
    """Print the best level that works here, and the error that prevented trying a better one, or 0."""
    become_subreaper()
    signal.signal(signal.SIGALRM, _give_up)
    lacking, found = 0, LEVELS[-1]
    for level in LEVELS[:-1]:
        try:
            signal.alarm(TRIAL_SECONDS)
            works = _works(level)
        except OSError as error:
            works, lacking = False, lacking or error.errno or errno.ETIMEDOUT
        finally:
            signal.alarm(0)
            kill_all([os.getpid()])
        if works:
            found = level
            break
    sys.stdout.write(f"{found} {lacking}")


def _give_up(_number: int, _frame: object) -> None:
    raise TimeoutError(errno.ETIMEDOUT, "took too long")


def _works(level: Level) -> bool:
    """Run a command that writes outside, changes a protected file and reads a key; return True if all are blocked.
    Raises OSError if it could not be tried."""
    from ollm.system.sandbox import kernel
    from ollm.system.sandbox.box import find_bubblewrap

    if not kernel.AUDIT_ARCH:
        return False
    with tempfile.TemporaryDirectory(prefix="ollm-probe-") as directory:
        names = ("workspace", "home", "scratch")
        workspace, home, scratch = (os.path.join(os.path.realpath(directory), name) for name in names)
        for path in (workspace, home, scratch):
            os.mkdir(path)
        os.mkdir(os.path.join(home, ".ssh"))
        Path(home, ".ssh", "key").touch()
        Path(workspace, "steers").touch()
        wrapper = find_bubblewrap() if level == "bubblewrap" else ""
        if level == "bubblewrap" and not wrapper:
            return False
        protected = (os.path.join(workspace, "steers"),)
        box = Box("working", workspace, home, covered=(home,), protected=protected, scratch=scratch, wrapper=wrapper)
        try:
            held = (
                _try(box, level)
                and os.listdir(home) == [".ssh"]
                and sorted(os.listdir(workspace)) == ["made", "steers"]
            )
            return held and not os.path.getsize(protected[0])
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            return False


def _try(box: Box, level: Level) -> bool:
    from ollm.system.sandbox.host import BoxRunner

    line = f"echo x > made; echo x > steers; true < {box.home}/.ssh/key && exit 9; echo x > {box.home}/out; exit 7"
    namespaces = make_namespaces(box) if level == "full" else ()
    directory = os.open(box.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    empty = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    fields = {"box": box, "argv": ["/bin/sh", "-c", line], "environment": {}, "session": ""}
    runner, report = BoxRunner(), list[bytes]()
    runner.start(fields, json.dumps(fields).encode(), [directory, empty, empty, empty, *namespaces])
    while not runner.finished:
        report += runner.read_lines()
    runner.stop()
    for line_back in report:
        if line_back.startswith(b"failed "):
            raise OSError(int(line_back.split()[1]), "the box could not be started")
    return b"exited 7" in report


def make_namespaces(box: Box) -> tuple[int, ...]:
    """Return descriptors of a session's shared namespaces: user, mount, network. They keep them alive."""
    from ollm.system.sandbox.mounts import build_base

    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            ours.close()
            socket.send_fds(theirs, [b"n"], build_base(box))
            os._exit(0)
        except OSError as error:
            theirs.send(f"{error.errno or 5} {error}".encode())
        finally:
            os._exit(1)
    theirs.close()
    with ours:
        message, descriptors, _, _ = socket.recv_fds(ours, 500, 3, socket.MSG_CMSG_CLOEXEC)
    os.waitpid(child, 0)
    if len(descriptors) != 3:
        number, _, text = message.decode("utf-8", "replace").partition(" ")
        raise OSError(int(number) if number.isdigit() else 5, text or "no namespaces")
    return tuple(descriptors)

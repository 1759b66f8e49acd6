"""A small world to break out of: a home with secrets, a workspace with a repository, daemons and processes outside."""

import copy
import ctypes
import hashlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ollm.system.path_names import find_git_directories, is_environment_file
from ollm.system.process_tree import become_subreaper
from ollm.system.sandbox.box import (
    WHOLE_LEVELS,
    Box,
    Kind,
    Level,
    Network,
    find_bubblewrap,
    list_covered_places,
    list_visible_places,
)
from ollm.system.sandbox.bubblewrap import start_wrapped_host
from ollm.system.sandbox.host import send_order, start_host
from ollm.system.sandbox.levels import make_namespaces
from ollm.system.sandbox.placeholders import Placeholders

SECRET = "canary-9f3e"
DONE = "did-it"  # what a line prints, put together, when something worked that leaves no trace
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
PROTECTED = (".git", "scripts/hook.sh")
GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")

needs_bubblewrap = pytest.mark.skipif(not find_bubblewrap(), reason="bubblewrap (bwrap) is not installed here")
LEVELS = ["full", pytest.param("bubblewrap", marks=needs_bubblewrap), "landlock"]


def find_place(level: Level) -> Path | None:
    """Where the world is: bubblewrap shows nothing of /tmp, and what is not there cannot be harmed."""
    return None if level != "bubblewrap" else Path("/var/lib") if os.geteuid() == 0 else Path.home()


class World:
    """Everything under `root`; `judge` says what a command got hold of or changed that it must not."""

    def __init__(self, root: Path, level: Level) -> None:
        become_subreaper()
        if not os.access(os.path.realpath(sys.executable), os.X_OK):
            sys.executable = PYTHON  # an ordinary user may not be able to run the one of the tests
        self.root = root.resolve()
        self.level = level
        self.home, self.workspace, self.outside = (self.root / name for name in ("home", "work", "outside"))
        self.scratch = self.root / "scratch"
        self._furnish()
        self._enter()
        self._open_doors()
        self._before = self._seen()
        self._first = frozenset(self._before)

    def _enter(self) -> None:
        self._namespaces: tuple[int, ...] = make_namespaces(self.box("working")) if self.level == "full" else ()
        self._control, self._host = start_host(self._namespaces)

    def sibling(self) -> "World":
        """Another place to run commands in, of the same session."""
        other = copy.copy(self)
        other._control, other._host = start_host(self._namespaces)
        return other

    def box(
        self, kind: Kind, network: Network = "none", approved: tuple[str, ...] = (), protected: tuple[str, ...] = ()
    ) -> Box:
        scratch = "" if self.level == "full" else str(self.scratch)
        workspace, home = str(self.workspace), str(self.home)
        return Box(
            kind,
            workspace,
            home,
            network=network,
            approved=approved,
            scratch=scratch,
            wrapper=find_bubblewrap() if self.level == "bubblewrap" else "",
            covered=tuple(list_covered_places(home)),
            visible=tuple(list_visible_places(home, os.environ.get("PATH", ""))),
            writable=self._find_outer_repository(),
            hidden=(str(self.root / "vault"),),
            protected=protected,
            environment_files=tuple(self._find_environment_files()) if kind == "reading" else (),
        )

    def _find_outer_repository(self) -> tuple[str, ...]:
        found = find_git_directories(str(self.workspace))
        return tuple(path for path in found if not path.startswith(str(self.workspace)))

    def _find_environment_files(self) -> list[str]:
        return [str(path) for path in self.workspace.rglob(".env*") if is_environment_file(path.name)]

    def _list_protected(self) -> tuple[str, ...]:
        git = find_git_directories(str(self.workspace))
        return (*(str(self.workspace / name) for name in PROTECTED if (self.workspace / name).exists()), *git)

    def _furnish(self) -> None:
        for path, text in {
            "home/.ssh/id_rsa": SECRET,
            "home/.aws/credentials": SECRET,
            "home/.netrc": SECRET,
            "home/.bashrc": "# start",
            "home/.config/gh/hosts.yml": SECRET,
            "home/notes.txt": "notes",
            "home/.canary": SECRET,
            "home/other/.env": SECRET,
            "vault/token": SECRET,
            "outside/file": "untouched",
            "work/.env": SECRET,
            "work/deep/er/.env.local": SECRET,
            "work/.env.example": "KEY=",
            "work/src/a.txt": "text",
            "work/AGENTS.md": "be good",
            "work/scripts/hook.sh": "true",
            "work/deep/.vscode/settings.json": "{}",
            "scratch/.keep": "",
        }.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        (self.workspace / "link").symlink_to("../outside/file")
        (self.workspace / "way-out").symlink_to("../outside")
        subprocess.run([*GIT, "init", "-q", str(self.workspace)], check=True)
        subprocess.run([*GIT, "-C", str(self.workspace), "commit", "-q", "--allow-empty", "-m", "one"], check=True)

    def _open_doors(self) -> None:
        """What a boxed process must not reach: a daemon by every kind of socket, and a process with a secret in it."""
        self.socket_in_tmp = f"/tmp/ollm-test-{os.getpid()}-{id(self)}.sock"
        self._daemons = [
            _listen(socket.AF_UNIX, str(self.home / "daemon.sock")),
            _listen(socket.AF_UNIX, f"\0ollm-test-{os.getpid()}"),
            _listen(socket.AF_INET, ("127.0.0.1", 0)),
            _listen(socket.AF_UNIX, self.socket_in_tmp),
            _listen(socket.AF_UNIX, str(self.workspace / "daemon.sock")),
        ]
        self.port = self._daemons[2].getsockname()[1]
        self._datagrams = [
            _receive(socket.AF_INET, ("127.0.0.1", 0)),
            _receive(socket.AF_UNIX, str(self.home / "datagrams.sock")),
        ]
        self.udp_port = self._datagrams[0].getsockname()[1]
        os.mkfifo(self.home / "fifo")
        self._fifo = os.open(self.home / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        sleeping = ["sleep", "1000"]
        self.bystander = subprocess.Popen(sleeping, env={"BYSTANDER": SECRET, "PATH": os.environ["PATH"]})
        self.abstract = f"ollm-test-{os.getpid()}"
        self.shared_memory = SharedMemory()

    def close(self) -> None:
        self.bystander.kill()
        self.bystander.wait()
        self._control.close()
        for daemon in (*self._daemons, *self._datagrams):
            daemon.close()
        self.shared_memory.close()
        Path(self.socket_in_tmp).unlink(missing_ok=True)
        with suppress(OSError):
            os.close(self._fifo)
        for descriptor in self._namespaces:
            with suppress(OSError):
                os.close(descriptor)

    @contextmanager
    def running(self, line: str, network: Network) -> Iterator[None]:
        """A line that runs in the background of the block."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self.run, line, "working", network)
            yield
            future.result(20)

    def run(
        self,
        line: str,
        kind: Kind = "working",
        network: Network = "none",
        approved: tuple[str, ...] = (),
    ) -> str:
        """Run a line of bash in a box, and look after it; what it printed and what the box reported."""
        directory = os.open(self.workspace, os.O_PATH | os.O_DIRECTORY)
        empty, (reading, writing) = os.open(os.devnull, os.O_RDWR), os.pipe()
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "PYTHON": PYTHON,
            **self._places(),
        }
        protected = self._list_protected() if kind == "working" else ()
        Placeholders().make(approved)
        box = self.box(kind, network, approved, protected)._replace(since=time.time())
        fields = {"box": box, "argv": ["/bin/bash", "-c", line], "environment": environment}
        control = start_wrapped_host(box)[0] if box.wrapper else self._control
        send_order(control, json.dumps(fields).encode(), [directory, empty, writing, writing])
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            output = pipe.read().decode("utf-8", "replace")
        report = b""
        while not report.endswith(b"gone\n"):
            report += control.recv(4096)
        if box.wrapper:
            control.close()
        os.close(directory)
        os.close(empty)
        return f"{output}\n[{report.decode()}]"

    def _places(self) -> dict[str, str]:
        places = {
            "W": self.workspace,
            "O": self.outside,
            "PORT": self.port,
            "UDP": self.udp_port,
            "ABSTRACT": self.abstract,
            "SOCK": self.socket_in_tmp,
            "SSH_AUTH_SOCK": self.home / "daemon.sock",
            "SHM": self.shared_memory.key,
        }
        scratch = {} if self.level in WHOLE_LEVELS else {"TMPDIR": self.scratch}
        return {name: str(value) for name, value in {**places, **scratch, "BYSTANDER_PID": self.bystander.pid}.items()}

    def judge(self, output: str, kind: Kind) -> list[str]:
        """What went wrong, in words; the world is put right again."""
        faults = ["a secret was read"] if SECRET in output else []
        faults += ["it was done"] if DONE in output else []
        faults += [f"{daemon.family.name} daemon was reached" for daemon in self._daemons if _was_reached(daemon)]
        faults += ["a datagram arrived" for one in self._datagrams if _received(one)]
        faults += ["something came through a pipe"] if _read_pipe(self._fifo) else []
        faults += [f"{path} was made" for path in (Path("/dev/shm/ollm-test"), Path("/tmp/ollm-test")) if path.exists()]
        faults += [f"{path} has the rights of its owner" for path in self.workspace.rglob("*") if _lends_rights(path)]
        if self.bystander.poll() is not None:
            faults.append("a process outside was ended")
        now = self._seen()
        for path in sorted(self._before.keys() | now.keys()):
            if self._before.get(path) != now.get(path) and (kind == "reading" or not self._may_change(path)):
                faults.append(f"{path} changed")
        if faults:
            self._before = now
        return faults

    def restore_workspace(self) -> None:
        """Take away what a command made; what was there before stays as it is."""
        for folder, names, files in os.walk(self.workspace, topdown=False):
            for path in (Path(folder, name) for name in [*names, *files]):
                if str(path.relative_to(self.root)) not in self._first:
                    with suppress(OSError):
                        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def _may_change(self, path: str) -> bool:
        below = path.removeprefix("work/")
        return path.startswith("work/") and not any(below == one or below.startswith(f"{one}/") for one in PROTECTED)

    def _seen(self) -> dict[str, str]:
        """Every file but those of private temporary places, with its content and permissions."""
        seen = {}
        for folder, names, files in os.walk(self.root):
            for name in [*names, *files]:
                path = Path(folder, name)
                relative = str(path.relative_to(self.root))
                if relative.startswith("scratch"):
                    continue
                info = path.lstat()
                if not (path.is_symlink() or path.is_file() or path.is_dir()) and not relative.startswith("work/"):
                    continue
                body = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
                digest = hashlib.sha256(body.encode() if isinstance(body, str) else body).hexdigest()
                seen[relative] = f"{info.st_mode:o} {digest} {int(info.st_mtime) if path.is_file() else 0}"
        return seen


class SharedMemory:
    """A piece of System V memory of another program, with a secret in it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._libc.shmat.restype = ctypes.c_void_p
        self.key = 0x6F6C0000 + os.getpid() % 0xFFFF
        self._id = self._libc.shmget(self.key, 64, 0o1600)
        assert self._id >= 0
        address = self._libc.shmat(self._id, None, 0)
        ctypes.memmove(address, SECRET.encode() + b"\0", len(SECRET) + 1)

    def close(self) -> None:
        self._libc.shmctl(self._id, 0, None)


def _listen(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.bind(address)
    listening.listen()
    listening.setblocking(False)
    return listening


def _receive(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    receiving = socket.socket(family, socket.SOCK_DGRAM)
    receiving.bind(address)
    receiving.setblocking(False)
    return receiving


def _read_pipe(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 100)
    except BlockingIOError:
        return b""


def _lends_rights(path: Path) -> bool:
    about = path.lstat()
    return stat.S_ISREG(about.st_mode) and about.st_mode & 0o6000 != 0


def _was_reached(daemon: socket.socket) -> bool:
    try:
        daemon.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _received(datagrams: socket.socket) -> bool:
    try:
        datagrams.recv(10)
    except BlockingIOError:
        return False
    return True

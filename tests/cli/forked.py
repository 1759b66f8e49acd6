"""The command as a fork of a process that has imported it already.

Process, streams, environment, working directory, signals and exit code are real; what is saved is importing the same
modules some thousand times in a run. Whoever judges the start itself runs `SCRIPT`.
"""

import asyncio
import fcntl
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.cli.fork_server import NUMBER, ROOT

BEFORE_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC", "GLIBC")  # read once, when an interpreter starts
MAX_COMMANDS_AT_ONCE = 64
RUN = f"\0ollm-tests-{os.environ.pop('PYTEST_XDIST_TESTRUNUID', os.getpid())}"  # of the workers, not of what they start
_threads: dict[int, ThreadPoolExecutor] = {}  # by process: a fork of the tests' process has none of its threads


async def run_aside(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it in a thread, so that the servers of the test go on."""
    if os.getpid() not in _threads:
        _threads[os.getpid()] = ThreadPoolExecutor(MAX_COMMANDS_AT_ONCE)
    return await asyncio.get_running_loop().run_in_executor(_threads[os.getpid()], function, *arguments)


class ForkedProcess:
    """A fork that runs: its number, and its exit code when it has ended."""

    def __init__(self, reply: socket.socket) -> None:
        self._reply = reply
        self._lock = threading.Lock()
        self._code: int | None = None
        self.pid: int = NUMBER.unpack(reply.recv(NUMBER.size))[0]

    @property
    def returncode(self) -> int | None:
        if self._code is None and select.select([self._reply], [], [], 0)[0]:
            self.finish()
        return self._code

    def finish(self) -> int:
        """Wait for its end; the exit code, or minus the signal."""
        with self._lock:
            if self._code is None:
                self._code = int(NUMBER.unpack(self._reply.recv(NUMBER.size))[0])
                self._reply.close()
            return self._code

    async def wait(self) -> int:
        return int(await run_aside(self.finish))

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Asks the other process for forks; there is one for all workers of a run. The first to ask starts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._environment = dict(os.environ)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, suppress(OSError):
            listening.bind(RUN)
            listening.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.fork_server", str(listening.fileno())],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # none can seek, as the streams of the forks
                stderr=subprocess.PIPE,
                pass_fds=[listening.fileno()],
            )
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        while self._control.connect_ex(RUN):
            time.sleep(0.01)  # whoever starts it does not listen yet

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is what a new process would be: asked by the process that made the server, whose user and powers
        it shares, with what an interpreter reads at its start as the server read it."""
        return self._owner == os.getpid() and _choose_start(environment) == _choose_start(self._environment)

    def fork(
        self, arguments: Sequence[str], cwd: str, environment: Mapping[str, str], streams: Sequence[int], **manner: Any
    ) -> ForkedProcess:
        ours, theirs = socket.socketpair()
        document = os.memfd_create("arguments")
        try:
            os.write(document, os.fsencode(json.dumps([list(arguments), cwd, dict(environment), manner])))
            with self._lock:
                socket.send_fds(self._control, [b"fork"], [*streams, document, theirs.fileno()])
        finally:
            os.close(document)
            theirs.close()
        return ForkedProcess(ours)


def _choose_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(BEFORE_START)}


_server: list[ForkServer] = []
_starting = threading.Lock()


def find_fork_server(environment: Mapping[str, str]) -> ForkServer | None:
    """The one of this run, when a fork with this environment is what a new process would be."""
    with _starting:
        if not _server:
            _server.append(ForkServer())
    return _server[0] if _server[0].fits(environment) else None


def finish(
    arguments: Sequence[str],
    cwd: str | os.PathLike[str] | None,
    environment: Mapping[str, str],
    stdin: bytes | None,
    seconds: float = 600,
    **manner: Any,
) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of `ollm arguments`; without `stdin` it has nothing to read. A fork takes a `manner`."""
    server, place = find_fork_server(environment), os.fspath(cwd or Path.cwd())
    if server is None:
        assert not manner
        return _run_script(arguments, place, environment, stdin, seconds)
    (read_in, write_in), (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe(), os.pipe()
    if stdin is None:
        os.close(read_in)
        read_in = os.open(os.devnull, os.O_RDONLY)
    given = [read_in, write_out, write_err]
    try:
        process = server.fork(arguments, place, environment, given, **manner)
    finally:
        for number in given:
            os.close(number)
    try:
        out, err = _exchange(write_in, stdin or b"", (read_out, read_err), seconds)
    except TimeoutError:
        process.kill()
        raise subprocess.TimeoutExpired(list(arguments), seconds) from None
    return process.finish(), out, err


def _run_script(
    arguments: Sequence[str], cwd: str, environment: Mapping[str, str], stdin: bytes | None, seconds: float
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ollm"), *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        timeout=seconds,
        check=False,
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
    )
    return done.returncode, done.stdout, done.stderr


def _exchange(into: int, data: bytes, outputs: Sequence[int], seconds: float) -> list[bytes]:
    """Write all of `data` while reading both outputs to their ends."""
    found: dict[int, bytearray] = {number: bytearray() for number in outputs}
    deadline = time.monotonic() + seconds
    os.set_blocking(into, False)
    with selectors.DefaultSelector() as ready:
        ready.register(into, selectors.EVENT_WRITE)
        for number in outputs:
            ready.register(number, selectors.EVENT_READ)
        try:
            while ready.get_map():
                events = ready.select(deadline - time.monotonic())
                if not events and time.monotonic() > deadline:
                    raise TimeoutError
                for key, _ in events:
                    data = _step(key.fd, into, data, found, ready)
        finally:
            for number in list(ready.get_map()):
                os.close(number)
    return [bytes(found[number]) for number in outputs]


def _step(number: int, into: int, data: bytes, found: dict[int, bytearray], ready: selectors.BaseSelector) -> bytes:
    """What is left to write."""
    if number == into:
        with suppress(BrokenPipeError):
            data = data[os.write(into, data[:65536]) :] if data else b""
            if data:
                return data
        ready.unregister(into)
        os.close(into)
        return b""
    piece = os.read(number, 65536)
    found[number] += piece
    if not piece:
        ready.unregister(number)
        os.close(number)
    return data


class ForkedTerminal:
    """A fork on a terminal of its own, with what a test asks of a child of pexpect."""

    def __init__(
        self,
        server: ForkServer,
        arguments: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        size: tuple[int, int],
    ) -> None:
        self.child_fd, theirs = os.openpty()
        self.setwinsize(*size)
        modes = termios.tcgetattr(theirs)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        self.closed = False
        try:
            self._process = server.fork(arguments, cwd, environment, [theirs] * 3, terminal=True)
        finally:
            os.close(theirs)
        self.pid = self._process.pid

    def isalive(self) -> bool:
        return self._process.returncode is None

    @property
    def exitstatus(self) -> int | None:
        return self._process.returncode

    @property
    def signalstatus(self) -> int | None:
        code = self._process.returncode
        return -code if code is not None and code < 0 else None

    def setwinsize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.child_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def sendintr(self) -> None:
        os.write(self.child_fd, b"\x03")

    def kill(self, number: int) -> None:
        self._process.send_signal(number)

    def close(self, force: bool = True) -> None:
        if not self.closed:
            self.closed = True
            os.close(self.child_fd)
        if force:
            self._process.kill()
            self._process.finish()

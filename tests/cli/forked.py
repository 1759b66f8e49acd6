"""The command as a fork of a process that has imported it already.

Process, streams, environment, working directory, signals and exit code are real; what is saved is importing the same
modules some thousand times in a run. Whoever judges the start itself runs `SCRIPT`.
"""

import gc
import json
import os
import pkgutil
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import ollm
from ollm.cli.main import run

ROOT = Path(__file__).parents[2]
BEFORE_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC", "GLIBC")  # read once, when an interpreter starts
LOGS = "ollm.system.logs"  # a command takes its being loaded for a log that was begun
LIBRARIES = ("click.shell_completion", "ctypes", "mcp.client.client", "re2", "rich.table", "ruamel.yaml", "tempfile")


class ForkServer:
    """Asks the other process for forks; there is one for all tests of a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environment = dict(os.environ)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.forked", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # none can seek, as the streams of the forks
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether what an interpreter reads at its start is what the fork server read."""
        return _choose_start(environment) == _choose_start(self.environment)

    def fork(self, arguments: Sequence[str], cwd: str, environment: Mapping[str, str], streams: Sequence[int]) -> Any:
        ours, theirs = socket.socketpair()
        document = os.memfd_create("arguments")
        try:
            os.write(document, os.fsencode(json.dumps([list(arguments), cwd, dict(environment)])))
            with self._lock:
                socket.send_fds(self._control, [b"fork"], [*streams, document, theirs.fileno()])
        finally:
            os.close(document)
            theirs.close()
        return ours.makefile("r")


def _choose_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(BEFORE_START)}


_server: list[ForkServer] = []
_starting = threading.Lock()


def finish(
    arguments: Sequence[str],
    cwd: str | os.PathLike[str] | None,
    environment: Mapping[str, str],
    stdin: bytes | None,
    seconds: float = 600,
) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of `ollm arguments`; without `stdin` it has nothing to read."""
    with _starting:
        if not _server:
            _server.append(ForkServer())
    server, place = _server[0], os.fspath(cwd or Path.cwd())
    if not server.fits(environment):
        return _run_script(arguments, place, environment, stdin, seconds)
    (read_in, write_in), (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe(), os.pipe()
    if stdin is None:
        os.close(read_in)
        read_in = os.open(os.devnull, os.O_RDONLY)
    given = [read_in, write_out, write_err]
    try:
        answer = server.fork(arguments, place, environment, given)
    finally:
        for number in given:
            os.close(number)
    with answer:
        process = int(answer.readline())
        try:
            out, err = _exchange(write_in, stdin or b"", (read_out, read_err), seconds)
        except TimeoutError:
            os.kill(process, 9)
            raise subprocess.TimeoutExpired(list(arguments), seconds) from None
        return int(answer.readline()), out, err


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
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),  # type: ignore[call-overload]
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


def serve(control: socket.socket) -> None:
    """Fork whenever asked; a child leaves this function with its streams, directory and environment in place."""
    waiting: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is control:
                    message, descriptors, _, _ = socket.recv_fds(control, 16, 5)
                    if not message:
                        os._exit(0)
                    process = os.fork()
                    if not process:
                        _become_command(descriptors)
                        return
                    reply = socket.socket(fileno=descriptors[-1])
                    for number in descriptors[:-1]:
                        os.close(number)
                    reply.sendall(f"{process}\n".encode())
                    handle = os.pidfd_open(process)
                    waiting[handle] = process, reply
                    ready.register(handle, selectors.EVENT_READ)
                else:
                    process, reply = waiting.pop(key.fd)
                    ready.unregister(key.fd)
                    os.close(key.fd)
                    with reply, suppress(OSError):
                        reply.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n".encode())


def _become_command(descriptors: Sequence[int]) -> None:
    size = os.fstat(descriptors[3]).st_size
    arguments, cwd, environment = json.loads(os.fsdecode(os.pread(descriptors[3], size, 0)))
    for number in range(3):
        os.dup2(descriptors[number], number)
    os.closerange(3, 1024)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["ollm", *arguments]


def import_all() -> None:
    """Everything of ours that can do without the log, and what it takes from elsewhere when it is needed."""
    sys.modules[LOGS] = None  # type: ignore[assignment]
    ours = [found.name for found in pkgutil.walk_packages(ollm.__path__, "ollm.", onerror=lambda name: None)]
    for name in (*ours, *LIBRARIES):
        if not name.endswith("__main__"):
            with suppress(ImportError):
                import_module(name)
    del sys.modules[LOGS]


def main() -> None:
    import_all()
    sys.path.remove(str(ROOT))
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    run()


if __name__ == "__main__":
    main()

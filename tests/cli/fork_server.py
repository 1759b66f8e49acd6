"""The process that has imported the command and forks into it when asked; `tests/cli/forked.py` asks."""

import atexit
import fcntl
import gc
import json
import os
import pkgutil
import resource
import selectors
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module, reload
from pathlib import Path

import msgspec

import ollm
from ollm.cli.main import run
from ollm.system.sandbox import levels
from tests.ordinary_user import give_up_permissions
from tests.unsynced import leave_writes_in_memory

ROOT = Path(__file__).parents[2]
LOGS = "ollm.system.logs"  # a command takes its being loaded for a log that was begun
LIBRARIES = (
    "anyio._backends._asyncio",
    "click._textwrap",
    "click.shell_completion",
    "ctypes",
    "encodings.ascii",
    "encodings.utf_8_sig",
    "litestar._kwargs.kwargs_model",
    "litestar.middleware.allowed_hosts",
    "litestar.middleware.csrf",
    "litestar.middleware.response_cache",
    "mcp.client.client",
    "prompt_toolkit.input.posix_utils",
    "prompt_toolkit.input.vt100",
    "prompt_toolkit.key_binding.bindings.search",
    "psutil",
    "rapidfuzz.fuzz",
    "rapidfuzz.process",
    "re2",
    "rich._unicode_data.unicode17-0-0",
    "rich.table",
    "ruamel.yaml",
    "tempfile",
    "uvicorn.lifespan.off",
)
NUMBER = struct.Struct("i")


def import_all() -> None:
    """Everything of ours that can do without the log, and what it takes from elsewhere when it is needed."""
    sys.modules[LOGS] = None  # type: ignore[assignment]
    ours = [found.name for found in pkgutil.walk_packages(ollm.__path__, "ollm.", onerror=lambda name: None)]
    for name in (*ours, *LIBRARIES):
        if not name.endswith("__main__"):
            with suppress(ImportError):
                import_module(name)
    del sys.modules[LOGS]
    prepare_types(msgspec.Struct)


def prepare_types(base: type) -> None:
    """Have msgspec read the annotations of every type once, here, and not in each fork."""
    for found in base.__subclasses__():
        with suppress(Exception):
            msgspec.json.Decoder(found)
        prepare_types(found)


def try_sandbox_once() -> None:
    """Try the sandbox levels here; a fork with the same user and limits would find the same."""
    found = levels.detect_level()
    levels.detect_level = lambda: found


def serve(listening: socket.socket) -> None:
    """Fork whenever asked; a child leaves this function with its streams, directory and environment in place. Ends with
    the last process that asks."""
    waiting: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fd in waiting:
                    ready.unregister(key.fd)
                    _tell_end(key.fd, *waiting.pop(key.fd))
                    continue
                if key.fileobj is listening:
                    found = listening.accept()[0]
                    ready.register(found, selectors.EVENT_READ, found)
                    continue
                message, descriptors, _, _ = socket.recv_fds(key.data, 16, 5)
                if not message:
                    ready.unregister(key.fd)
                    key.data.close()
                    if len(ready.get_map()) == 1 + len(waiting):
                        os._exit(0)
                    continue
                process = os.fork()
                if not process:
                    _become_command(descriptors)
                    return
                handle, reply = _tell_start(process, descriptors)
                waiting[handle] = process, reply
                ready.register(handle, selectors.EVENT_READ)


def _tell_start(process: int, descriptors: Sequence[int]) -> tuple[int, socket.socket]:
    reply = socket.socket(fileno=descriptors[-1])
    for number in descriptors[:-1]:
        os.close(number)
    with suppress(OSError):
        reply.sendall(NUMBER.pack(process))
    return os.pidfd_open(process), reply


def _tell_end(handle: int, process: int, reply: socket.socket) -> None:
    os.close(handle)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with reply, suppress(OSError):
        reply.sendall(NUMBER.pack(code))


def _become_command(descriptors: Sequence[int]) -> None:
    size = os.fstat(descriptors[3]).st_size
    arguments, cwd, environment, manner = json.loads(os.fsdecode(os.pread(descriptors[3], size, 0)))
    for number in range(3):
        os.dup2(descriptors[number], number)
    os.closerange(3, 1024)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["ollm", *arguments]
    if manner.get("terminal"):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if manner.get("bounded") or manner.get("descriptors"):
        reload(levels)
    if manner.get("bounded"):
        give_up_permissions()
    if limit := manner.get("descriptors"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def run_and_leave() -> None:
    """Run the command and end as an interpreter does, but for taking thousands of modules apart: nothing sees that, and it
    takes most of the time of a short command. An end with more to tell than a number goes the ordinary way."""
    code: object = None
    try:
        run()
    except SystemExit as ended:
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        if code is None or isinstance(code, int):
            os._exit(code or 0)
    sys.exit(code)  # type: ignore[arg-type]


def main() -> None:
    import_all()
    try_sandbox_once()
    leave_writes_in_memory()
    sys.path.remove(str(ROOT))
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    run_and_leave()


if __name__ == "__main__":
    main()

"""The embedded model's own process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil

from ollm.providers.local_models.embedded_server import die_with_parent


def test_the_server_does_not_outlive_a_parent_that_was_killed(model_home: Path) -> None:
    script = textwrap.dedent("""
        import asyncio, os, sys, time
        from pathlib import Path
        from tests.providers.local_models.test_embedded import provider, pid, said, short
        async def main():
            model = provider(Path(sys.argv[1]))
            await said(model, short())
            print(pid(model), flush=True)
            time.sleep(60)
        asyncio.run(main())
    """)
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", script, str(model_home)], cwd=root, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_while_the_model_loads_it_dies_with_its_parent_and_not_afterwards() -> None:
    import ctypes
    import os

    def read_death_signal() -> int:
        number = ctypes.c_int()
        ctypes.CDLL(None).prctl(2, ctypes.byref(number))  # PR_GET_PDEATHSIG
        return number.value

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with die_with_parent():
            during = read_death_signal()
        os.write(writing, f"{during} {read_death_signal()}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "9 0"
    os.waitpid(child, 0)

"""Child processes that a test starts, finds by the time they sleep, and waits for."""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from ollm.system.capture import Capture
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost

ESCAPES = {
    "plain child": "sleep {mark} & wait",
    "background": "sleep {mark} & sleep {mark}",
    "new session": "setsid sleep {mark} & sleep {mark}",
    "double fork": "(setsid sh -c '(setsid sleep {mark} &) ; sleep {mark}' &) ; sleep {mark}",
    "empty environment": "env -i setsid nohup sleep {mark} >/dev/null 2>&1 & sleep {mark}",
    "deaf to SIGTERM": "setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}; sleep {mark}' & sleep {mark}",
}


def sleepers(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and "sleep" in line and mark in line:
            found.append(process.pid)
    return found


async def until_sleeping(mark: str, count: int = 1) -> None:
    async with asyncio.timeout(20):
        while len(sleepers(mark)) < count:
            await asyncio.sleep(0.01)


def gone_soon(mark: str, seconds: float = 8) -> bool:
    deadline = time.monotonic() + seconds
    while sleepers(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not sleepers(mark)


async def start(
    host: ProcessHost, line: str, *, environment: Mapping[str, str] | None = None, cwd: Path = Path("/")
) -> tuple[ChildProcess, Capture, list[str]]:
    reading, writing = os.pipe()
    texts: list[str] = []
    capture = Capture(reading, texts.append)
    try:
        command = ProcessCommand(
            argv=("/bin/sh", "-c", line), cwd=cwd, environment=environment or {"PATH": os.environ["PATH"]}
        )
        return await host.start(command, writing), capture, texts
    except BaseException:
        capture.close()
        raise
    finally:
        os.close(writing)


async def run(host: ProcessHost, line: str, **more: object) -> tuple[int, str]:
    process, capture, texts = await start(host, line, **more)  # type: ignore[arg-type]
    code = await process.wait()
    await capture.ended.wait()
    return code, "".join(texts)

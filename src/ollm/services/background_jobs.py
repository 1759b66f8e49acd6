"""Running commands: one in the foreground and up to sixteen in the background (T5.5).

Each conversation has its own set. `close` ends them all, including processes that finished commands left behind.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from ollm.domain.clock import monotonic
from ollm.domain.errors import ToolFailure
from ollm.system.capture import Capture, HeadAndTail
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost

MAX_UNREAD_CHARS = 1024 * 1024
MAX_ENDED_JOBS = 32
DRAIN_TIMEOUT_SECONDS = 0.1
CANCEL_TIMEOUT_SECONDS = 0.08
TERMINAL_SIZE = (40, 120)
Ending = Literal["exited", "timeout", "idle"]


class Job:
    """A started command. `take_output` returns the output since the last call, in bounded memory."""

    def __init__(self, line: str, process: ChildProcess, command: ProcessCommand) -> None:
        self.id = ""
        self.command = command
        self.line = line
        self.process = process
        self.started = self.last_output = monotonic()
        self._ended: float | None = None
        self._unread: HeadAndTail | None = HeadAndTail(MAX_UNREAD_CHARS)
        self.capture: Capture | None = None
        self._listener: Callable[[str], None] | None = None
        self.steering: dict[str, tuple[int, int, int]] | None = None  # State of steering files before the run.

    @property
    def exit_code(self) -> int | None:
        """Exit code as in shells: 128 plus the signal number for a killed command. None while it runs."""
        code = self.process.exit_code
        return code if code is None or code >= 0 else 128 - code

    @property
    def seconds(self) -> float:
        return (self._ended or monotonic()) - self.started

    def receive_output(self, text: str) -> None:
        """Store new output and pass it to the listener. Output after `discard_output` is dropped."""
        self.last_output = monotonic()
        if self._unread is not None:
            self._unread.add(text)
            if self._listener:
                self._listener(text)

    def take_output(self) -> str:
        """Return all output since the last call: head and tail if it exceeds a million characters."""
        if self.capture:
            self.capture.drain()
        unread, self._unread = self._unread, self._unread and HeadAndTail(MAX_UNREAD_CHARS)
        return unread.render_text() if unread else ""

    async def wait(self, seconds: float | None, idle: float | None, listener: Callable[[str], None] | None) -> Ending:
        """Wait until the command exits, times out, or is silent for `idle` seconds. Stream output to `listener`."""
        deadline = None if seconds is None else monotonic() + seconds
        self._listener = listener
        exited = asyncio.ensure_future(self.process.wait())
        try:
            while True:
                quiet = None if idle is None else self.last_output + idle
                limits = [limit for limit in (deadline, quiet) if limit is not None]
                left = max(0.0, min(limits) - monotonic()) if limits else None
                done, _ = await asyncio.wait([exited], timeout=left)
                if done:
                    await self.collect_output()
                    return "exited"
                if deadline is not None and monotonic() >= deadline:
                    return "timeout"
                if idle is not None and monotonic() >= self.last_output + idle:
                    return "idle"
        finally:
            exited.cancel()
            self._listener = None

    async def end(self, grace: float = 0.25) -> None:
        """End the command and all its child processes, and collect the remaining output."""
        await self.process.end(grace)
        await self.collect_output()
        self.close()

    async def cancel(self, grace: float) -> None:
        """End the command without blocking: processes that do not exit at once are ended in the background."""
        self.discard_output()
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT_SECONDS):
                await self.process.end(grace)
        self.close()

    def end_after(self, seconds: float) -> None:
        """End the command if it still runs by then."""
        asyncio.get_running_loop().call_later(seconds, self.process.request_end)

    def close(self) -> None:
        if self.capture:
            self.capture.close()

    async def collect_output(self) -> None:
        """Collect the rest of the pipe, without waiting for an orphaned child that holds it open."""
        self._ended = self._ended or monotonic()
        if self.capture:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_TIMEOUT_SECONDS):  # In Python 3.11 `wait_for` may lose a cancellation.
                    await self.capture.ended.wait()
            self.capture.drain()

    def discard_output(self) -> None:
        self._unread = None


class BackgroundJobs:
    """The commands of one conversation."""

    def __init__(self, host: ProcessHost, most: int = 16) -> None:
        self._host = host
        self._most = most
        self._jobs: dict[str, Job] = {}
        self._left_behind: list[Job] = []
        self._number = 0

    async def start(self, command: ProcessCommand, line: str, directory: int | None = None) -> Job:
        """Start a foreground command. The caller waits for it, then passes it to `release_job`. It runs in the
        directory of this descriptor, if given."""
        reading, writing = _open_terminal() if command.terminal else os.pipe()
        try:
            job = Job(line, await self._host.start(command, writing, directory=directory), command)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        job.capture = Capture(reading, job.receive_output)
        return job

    def release_job(self, job: Job) -> None:
        """Release an ended command. Its remaining child processes may run until the conversation ends."""
        job.discard_output()
        if job.process.gone:
            job.close()
        else:
            self._left_behind = [one for one in self._left_behind if not one.process.gone] + [job]

    async def start_background(self, command: ProcessCommand, line: str, directory: int | None = None) -> Job:
        running = [job for job in self._jobs.values() if job.exit_code is None]
        if len(running) >= self._most:
            names = ", ".join(job.id for job in running)
            raise ToolFailure(
                "ValidationError", f"{len(running)} commands are already running in the background: {names}."
            )
        job = await self.start(command, line, directory)
        self._number += 1
        job.id = f"job-{self._number}"
        self._jobs[job.id] = job
        self._forget_old()
        return job

    def get(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None:
            known = ", ".join(self._jobs) or "none"
            raise ToolFailure("NotFound", f"No background command {job_id!r} (available: {known}).")
        return job

    async def stop(self, job_id: str) -> Job:
        """End a background command and remove its id."""
        job = self.get(job_id)
        await job.end()
        self._jobs.pop(job_id, None)
        return job

    async def clear_sandboxes(self) -> list[str]:
        """End what finished commands left behind in sandboxes. Return the ids of those commands that run there."""
        left = [job for job in self._left_behind if job.command.box is not None]
        self._left_behind = [job for job in self._left_behind if job.command.box is None]
        await asyncio.gather(*(job.end() for job in left))
        return [job.id for job in self._jobs.values() if job.command.box is not None and not job.process.gone]

    async def close(self) -> None:
        jobs = [*self._jobs.values(), *self._left_behind]
        self._jobs, self._left_behind = {}, []
        await asyncio.gather(*(job.end() for job in jobs))

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.exit_code is not None]
        for job in ended[:-MAX_ENDED_JOBS]:
            self.release_job(self._jobs.pop(job.id))


def _open_terminal() -> tuple[int, int]:
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, TERMINAL_SIZE)
    return ours, theirs

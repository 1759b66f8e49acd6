"""The embedded server's process as its parent sees it: started, waited for, ended, and read when it died."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO

import msgspec

from ollm.domain.errors import ModelError, ModelTimeoutError
from ollm.providers.local_models.embedded_server import EmbeddedOptions, EmbeddedReady
from ollm.providers.local_models.model_files import ModelFile
from ollm.system.cores import count_cores

PASSED_VARIABLES = frozenset(
    (
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "SYSTEMROOT",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "GGML_VK_VISIBLE_DEVICES",
        "PYTHONDONTWRITEBYTECODE",
    )
)
ENDING_SECONDS = 2.0


class EmbeddedProcess:
    """One running server with one model and one window."""

    def __init__(self, process: asyncio.subprocess.Process, log: BinaryIO, order: EmbeddedOptions, url: str) -> None:
        self._process = process
        self._log = log
        self.window = order.window
        self.key = order.key
        self.url = url

    @classmethod
    async def start(
        cls, model: ModelFile, window: int, environment: Mapping[str, str], timeout: float
    ) -> EmbeddedProcess:
        """Returns when it can answer. Raises ModelError with the reason when it cannot."""
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        order = EmbeddedOptions(
            path=str(model.path),
            name=model.name,
            window=window,
            threads=choose_thread_count(),
            key=secrets.token_urlsafe(32),
            tiny=model.tiny,
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "ollm.providers.local_models.embedded_server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={name: value for name, value in environment.items() if name in PASSED_VARIABLES},
            start_new_session=True,
        )
        started = cls(process, log, order, "")
        try:
            started.url = await started._wait_until_ready(order, timeout)
        except BaseException:
            await started.stop(at_once=True)
            raise
        return started

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def stop(self, *, at_once: bool = False) -> None:
        """Close its stdin, which ends it; what does not end, as while it loads a model, is killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(0 if at_once else ENDING_SECONDS):
                await self._process.wait()
        except (TimeoutError, asyncio.CancelledError):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._log.close()

    async def explain_death(self) -> ModelError | None:
        """Why it ended, when it has; waits a moment, as a connection breaks before the process is gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._process.wait()
        return None if self.alive else self._explain_exit()

    async def _wait_until_ready(self, order: EmbeddedOptions, timeout: float) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        try:
            async with asyncio.timeout(timeout):
                line = await self._process.stdout.readline()
                if not line:
                    await self._process.wait()
                    raise self._explain_exit()
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"The embedded model {order.name} did not load within {timeout:g} s.",
                action="Raise provider.timeouts.firstToken, or choose a smaller model.",
            ) from error
        ready = msgspec.json.decode(line, type=EmbeddedReady)
        if ready.error:
            raise ModelError(
                f"The embedded server could not load {order.path}: {ready.error}. {self._read_log_tail()}".rstrip(),
                action="Download the model again with `ollm models get NAME`.",
            )
        return ready.url

    def _explain_exit(self) -> ModelError:
        code = self._process.returncode or 0
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return ModelError(
            f"The embedded model stopped ({how}). {self._read_log_tail()}".rstrip(),
            action="It restarts with your next message; if memory is short, choose a smaller model or context window.",
        )

    def _read_log_tail(self) -> str:
        if self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        self._log.seek(max(0, size - 2000))
        told = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"Last output: {told[-1][:300]}" if told else ""


def choose_thread_count() -> int:
    """One on two cores, where two starve each other; about half of many."""
    cores = count_cores()
    return max(1, min(cores // 2 if cores > 4 else cores - 1, 8))

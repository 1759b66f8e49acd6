"""How long a silent server is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ollm.domain.clock import monotonic
from ollm.domain.struct import Data
from ollm.system.http.failures import FirstByteTimeout, HttpFailure, StreamStalled


class Timeouts(Data, frozen=True):
    """Seconds: to connect, to the first sign of work, and between signs after that."""

    connect: float = 5
    first: float = 600
    stall: float = 120


class SilenceTimer:
    """Counts only the time spent waiting, so a slow reader of the stream is never taken for a slow server."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._waited = 0.0
        self._begun = False

    def reset(self, *, begun: bool = True) -> None:
        """The server showed work. `begun=False` resets the clock but still counts as reading the prompt."""
        self._begun = self._begun or begun
        self._waited = 0.0

    @asynccontextmanager
    async def limit_wait(self) -> AsyncIterator[None]:
        limit = self._timeouts.stall if self._begun else self._timeouts.first
        start = monotonic()
        try:
            async with asyncio.timeout(max(0.0, limit - self._waited)):
                yield
        except TimeoutError as error:
            raise self._make_failure(limit) from error
        finally:
            self._waited += monotonic() - start

    def _make_failure(self, limit: float) -> HttpFailure:
        return (
            StreamStalled(f"no data for {limit:g} s")
            if self._begun
            else FirstByteTimeout(f"no answer within {limit:g} s")
        )

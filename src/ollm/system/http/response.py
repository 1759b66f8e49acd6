"""An answer: whole, or as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from ollm.domain.struct import Data
from ollm.system.http.failures import TooLarge
from ollm.system.http.timeouts import SilenceTimer

MAX_BODY_BYTES = 64 * 1024 * 1024


class FullResponse(Data, frozen=True):
    """An answer read to its end; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Response(Protocol):
    """An answer whose body is still coming."""

    status: int
    headers: Mapping[str, str]
    patience: SilenceTimer

    def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes; borders mean nothing."""
        ...


async def read_full_response(response: Response, limit: int = MAX_BODY_BYTES) -> FullResponse:
    body = bytearray()
    async for chunk in response.iter_chunks():
        response.patience.reset()
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"the answer is longer than {limit} bytes")
    return FullResponse(status=response.status, headers=dict(response.headers), body=bytes(body))

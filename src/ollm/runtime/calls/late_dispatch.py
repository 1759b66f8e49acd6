"""Dispatch that is put together with the first call: most of what it takes is never needed for an answer in words."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ollm.domain.messages import ToolCall
    from ollm.domain.tools import ToolCallRecord
    from ollm.runtime.calls.dispatch import Dispatch


class LazyDispatch:
    """A `Dispatcher`. `build` is called once at most."""

    def __init__(self, build: Callable[[], Dispatch]) -> None:
        self._build = build

    @cached_property
    def _dispatch(self) -> Dispatch:
        return self._build()

    async def run(self, calls: Sequence[ToolCall], message_id: int) -> list[ToolCallRecord]:
        return await self._dispatch.run(calls, message_id)

    async def refuse(self, calls: Sequence[ToolCall], message_id: int, kind: str, message: str) -> list[ToolCallRecord]:
        return await self._dispatch.refuse(calls, message_id, kind, message)

    async def close(self) -> None:
        """Wait for tools that were cancelled and took their time to clean up."""
        if "_dispatch" in self.__dict__:
            await self._dispatch.close()

"""Waiting at the input while others may talk in the same session: what they begin is shown as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ollm.runtime.base import Conversation, ForeignTurn

T = TypeVar("T")


async def wait_for_input(
    typed: asyncio.Future[T], conversation: Conversation, show: Callable[[ForeignTurn], Awaitable[None]]
) -> T:
    """Wait for typed input; turns that others start in the meantime are shown first, each to its end."""
    while not typed.done():
        watching = asyncio.ensure_future(conversation.wait_for_foreign_turn())
        try:
            await asyncio.wait((typed, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
        begun = None if watching.cancelled() else watching.result()
        if begun is None:
            return await typed
        await show(begun)
    return typed.result()

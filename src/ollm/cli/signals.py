"""External events of a chat: SIGTERM and SIGHUP close it, SIGUSR1 makes it give way, others run turns in it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ollm.cli.start import TAKEOVER_MESSAGE
from ollm.runtime.base import Conversation, ForeignTurn


class ShutdownHandler:
    """Handler that closes whatever is on the screen. A signal that arrives before there is anything to close takes
    effect once there is."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.sentence = ""
        self._leave: Callable[[], None] | None = None
        self._get_conversation: Callable[[], Conversation | None] = lambda: None

    def attach(self, leave: Callable[[], None], get_conversation: Callable[[], Conversation | None]) -> None:
        """Register `leave`, and the conversation whose workspace another process may want."""
        self._leave, self._get_conversation = leave, get_conversation
        if self.signal or self.sentence:
            asyncio.get_running_loop().call_later(0.1, leave)

    @contextmanager
    def override_leave(self, leave: Callable[[], None]) -> Iterator[None]:
        """Close a list shown before the chat first, and then the chat."""
        before, get_conversation = self._leave, self._get_conversation
        self.attach(leave, get_conversation)
        try:
            yield
        finally:
            self._leave = None
            if before:
                self.attach(before, get_conversation)

    def handle_signal(self, number: signal.Signals) -> None:
        self.signal = number
        if self._leave:
            self._leave()

    def release_workspace(self) -> None:
        asked = getattr(self._get_conversation(), "asked_to_close", None)  # The daemon checks its own.
        if self._leave and asked and asked():
            self.sentence = TAKEOVER_MESSAGE
            self._leave()


@contextmanager
def handle_signals(ending: ShutdownHandler) -> Iterator[None]:
    """Handle signals so that none ends the program by itself. Ctrl-C goes to the screen or to its command."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, ending.handle_signal, name)
    loop.add_signal_handler(signal.SIGUSR1, ending.release_workspace)
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        yield
    finally:
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
            loop.remove_signal_handler(name)


T = TypeVar("T")


async def wait_for_input(
    typing: Coroutine[Any, Any, T], conversation: Conversation, show: Callable[[ForeignTurn], Awaitable[None]]
) -> T:
    """Wait for typed input. Turns that others start meanwhile are shown first, each to its end."""
    typed = asyncio.ensure_future(typing)
    try:
        while not typed.done():
            watching = asyncio.ensure_future(conversation.wait_for_foreign_turn())
            try:
                await asyncio.wait((typed, watching), return_when=asyncio.FIRST_COMPLETED)
            finally:
                watching.cancel()
                await asyncio.wait((watching,))
            begun = None if watching.cancelled() else watching.result()
            if begun is None:
                break
            await show(begun)
        return await typed
    finally:
        typed.cancel()

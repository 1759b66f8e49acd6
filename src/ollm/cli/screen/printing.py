"""What is printed above the input: gathered, and written at most ten times a second."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.renderer import Renderer

FRAME_SECONDS = 0.1


class ScreenPrinter:
    """`alive` says whether something on the screen moves by itself; when nothing does, nothing runs."""

    def __init__(self, app: Application[None], alive: Callable[[], bool]) -> None:
        self._app = app
        self._alive = alive
        self._waiting: list[str] = []
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        ignore_late_positions(app.renderer)

    def add(self, text: str) -> None:
        self._waiting.append(text)
        self._wake.set()

    def wake(self) -> None:
        """Something moves from now on."""
        self._wake.set()

    def hurry(self) -> None:
        """What the screen shows is out of date: do not wait for the next frame."""
        self._wake.set()
        self._hurry.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            if self._is_lent:
                await asyncio.sleep(FRAME_SECONDS)
                continue
            self._hurry.clear()
            if not self._alive():
                self._wake.clear()
            if self._waiting and self._app.is_running:
                self._write_above()
            self._app.invalidate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FRAME_SECONDS):  # wait_for of Python 3.11 may lose the word that it ends
                    await self._hurry.wait()

    @property
    def _is_lent(self) -> bool:
        """Whether somebody else has the terminal, or is about to: an editor, a command, the list of sessions."""
        lent = self._app._running_in_terminal_f  # noqa: SLF001 - the toolkit does not tell it otherwise
        return lent is not None and not lent.done()

    @contextlib.asynccontextmanager
    async def lend_terminal(self) -> AsyncIterator[None]:
        """Give the terminal away for a while; what waits is written first."""
        async with in_terminal():
            self.flush()
            yield

    def flush(self) -> None:
        """Write what waits while the input is not on the screen."""
        with contextlib.suppress(OSError):
            sys.stdout.write(self._take_waiting())
            sys.stdout.flush()

    def _write_above(self) -> None:
        """Take the input away, write, and let it be drawn again. The terminal stays in its mode: a key pressed
        meanwhile means what it always means."""
        renderer, output = self._app.renderer, self._app.output
        renderer.erase(leave_alternate_screen=False)
        output.write_raw(self._take_waiting().replace("\n", "\r\n"))
        output.flush()
        renderer.request_absolute_cursor_position()

    def _take_waiting(self) -> str:
        text, self._waiting = "".join(self._waiting), []
        return text


def ignore_late_positions(renderer: Renderer) -> None:
    """A terminal that says where its cursor was before something more was written is not believed: the input would be
    drawn higher than the room there is, and lines that nobody has read would scroll away. Over a slow line such an
    answer is an everyday thing."""
    ask, report = renderer.request_absolute_cursor_position, renderer.report_absolute_cursor_row
    places = 0  # where the input has begun so far
    asked: list[int] = []  # the place that each answer to come is about

    def ask_for_place() -> None:
        nonlocal places
        places += 1
        before = len(renderer._waiting_for_cpr_futures)  # noqa: SLF001 - the toolkit does not tell it otherwise
        ask()
        if len(renderer._waiting_for_cpr_futures) > before:  # noqa: SLF001
            asked.append(places)

    def take_report(row: int) -> None:
        about = asked.pop(0) if asked else places
        report(row)
        if about != places:
            renderer._min_available_height = 0  # noqa: SLF001

    renderer.request_absolute_cursor_position = ask_for_place  # type: ignore[method-assign]
    renderer.report_absolute_cursor_row = take_report  # type: ignore[method-assign]

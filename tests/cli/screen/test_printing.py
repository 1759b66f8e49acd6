"""What is printed above the input: gathered, and written while nobody else has the terminal."""

import asyncio
import io
import sys

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl

from ollm.cli.screen.output import open_output
from ollm.cli.screen.printing import ScreenPrinter

PATIENCE = 30.0


class Press:
    """An application on a terminal of bytes, and what prints above it."""

    def __init__(self, patch: pytest.MonkeyPatch, keys: object) -> None:
        self.written = io.BytesIO()
        patch.setattr(sys, "stdout", io.TextIOWrapper(self.written, encoding="utf-8", write_through=True))
        self.app: Application[None] = Application(
            layout=Layout(Window(BufferControl(Buffer()))),
            input=keys,  # type: ignore[arg-type]
            output=open_output(),
        )
        self.alive = False
        self.drawn = 0
        self.app.after_render += self._count
        self.printer = ScreenPrinter(self.app, lambda: self.alive)

    def _count(self, _app: object) -> None:
        self.drawn += 1

    async def wait_for(self, wanted: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            while wanted not in self.written.getvalue():
                await asyncio.sleep(0.01)


async def test_what_is_added_is_written_above_with_whole_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        running = [asyncio.ensure_future(press.app.run_async()), asyncio.ensure_future(press.printer.run())]
        press.printer.add("one\n")
        press.printer.add("two\n")
        await press.wait_for(b"one\r\ntwo\r\n")
        drawn = press.drawn
        await asyncio.sleep(1.0)
        assert press.drawn - drawn <= 3, "nothing moves, so nothing is drawn"
        drawn = press.drawn
        press.alive = True
        press.printer.wake()
        async with asyncio.timeout(PATIENCE):
            while press.drawn < drawn + 3:
                await asyncio.sleep(0.01)
        press.app.exit()
        running[1].cancel()
        await asyncio.wait(running)

        assert press.written.getvalue().count(b"one\r\n") == 1


async def test_while_the_terminal_is_lent_nothing_is_written_and_what_waited_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        running = [asyncio.ensure_future(press.app.run_async()), asyncio.ensure_future(press.printer.run())]
        async with asyncio.timeout(PATIENCE):
            while not press.drawn:
                await asyncio.sleep(0.01)
        from prompt_toolkit.application.current import set_app

        with set_app(press.app):
            press.printer.add("before\n")
            async with press.printer.lend_terminal():
                assert b"before\n" in press.written.getvalue()
                press.printer.add("during\n")
                await asyncio.sleep(0.35)
                assert b"during" not in press.written.getvalue()
        await press.wait_for(b"during\r\n")
        press.app.exit()
        running[1].cancel()
        await asyncio.wait(running)


async def test_what_is_left_at_the_end_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        press.printer.add("last words\n")
        press.printer.flush()
        press.printer.flush()

        assert press.written.getvalue().count(b"last words\n") == 1


async def test_a_terminal_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError

    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        press.printer.add("nobody reads this")
        monkeypatch.setattr(sys, "stdout", Gone())
        press.printer.flush()

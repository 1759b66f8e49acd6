"""Drives the real program on a terminal of its own: start it, type, wait for what it shows.

async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "chat") as terminal:
    terminal.type("hi\r")
    await terminal.wait_for("Hello.")
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pexpect
import pyte

from tests.cli.command import SCRIPT
from tests.cli.forked import ForkedTerminal, find_fork_server
from tests.cli.running import Runner

PATIENCE = float(
    os.environ.get("TERMINAL_PATIENCE", "60")
)  # a busy machine may take its time; nothing waits longer than it must
ENTER, ESCAPE, CTRL_A, CTRL_C, CTRL_D, CTRL_G, CTRL_O, CTRL_R, CTRL_X = (
    "\r",
    "\x1b",
    "\x01",
    "\x03",
    "\x04",
    "\x07",
    "\x0f",
    "\x12",
    "\x18",
)
UP, DOWN, TAB, ALT_ENTER = "\x1b[A", "\x1b[B", "\t", "\x1b\r"


IDLE_LOOKS = 5


def is_busy(process: int) -> bool:
    """Whether a thread of the process runs or wants to. False where the system does not say so."""
    with suppress(OSError):
        stats = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
        return any(stat.rpartition(") ")[2][0] in "RD" for stat in stats)
    return False


def render_line(line: Mapping[int, Any], columns: int) -> str:
    """The letters of a line; a wide one is followed by an empty cell."""
    cells = [" "] * columns
    for column, cell in line.items():
        if column < columns:
            cells[column] = cell.data
    return "".join(cells)


class Paper(pyte.HistoryScreen):
    """A terminal that answers when it is asked where its cursor is."""

    def __init__(self, columns: int, rows: int, answer: Any) -> None:
        super().__init__(columns, rows, history=20_000, ratio=0.5)
        self._answer = answer
        self.title_now = ""
        self.bells = 0

    @property
    def display(self) -> list[str]:
        """The lines of the screen. The library's own looks at the width of each letter, which costs most of a test."""
        buffer, columns = self.buffer, self.columns
        return [render_line(buffer[row], columns) for row in range(self.lines)]

    def write_process_input(self, data: str) -> None:
        self._answer(data.encode())

    def select_graphic_rendition(self, *attrs: int, **more: Any) -> None:
        """Faint letters, which the library does not know, are grey ones here."""
        super().select_graphic_rendition(*attrs, **more)
        if 2 in attrs and 38 not in attrs and 48 not in attrs and self.cursor.attrs.fg == "default":
            self.cursor.attrs = self.cursor.attrs._replace(fg="brightblack")

    def set_title(self, param: str) -> None:
        self.title_now = param

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Rows below the cursor go first, as in real terminals; only then does the top scroll away."""
        lines = lines or self.lines
        while self.lines > lines:
            if self.cursor.y < self.lines - 1:
                self.buffer.pop(self.lines - 1, None)
                self.lines -= 1
                continue
            self.history.top.append(self.buffer[0])
            super().resize(self.lines - 1, self.columns)
        super().resize(lines, columns)

    def bell(self, *args: Any) -> None:
        self.bells += 1


class Terminal:
    """A program on a pseudo-terminal, read in the running event loop."""

    def __init__(self, child: Any, columns: int, rows: int) -> None:
        self.child = child
        self.raw = bytearray()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._over = False
        self.paper = Paper(columns, rows, self._write)
        self._stream = pyte.ByteStream(self.paper)
        self._loop.add_reader(child.child_fd, self._read)

    def type(self, text: str) -> None:
        self._write(text.encode())

    def paste(self, text: str) -> None:
        self._write(b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~")

    def screen(self) -> str:
        """What stands on the screen now, without blanks at the ends."""
        return "\n".join(line.rstrip() for line in self.paper.display).strip("\n")

    def text(self) -> str:
        """Everything that was printed, with what has scrolled away."""
        past = (render_line(line, self.paper.columns).rstrip() for line in self.paper.history.top)
        return "\n".join([*past, self.screen()])

    async def wait_for(self, *wanted: str, gone: str = "") -> None:
        """Until the screen (or what scrolled away) shows all of it, and `gone` is not on the screen any more."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._shows(wanted, gone):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"waited for {wanted} {gone and 'without ' + gone}, saw:\n{self.text()}") from None

    async def wait_until(self, holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Whether the screen came to satisfy `holds` while there was patience."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        return holds()

    async def settle(self, seconds: float) -> None:
        """Let time pass that the program itself measures, such as the moment that tells Esc from Alt.

        On a busy machine the time begins when the program has read what was typed, and it may finish what it then does.
        """
        await self._wait_until_idle()
        await asyncio.sleep(seconds)
        await self._wait_until_idle()

    async def _wait_until_idle(self) -> None:
        """Until no thread of the program has run, or waited for a processor, for a moment."""
        idle = 0
        async with asyncio.timeout(PATIENCE):
            while idle < IDLE_LOOKS:
                await asyncio.sleep(0.01)
                idle = 0 if is_busy(self.child.pid) else idle + 1

    def _shows(self, wanted: tuple[str, ...], gone: str) -> bool:
        text = self.text()
        return all(part in text for part in wanted) and not (gone and gone in self.screen())

    def resize(self, columns: int, rows: int) -> None:
        self.paper.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def kill(self, name: signal.Signals) -> None:
        os.kill(self.child.pid, name)

    async def ended(self) -> int:
        """Wait for the end; the exit code, or minus the signal."""
        async with asyncio.timeout(PATIENCE):
            while not self._over or self.child.isalive():
                await asyncio.sleep(0.02)
        status = self.child.signalstatus
        return -status if status else self.child.exitstatus

    def hang_up(self) -> None:
        """The window is closed: there is nothing to write to any more."""
        self._loop.remove_reader(self.child.child_fd)
        self.child.close(force=False)

    async def close(self) -> None:
        if not self.child.closed:
            self._loop.remove_reader(self.child.child_fd)
        with suppress(ProcessLookupError):
            if self.child.isalive():
                self.child.kill(signal.SIGKILL)
        if not self.child.closed:
            self.child.close(force=True)

    def _write(self, data: bytes) -> None:
        with suppress(OSError):
            os.write(self.child.child_fd, data)

    def _read(self) -> None:
        try:
            data = os.read(self.child.child_fd, 65536)
        except OSError:
            data = b""
        if not data:
            self._over = True
            self._loop.remove_reader(self.child.child_fd)
        self.raw += data
        self._stream.feed(data)
        self._changed.set()


def _start_child(arguments: tuple[str, ...], cwd: str, environment: dict[str, str], size: tuple[int, int]) -> Any:
    columns, rows = size
    if server := find_fork_server(environment):
        return ForkedTerminal(server, arguments, cwd, environment, (rows, columns))
    child = pexpect.spawn(
        SCRIPT, list(arguments), cwd=cwd, env=environment, dimensions=(rows, columns), echo=False, use_poll=True
    )
    child.delaybeforesend = None
    return child


@asynccontextmanager
async def at_terminal(
    runner: Runner, *arguments: str, size: tuple[int, int] = (90, 30), **variables: str
) -> AsyncIterator[Terminal]:
    """`ollm arguments` in the runner's workspace, on a terminal of `size` columns and rows."""
    environment = {**runner.environment(), "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "", **variables}
    child = _start_child(arguments, str(runner.workspace), environment, size)
    terminal = Terminal(child, *size)
    try:
        yield terminal
    finally:
        await terminal.close()


def steady(screen: str) -> str:
    """A screen without what differs from run to run: times, ports and ids."""
    for pattern, stands in (
        (r"127\.0\.0\.1:\d+", "SERVER"),
        (r"\d+\.\d s\b", "N s"),
        (r"\(\d+ s\)", "(N s)"),
        (r" · \d+ tok/s", ""),
        (r"[█░┊]+ \d+%", "BAR N%"),
        (r"--session [0-9a-f]{8}", "--session ID"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "*"),
        (r" {3,}(?=[^\n]*⎇)", "   "),
    ):
        screen = re.sub(pattern, stands, screen)
    found = screen
    return re.sub(r"▌ /\S+/project", "▌ /project", found)

"""The terminal output of prompt_toolkit, and changes of its size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_bell_environment_variable, get_term_environment_variable

ERASE_FROM_SECOND_CELL = "\x1b[C\x1b[J\x1b[D\x1b[K"


class TmuxSafeOutput(Vt100_Output):
    """Output to a terminal. While `held`, everything is collected and then written at once."""

    held = False

    def erase_down(self) -> None:
        self.write_raw(ERASE_FROM_SECOND_CELL)

    def flush(self) -> None:
        if not self.held:
            super().flush()


def open_output() -> Vt100_Output:
    return TmuxSafeOutput.from_pty(
        sys.stdout, term=get_term_environment_variable(), enable_bell=get_bell_environment_variable()
    )


class ChatApplication(Application[None]):
    """Chat application. `wraps_again`: the terminal rewraps lines on resize.

    While `is_streaming` the cursor rests, hidden, on the first cell of the repainted area. Terminals that rewrap keep
    it on that cell, so that the area is erased from its top even if it was rewrapped before the resize was reported."""

    wraps_again = False

    def __init__(self, is_streaming: Callable[[], bool], **options: Any) -> None:
        super().__init__(**options)
        self._is_streaming = is_streaming

    def _redraw(self, render_as_done: bool = False) -> None:
        assert isinstance(self.output, TmuxSafeOutput)
        self.output.held = True
        super()._redraw(render_as_done)
        self.output.held = False
        if self._is_streaming() and self.renderer._last_screen:  # noqa: SLF001
            self.output.write_raw("\r")
            self.output.cursor_up(self.renderer._cursor_pos.y)  # noqa: SLF001
            self.renderer._cursor_pos = Point(x=0, y=0)  # noqa: SLF001
        self.output.flush()

    def _on_resize(self) -> None:
        renderer = self.renderer
        screen, at = renderer._last_screen, renderer._cursor_pos  # noqa: SLF001 - the toolkit thinks that nothing moved
        if self.wraps_again and screen:
            columns = self.output.get_size().columns
            rows = measure_row_widths(screen, at.y)  # each is wrapped to as many rows as it needs
            more = sum(max(0, (width - 1) // columns) for width in rows) + at.x // columns
            renderer._cursor_pos = Point(x=at.x % columns, y=at.y + more)  # noqa: SLF001
        super()._on_resize()


def measure_row_widths(screen: Screen, rows: int) -> list[int]:
    """Measure the cells used in each of the first rows, without trailing blanks."""
    return [
        max((column + cell.width for column, cell in screen.data_buffer[row].items() if cell.char.strip()), default=0)
        for row in range(rows)
    ]


def detect_rewrap(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal rewraps lines on resize: most do, but not xterm, the console and screen."""
    if "XTERM_VERSION" in environment and "TMUX" not in environment:
        return False
    name = environment.get("TERM", "")
    return "TMUX" in environment or not name.startswith(("linux", "screen"))

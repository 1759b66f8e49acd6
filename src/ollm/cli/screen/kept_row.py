"""A line of the screen that seldom changes."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition


class KeptRow(Window):
    """Painted letter by letter only when its text or its width is another; else its cells are put down as they were."""

    def __init__(self, text: Callable[[], StyleAndTextTuples], style: str = "") -> None:
        super().__init__(FormattedTextControl(text), height=1, style=style, dont_extend_height=True)
        self._read_text = text
        self._painted: tuple[StyleAndTextTuples, int, int, str] | None = None
        self._cells: dict[int, Char] = {}

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        return Dimension.exact(1)

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        row = write_position.ypos
        wanted = (self._read_text(), write_position.xpos, write_position.width, parent_style)
        if wanted != self._painted:
            super().write_to_screen(screen, mouse_handlers, write_position, parent_style, erase_bg, z_index)
            self._painted, self._cells = wanted, dict(screen.data_buffer[row])
            return
        screen.data_buffer[row].update(self._cells)
        screen.visible_windows_to_write_positions[self] = write_position
        screen.height = max(screen.height, row + 1)

"""The toolkit application that runs the chat: output, resizing, layout, keys, colours and timeouts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Always, Condition, Filter
from prompt_toolkit.formatted_text import StyleAndTextTuples, fragment_list_width
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.processors import ConditionalProcessor, Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Char, Screen, WritePosition
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_bell_environment_variable, get_term_environment_variable
from prompt_toolkit.widgets import SearchToolbar

from ollm.cli.screen import keys
from ollm.cli.screen.screen import ChatScreen, Find, Pick
from ollm.cli.screen.themes import ScreenOptions
from ollm.cli.screen.view import ScreenView, get_width

ERASE_FROM_SECOND_CELL = "\x1b[C\x1b[J\x1b[D\x1b[K"


class TmuxSafeOutput(Vt100_Output):
    """Output to a terminal. While `held`, everything is collected and then written at once. The terminal is not asked
    where the cursor is: an answer that comes after more text was written would be wrong."""

    held = False
    responds_to_cpr = False

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
            rows = measure_row_widths(screen, at.y)  # Each row wraps to as many rows as it needs.
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


class KeptRow(Window):
    """A row that is painted anew only if its text or width has changed; otherwise its cached cells are reused."""

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


FRAME_MIN_ROWS = 12
Text = Callable[[], StyleAndTextTuples]


def make_optional_window(text: Text, *, wrap: bool) -> ConditionalContainer:
    """Make a window that takes no lines while its text is empty."""
    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=wrap)
    return ConditionalContainer(window, filter=Condition(lambda: bool(text())))


class CursorCell(Processor):
    """Draws a cursor in the input, for when the real one is elsewhere."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        document, fragments = transformation_input.document, transformation_input.fragments
        if transformation_input.lineno == document.cursor_position_row:
            cells = explode_text_fragments([*fragments, ("", " ")])
            column = transformation_input.source_to_display(document.cursor_position_col)
            cells[column] = (f"{cells[column][0]} reverse", cells[column][1])
            fragments = cells
        return Transformation(fragments)


def build_chat_layout(buffer: Buffer, view: ScreenView, is_streaming: Filter) -> Layout:
    """Build an inline layout, only as tall as needed. The input is between two lines if there is room."""
    framed = Condition(lambda: get_app().output.get_size().rows >= FRAME_MIN_ROWS)
    prompt = view.render_prompt
    search = SearchToolbar(forward_search_prompt="search: ", backward_search_prompt="search back: ")
    control = BufferControl(
        buffer,
        include_default_input_processors=True,
        input_processors=[ConditionalProcessor(CursorCell(), is_streaming)],
        search_buffer_control=search.control,
        preview_search=True,
    )
    field = Window(
        control,
        height=Dimension(min=1, max=12),
        dont_extend_height=True,
        wrap_lines=True,
        always_hide_cursor=is_streaming,
        get_line_prefix=lambda line, wrap: prompt() if (line, wrap) == (0, 0) else " " * fragment_list_width(prompt()),
    )
    rules = [
        ConditionalContainer(KeptRow(lambda: [("class:frame", "─" * get_width())]), filter=framed) for _ in range(2)
    ]
    menu = CompletionsMenu(max_height=8, scroll_offset=1)  # A float has no room at the bottom of a screen.
    if isinstance(menu.content, Window):
        menu.content.dont_extend_height = Always()  # A short list leaves no gap above the status line.
    above = [make_optional_window(view.render_live, wrap=False), make_optional_window(view.render_question, wrap=True)]
    below: list[AnyContainer] = [rules[1], search, menu, KeptRow(view.render_footer, "class:status")]
    return Layout(HSplit([*above, rules[0], field, *below]), focused_element=field)


ESCAPE_WAIT_SECONDS = 0.25  # A key in this time makes it Alt-something.
VI_WAIT_SECONDS = 1.0  # The same wait applies to keys of several letters.


def create_chat_screen(options: ScreenOptions, find_files: Find, pick: Pick) -> ChatScreen:
    """Create an inline screen, which keeps the terminal's scrollback and erases itself when done."""
    screen, is_vi = ChatScreen(options, find_files, pick), options.settings.keys == "vi"

    def is_streaming() -> bool:
        return screen.chat.busy and screen.questions.current is None

    def get_colour_depth() -> ColorDepth | None:
        theme = screen.painter.theme
        return ColorDepth.DEPTH_24_BIT if theme.true_colour else None if theme.colour else ColorDepth.DEPTH_1_BIT

    app = ChatApplication(
        is_streaming,
        layout=build_chat_layout(screen.buffer, screen.view, Condition(is_streaming)),
        key_bindings=keys.build_key_bindings(screen),
        style=Style.from_dict(screen.painter.theme.toolkit),
        color_depth=get_colour_depth,
        editing_mode=EditingMode.VI if is_vi else EditingMode.EMACS,
        output=open_output(),
        full_screen=False,
        mouse_support=False,
        erase_when_done=True,
    )
    app.wraps_again = detect_rewrap(options.environment)
    app.ttimeoutlen = 0.05
    app.timeoutlen = VI_WAIT_SECONDS if is_vi else ESCAPE_WAIT_SECONDS
    screen.attach(app)
    return screen

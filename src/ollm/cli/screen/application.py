"""The toolkit application that runs the chat: layout, keys, colours and timeouts."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
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
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from ollm.cli.screen import keys
from ollm.cli.screen.output import ChatApplication, open_output
from ollm.cli.screen.screen import ChatScreen, Find, Pick
from ollm.cli.screen.themes import ScreenOptions, ScreenTheme
from ollm.cli.screen.view import ScreenView, get_width


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
    menu = CompletionsMenu(max_height=8, scroll_offset=1)  # in the flow: a float has no room at the bottom of a screen
    if isinstance(menu.content, Window):
        menu.content.dont_extend_height = Always()  # a short list leaves no gap above the status line
    above = [make_optional_window(view.render_live, wrap=False), make_optional_window(view.render_question, wrap=True)]
    status = [KeptRow(view.render_footer, "class:status"), make_optional_window(view.render_own_status, wrap=False)]
    below: list[AnyContainer] = [rules[1], search, menu, *status]
    return Layout(HSplit([*above, rules[0], field, *below]), focused_element=field)


def choose_colour_depth(theme: ScreenTheme) -> ColorDepth | None:
    return ColorDepth.DEPTH_24_BIT if theme.true_colour else None if theme.colour else ColorDepth.DEPTH_1_BIT


ESCAPE_WAIT_SECONDS = 0.25  # how long Esc waits for the key that would make it Alt-something
VI_WAIT_SECONDS = 1.0  # the same for keys of several letters


def create_chat_screen(options: ScreenOptions, find_files: Find, pick: Pick) -> ChatScreen:
    """Create an inline screen, which keeps the terminal's scrollback and erases itself when done."""
    screen = ChatScreen(options, find_files, pick)

    def is_streaming() -> bool:
        return screen.chat.busy and screen.questions.current is None

    app = ChatApplication(
        is_streaming,
        layout=build_chat_layout(screen.buffer, screen.view, Condition(is_streaming)),
        key_bindings=keys.build_key_bindings(screen),
        style=Style.from_dict(options.theme.toolkit),
        color_depth=lambda: choose_colour_depth(screen.painter.theme),
        editing_mode=EditingMode.VI if options.vi else EditingMode.EMACS,
        output=open_output(),
        full_screen=False,
        mouse_support=False,
        erase_when_done=True,
    )
    app.wraps_again = options.wraps_again
    app.ttimeoutlen = 0.05
    app.timeoutlen = VI_WAIT_SECONDS if options.vi else ESCAPE_WAIT_SECONDS
    screen.attach(app)
    return screen

"""How the screen is laid out: what is alive, the question's choices, the input with its completions, the status."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples, fragment_list_to_text
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from ollm.cli.screen.kept_row import KeptRow

FRAME_MIN_ROWS = 12
Text = Callable[[], StyleAndTextTuples]


def make_optional_window(text: Text, *, wrap: bool) -> ConditionalContainer:
    """Takes no line while there is nothing to say."""
    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=wrap)
    return ConditionalContainer(window, filter=Condition(lambda: bool(text())))


def indent_like(prompt: StyleAndTextTuples) -> str:
    """What stands before the later lines of an input, so that they begin below its first word."""
    return " " * get_cwidth(fragment_list_to_text(prompt))


def build_chat_layout(buffer: Buffer, live: Text, question: Text, status: Text, prompt: Text) -> Layout:
    """Inline: as tall as it needs to be, never the whole terminal; the input is between two lines where there is
    room for them."""
    framed = Condition(lambda: get_app().output.get_size().rows >= FRAME_MIN_ROWS)
    search = SearchToolbar(forward_search_prompt="search: ", backward_search_prompt="search back: ")
    control = BufferControl(
        buffer,
        include_default_input_processors=True,
        search_buffer_control=search.control,
        preview_search=True,
    )
    field = Window(
        control,
        height=Dimension(min=1, max=12),
        dont_extend_height=True,
        wrap_lines=True,
        get_line_prefix=lambda line, wrap: prompt() if (line, wrap) == (0, 0) else indent_like(prompt()),
    )
    rules = [ConditionalContainer(KeptRow(draw_rule), filter=framed) for _ in range(2)]
    menu = CompletionsMenu(max_height=8, scroll_offset=1)  # in the flow: a float has no room at the bottom of a screen
    if isinstance(menu.content, Window):
        menu.content.dont_extend_height = Always()  # a short list leaves no gap above the status line
    above = [make_optional_window(live, wrap=False), make_optional_window(question, wrap=True)]
    below: list[AnyContainer] = [rules[1], search, menu, KeptRow(status, "class:status")]
    return Layout(HSplit([*above, rules[0], field, *below]), focused_element=field)


def draw_rule() -> StyleAndTextTuples:
    return [("class:frame", "─" * get_app().output.get_size().columns)]

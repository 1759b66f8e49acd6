"""A line that is kept looks as the toolkit's own would, whatever comes after whatever."""

from collections.abc import Iterator

import pytest
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.application.current import get_app, set_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Screen, WritePosition
from prompt_toolkit.output import DummyOutput

from ollm.cli.screen.kept_row import KeptRow

Cells = dict[int, tuple[str, str]]
STATUS = [("class:status", " 12% · "), ("class:bar", "██"), ("class:status", " 日本語 mode")]
OTHER = [("class:status", " 13% · "), ("class:bar-full", "███")]


@pytest.fixture(autouse=True)
def app() -> Iterator[None]:
    with create_app_session(output=DummyOutput()), set_app(Application(layout=Layout(Window()))):
        yield


def paint(window: Window, width: int, row: int = 0) -> tuple[Cells, int]:
    screen = Screen()
    get_app().render_counter += 1  # the toolkit asks for a text once each time it paints
    place = WritePosition(xpos=0, ypos=row, width=width, height=1)
    window.write_to_screen(screen, MouseHandlers(), place, "class:whole", erase_bg=False, z_index=None)
    assert window in screen.visible_windows
    return {column: (cell.char, cell.style) for column, cell in screen.data_buffer[row].items()}, screen.height


def test_a_kept_row_shows_what_a_window_of_the_toolkit_shows() -> None:
    shown: list[StyleAndTextTuples] = [STATUS]
    row = KeptRow(lambda: shown[0], "class:status")
    for text, width, line in [
        (STATUS, 40, 0),
        (STATUS, 40, 0),
        (STATUS, 40, 3),
        (OTHER, 40, 3),
        (STATUS, 40, 3),
        (STATUS, 12, 3),
        (STATUS, 12, 0),
    ]:
        shown[0] = text
        plain = Window(FormattedTextControl(text), height=1, style="class:status", dont_extend_height=True)
        assert paint(row, width, line) == paint(plain, width, line)
        assert row.preferred_height(width, 10).preferred == 1


def test_letters_are_gone_over_only_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    painted: list[int] = []
    whole = FormattedTextControl.create_content

    def count(control: FormattedTextControl, width: int, height: int | None) -> object:
        painted.append(width)
        return whole(control, width, height)

    monkeypatch.setattr(FormattedTextControl, "create_content", count)
    row = KeptRow(lambda: [*STATUS])
    for width in (40, 40, 40, 30, 30):
        paint(row, width)
    assert painted == [40, 30]

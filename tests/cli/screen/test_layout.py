"""How the screen is laid out."""

from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.layout import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from ollm.cli.screen.layout import build_chat_layout, make_optional_window
from tests.cli.running import running
from tests.cli.terminal import ALT_ENTER, CTRL_C, CTRL_D, at_terminal


def test_a_window_with_nothing_to_say_is_not_there() -> None:
    said = [""]
    window = make_optional_window(lambda: said[0], wrap=True)

    assert not window.filter()
    said[0] = "hello"
    assert window.filter()
    assert isinstance(window.content, Window)
    assert window.content.wrap_lines()
    assert window.content.dont_extend_height()
    assert not make_optional_window(lambda: "x", wrap=False).content.wrap_lines()


def test_the_input_has_the_focus_and_everything_stands_in_order() -> None:
    buffer = Buffer()
    layout = build_chat_layout(buffer, lambda: "live", lambda: "question", lambda: "status", lambda: "> ")
    assert isinstance(layout.container, HSplit)
    live, question, _, field, _, _, _, footer = layout.container.children

    assert layout.current_buffer is buffer
    assert isinstance(field, Window)
    assert (field.height.min, field.height.max) == (1, 12)
    assert field.wrap_lines()
    assert read_text(live) == "live"
    assert read_text(question) == "question"
    assert read_text(footer) == "status"
    assert isinstance(footer, Window)
    assert footer.height == 1


def read_text(container: object) -> object:
    window = container.content if isinstance(container, ConditionalContainer) else container
    assert isinstance(window, Window)
    assert isinstance(window.content, FormattedTextControl)
    return window.content.text()


async def test_later_lines_of_an_input_begin_below_its_first_word(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "--new", size=(40, 20)) as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("first line" + ALT_ENTER + "second " + "word " * 7 + "last")
        await terminal.wait_for("last")
        lines = terminal.screen().splitlines()
        place = lines.index("› first line")
        assert lines[place + 1].startswith("  second word")
        assert lines[place + 2].startswith("  ")
        assert lines[place + 2].endswith("last")
        terminal.type(CTRL_C + CTRL_D)
        await terminal.ended()


async def test_a_short_list_of_completions_leaves_no_gap_above_the_status_line(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        (runner.workspace / "cart.py").write_text("")
        async with at_terminal(runner, "--new", size=(80, 24)) as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("/")
            await terminal.wait_for("/compact")
            terminal.type(CTRL_C + "@ca")
            await terminal.wait_for("@ca", " cart.py", gone="/compact")
            await terminal.settle(0.3)
            lines = terminal.screen().splitlines()
            place = next(place for place, line in enumerate(lines) if line.strip() == "cart.py")
            assert "code·ask" in lines[place + 1]
            terminal.type(CTRL_C + CTRL_D)
            await terminal.ended()

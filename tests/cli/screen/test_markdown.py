"""Headings of a chat: at the left, without a frame."""

import io

from rich.console import Console

from ollm.cli.screen.markdown import ChatMarkdown


def render(text: str, *, colour: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=60, force_terminal=colour, color_system="256" if colour else None).print(ChatMarkdown(text))
    return out.getvalue()


def test_headings_stand_at_the_left_without_a_frame() -> None:
    lines = [line.rstrip() for line in render("# One\n\n## Two\n\ntext").splitlines() if line.strip()]

    assert lines == ["One", "Two", "text"]


def test_the_first_level_is_underlined_and_the_others_are_bold_alone() -> None:
    assert "\x1b[1;4mOne" in render("# One", colour=True)
    assert "4" not in render("### Three", colour=True).partition("Three")[0]

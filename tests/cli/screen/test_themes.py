"""Themes: the same chat on a dark ground, a light one, and without colour, on a real terminal."""

import re
from pathlib import Path

import pytest

from ollm.cli.screen.themes import choose_theme
from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal

COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|4[0-7]|10[0-7])(?:;\d+)*m")
ANSWER = "It is `done`:\n\n```python\nprint('hi')  # comment\n```\n"


@pytest.mark.parametrize(
    ("wanted", "variables", "name"),
    [
        ("auto", {}, "dark"),
        ("auto", {"COLORFGBG": "0;15"}, "light"),
        ("auto", {"COLORFGBG": "15;default;0"}, "dark"),
        ("light", {"COLORFGBG": "15;0"}, "light"),
        ("plain", {}, "plain"),
        ("light", {"NO_COLOR": "1"}, "plain"),
        ("dark", {"TERM": "dumb"}, "plain"),
    ],
)
def test_the_settings_come_first_and_no_colour_before_all(wanted: str, variables: dict[str, str], name: str) -> None:
    assert choose_theme(wanted, {"TERM": "xterm", **variables}).name == name


async def chat_bytes(directory: Path, theme: str = "", **variables: str) -> str:
    """What the terminal was sent in a short chat."""
    directory.mkdir()
    async with running(directory, [ANSWER]) as runner:
        if theme:
            ollm("config", "set", "screen.theme", theme, home=runner.home)
        async with at_terminal(runner, "chat", "--new", **variables) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("show me" + ENTER)
            await terminal.wait_for("print('hi')", gone="· Esc stops")
            terminal.type(CTRL_D)
            await terminal.ended()
            return terminal.raw.decode()


async def test_dark_and_light_differ_and_plain_has_no_colour(tmp_path: Path) -> None:
    dark = await chat_bytes(tmp_path / "dark", "dark")
    light = await chat_bytes(tmp_path / "light", "light")
    plain = await chat_bytes(tmp_path / "plain", "plain")
    without = await chat_bytes(tmp_path / "without", NO_COLOR="1")

    assert "\x1b[1;36m› " in dark
    assert "\x1b[1;34m› " in light
    assert not re.search(r"\x1b\[(?:\d+;)*9[1-7]m", light), "bright colours are lost on a light ground"
    assert COLOUR.search(dark)
    assert not COLOUR.search(plain)
    assert not COLOUR.search(without)


async def test_sixteen_colours_are_enough(tmp_path: Path) -> None:
    for number, terminal in enumerate(("xterm", "linux", "xterm-256color")):
        sent = await chat_bytes(tmp_path / str(number), "dark", TERM=terminal)

        assert "38;5;" not in sent
        assert "48;5;" not in sent
        assert "38;2;" not in sent

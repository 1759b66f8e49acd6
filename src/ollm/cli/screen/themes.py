"""Screen themes: colours for a dark background, a light one, or none at all.

Only the sixteen colours every terminal has are used, so that the terminal's own palette applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ollm.domain.struct import Data

LIGHT_GROUNDS = ("7", "15")


class ScreenTheme(Data, frozen=True):
    """A screen theme. `styles` overrides styles of the screen, `toolkit` those of the input line."""

    name: str
    code: str  # how source code is coloured
    styles: dict[str, str]
    toolkit: dict[str, str]
    colour: bool = True


_MENU = {
    "completion-menu": "bg:default fg:default",
    "completion-menu.completion": "bg:default fg:default",
    "completion-menu.completion.current": "bg:default fg:default reverse",
    "completion-menu.meta.completion": "bg:default ansibrightblack",
    "completion-menu.meta.completion.current": "bg:default fg:default noreverse",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:ansibrightblack",
}  # the terminal's own background shows through
_DARK = ScreenTheme(
    name="dark",
    code="ansi_dark",
    styles={"markdown.code": "cyan", "markdown.code_block": ""},  # no ground: the terminal's own shows through
    toolkit={
        "frame": "ansibrightblack",
        "prompt": "ansicyan bold",
        "question": "",
        "key": "ansiyellow bold",
        "chosen": "reverse",
        "hint": "ansibrightblack",
        "status": "ansibrightblack",
        "bar": "ansicyan",
        "bar-full": "ansiyellow",
        "approval": "ansiyellow",
        "bold-approval": "ansired bold",
        **_MENU,
        "completion-menu.completion.current": "bg:default ansicyan bold noreverse",
    },
)
_LIGHT = ScreenTheme(
    name="light",
    code="ansi_light",
    styles={
        "markdown.code": "blue",
        "markdown.code_block": "",
        "markdown.table.border": "blue",
        "markdown.table.header": "blue",
        "markdown.item.bullet": "bold blue",
        "markdown.item.number": "bold blue",
        "markdown.block_quote": "magenta",
        "markdown.h1": "bold underline",
        "cyan": "blue",
        "bold cyan": "bold blue",
        "yellow": "magenta",
        "bold yellow": "bold magenta",
    },
    toolkit={
        **_DARK.toolkit,
        "prompt": "ansiblue bold",
        "key": "ansimagenta bold",
        "bar": "ansiblue",
        "bar-full": "ansimagenta",
        "approval": "ansimagenta",
        "completion-menu.completion.current": "bg:default ansiblue bold noreverse",
    },
)
_PLAIN = ScreenTheme(
    name="plain",
    code="ansi_dark",
    styles=_DARK.styles,
    toolkit={
        "frame": "",
        "prompt": "bold",
        "question": "",
        "key": "bold",
        "chosen": "reverse",
        "hint": "",
        "bold-approval": "bold",
        **_MENU,
        "completion-menu.meta.completion": "bg:default fg:default",
    },
    colour=False,
)
THEMES = {theme.name: theme for theme in (_DARK, _LIGHT, _PLAIN)}


def choose_theme(wanted: str, environment: Mapping[str, str]) -> ScreenTheme:
    """Choose the configured theme. `auto` reads the background from the terminal's variable, dark by default.
    Without colour the plain theme is used."""
    from ollm.config.environment import wants_colour

    if not wants_colour(environment):
        return _PLAIN
    if wanted in THEMES:
        return THEMES[wanted]
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    return _LIGHT if ground in LIGHT_GROUNDS else _DARK


OSC_9, OSC_777 = "\x1b]9;ollm: {}\x1b\\", "\x1b]777;notify;ollm;{}\x1b\\"  # ways to ask for a desktop notification


def choose_notification(environment: Mapping[str, str]) -> str:
    """Choose OSC 777 for VTE terminals, foot and urxvt, else OSC 9."""
    own = "VTE_VERSION" in environment or environment.get("TERM", "").startswith(("foot", "rxvt"))
    return OSC_777 if own else OSC_9


class ScreenOptions(Data, frozen=True):
    history: Path
    workspace: Path
    theme: ScreenTheme = THEMES["dark"]
    vi: bool = False
    bell: bool = True
    notification: str = OSC_9
    status_command: str = ""
    wraps_again: bool = False  # whether the terminal wraps its lines again when it gets narrower

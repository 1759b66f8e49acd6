"""Screen themes: colours for a dark background, a light one, or none at all.

With true colour the colours are our own, quiet and readable on common backgrounds. Elsewhere only the sixteen colours
that every terminal has are used, so that its own palette applies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from ollm.config.environment import wants_colour
from ollm.domain.struct import Data

LIGHT_GROUNDS = ("7", "15")


class ScreenTheme(Data, frozen=True):
    """A screen theme. `styles` overrides styles of the screen, `toolkit` those of the input line."""

    name: str
    code: str | dict[str, str]  # how source code is coloured: a theme of Rich, or styles by token
    styles: dict[str, str]
    toolkit: dict[str, str]
    colour: bool = True
    true_colour: bool = False


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
    styles={
        "markdown.code": "cyan",
        "markdown.code_block": "",  # no ground: the terminal's own shows through
        "markdown.link": "cyan",
        "markdown.link_url": "underline cyan",
    },
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
_PALETTES = {
    "dark": {
        "text": "#d4d4d4", "quiet": "#9aa3ad", "frame": "#4b525c", "accent": "#82b1d8", "warning": "#dcb67a",
        "good": "#9ac98f", "bad": "#ec9a96", "type": "#7fcac3", "name": "#a9c4ee", "keyword": "#d0aeec",
        "text_code": "#b5d49a", "number": "#e8b894", "comment": "#aeb7c0", "chosen": "#31404f",
        "added": "#1d3127", "added_word": "#264838", "removed": "#3b2528", "removed_word": "#5c2f34",
    },
    "light": {
        "text": "#24292f", "quiet": "#5c646e", "frame": "#c3c8cf", "accent": "#1f5c99", "warning": "#7c4805",
        "good": "#226432", "bad": "#a3262a", "type": "#0b5c66", "name": "#1d4f91", "keyword": "#7437a4",
        "text_code": "#1f5d30", "number": "#8a3f12", "comment": "#4f565e", "chosen": "#d7e4f2",
        "added": "#dff3e2", "added_word": "#b9e5c1", "removed": "#fbe5e3", "removed_word": "#f6c6c2",
    },
}  # fmt: skip
_TOKENS = {
    "Keyword": "keyword", "Keyword.Type": "type", "Name.Function": "name", "Name.Class": "type", "Name.Tag": "keyword",
    "Name.Builtin": "type", "Name.Exception": "type", "Name.Decorator": "warning", "Name.Attribute": "name",
    "Operator.Word": "keyword", "Literal.String": "text_code", "Literal.Number": "number", "Comment": "comment",
    "Generic.Heading": "accent", "Generic.Inserted": "good", "Generic.Deleted": "bad", "Error": "bad",
}  # fmt: skip


def _use_true_colour(theme: ScreenTheme) -> ScreenTheme:
    ink = _PALETTES[theme.name]
    accent, quiet, warning, chosen = ink["accent"], ink["quiet"], ink["warning"], f"bg:{ink['chosen']} {ink['text']}"
    names = ("code", "link", "table.border", "table.header", "item.bullet", "item.number")
    styles = {
        **dict.fromkeys((f"markdown.{name}" for name in names), accent),
        "markdown.link_url": f"underline {accent}",
    }
    styles |= dict.fromkeys(("cyan", "blue"), accent) | {"yellow": warning, "red": ink["bad"], "green": ink["good"]}
    styles |= {f"bold {name}": f"bold {colour}" for name, colour in styles.items() if "." not in name}
    styles |= {"dim": quiet, "diff.same": quiet, "markdown.block_quote": quiet, "markdown.hr": ink["frame"]}
    styles |= dict.fromkeys(("markdown.h2", "markdown.h3", "markdown.h4"), "bold")
    for kind in ("added", "removed"):
        styles |= {f"diff.{kind}": f"{ink['text']} on {ink[kind]}", f"diff.{kind}.word": f"on {ink[f'{kind}_word']}"}
    toolkit = {
        **dict.fromkeys(("hint", "status", "completion-menu.meta.completion"), quiet),
        **dict.fromkeys(("bar-full", "approval"), warning),
        "frame": ink["frame"],
        "prompt": f"{accent} bold",
        "key": f"{accent} bold",
        "bar": accent,
        "bold-approval": f"{ink['bad']} bold",
        "chosen": f"{chosen} noreverse",
        "completion-menu.completion.current": f"{chosen} noreverse",
        "completion-menu.meta.completion.current": f"{chosen} noreverse",
    }
    return replace(
        theme,
        code={token: ink[name] for token, name in _TOKENS.items()},
        styles={**theme.styles, **styles},
        toolkit={**theme.toolkit, **toolkit},
        true_colour=True,
    )


def choose_theme(wanted: str, environment: Mapping[str, str]) -> ScreenTheme:
    """Choose the configured theme. `auto` reads the background from the terminal's variable, dark by default.
    Without colour the plain theme is used."""
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    name = wanted if wanted in THEMES else "light" if ground in LIGHT_GROUNDS else "dark"
    if not wants_colour(environment) or name == "plain":
        return _PLAIN
    theme = THEMES[name]
    return _use_true_colour(theme) if environment.get("COLORTERM") in ("truecolor", "24bit") else theme


OSC_9, OSC_777 = "\x1b]9;ollm: {}\x1b\\", "\x1b]777;notify;ollm;{}\x1b\\"  # ways to ask for a desktop notification


def choose_notification(environment: Mapping[str, str]) -> str:
    """Choose OSC 777 for VTE terminals, foot and urxvt, else OSC 9."""
    own = "VTE_VERSION" in environment or environment.get("TERM", "").startswith(("foot", "rxvt"))
    return OSC_777 if own else OSC_9


class ScreenOptions(Data, frozen=True):
    """What a screen is built with. `save` sets a setting of the screen."""

    history: Path
    workspace: Path
    theme: ScreenTheme = THEMES["dark"]
    choose_theme: Callable[[str], ScreenTheme] = THEMES.__getitem__
    save: Callable[[str, str], object] = lambda _key, _value: None
    vi: bool = False
    bell: bool = True
    notification: str = OSC_9
    status_command: str = ""
    wraps_again: bool = False  # whether the terminal wraps its lines again when it gets narrower

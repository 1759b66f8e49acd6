"""Screen themes: colours for a dark background, a light one, or none at all.

With true colour the colours are our own, quiet and readable on common backgrounds. Elsewhere only the sixteen colours
that every terminal has are used, so that its own palette applies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ollm.config.environment import wants_colour
from ollm.config.settings import ScreenSettings
from ollm.domain.struct import Data

LIGHT_GROUNDS = ("7", "15")


class ScreenTheme(Data, frozen=True):
    """A screen theme. `styles` overrides styles of the screen, `toolkit` those of the input line."""

    name: str
    code: str | dict[str, str]  # A Rich theme, or styles by token.
    styles: dict[str, str]
    toolkit: dict[str, str]
    colour: bool = True
    true_colour: bool = False


class ThemeTable(Data, frozen=True):
    """The content of `themes.json`. In the `menu` of completions the terminal's own background shows through; with true
    colour, `palettes` name the colours of a theme, from which styles and `tokens` of source code are made."""

    menu: dict[str, str]
    themes: tuple[ScreenTheme, ...]
    true_styles: dict[str, str]
    true_toolkit: dict[str, str]
    palettes: dict[str, dict[str, str]]
    tokens: dict[str, str]


TABLE = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=ThemeTable)
THEMES = {theme.name: replace(theme, toolkit={**TABLE.menu, **theme.toolkit}) for theme in TABLE.themes}


def _use_true_colour(theme: ScreenTheme) -> ScreenTheme:
    ink = TABLE.palettes[theme.name]
    return replace(
        theme,
        code={token: ink[name] for token, name in TABLE.tokens.items()},
        styles=theme.styles | {name: style.format_map(ink) for name, style in TABLE.true_styles.items()},
        toolkit=theme.toolkit | {name: style.format_map(ink) for name, style in TABLE.true_toolkit.items()},
        true_colour=True,
    )


def choose_theme(wanted: str, environment: Mapping[str, str]) -> ScreenTheme:
    """Choose the configured theme. `auto` reads the background from the terminal's variable, dark by default.
    Without colour the plain theme is used."""
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    name = wanted if wanted in THEMES else "light" if ground in LIGHT_GROUNDS else "dark"
    if not wants_colour(environment) or name == "plain":
        return THEMES["plain"]
    theme = THEMES[name]
    return _use_true_colour(theme) if environment.get("COLORTERM") in ("truecolor", "24bit") else theme


OSC_9, OSC_777 = "\x1b]9;ollm: {}\x1b\\", "\x1b]777;notify;ollm;{}\x1b\\"


def choose_notification(environment: Mapping[str, str]) -> str:
    """Choose OSC 777 for VTE terminals, foot and urxvt, else OSC 9."""
    own = "VTE_VERSION" in environment or environment.get("TERM", "").startswith(("foot", "rxvt"))
    return OSC_777 if own else OSC_9


class ScreenOptions(Data, frozen=True):
    """The options of a screen. `save` sets a setting of the screen."""

    history: Path
    workspace: Path
    settings: ScreenSettings = ScreenSettings()
    environment: Mapping[str, str] = {}
    save: Callable[[str, str], object] = lambda _key, _value: None

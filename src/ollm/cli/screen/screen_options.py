"""What the terminal can do, and what the person wants of it."""

from __future__ import annotations

from pathlib import Path

from ollm.cli.screen.themes import THEMES, ScreenTheme
from ollm.domain.struct import Data


class ScreenOptions(Data, frozen=True):
    history: Path
    workspace: Path
    colour: bool = True
    theme: ScreenTheme = THEMES["dark"]
    vi: bool = False
    bell: bool = True
    wraps_again: bool = False  # whether the terminal wraps its lines again when it gets narrower

"""Configuration files as a person writes them, and the settings that come of them."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from ollm.config.environment import Home
from ollm.config.load import LoadedSettings, load_settings


def loaded(
    directory: Path,
    user: str = "",
    *,
    workspace: str = "",
    trusted: bool = True,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """What `load` makes of these texts."""
    home = Home(root=directory / "home")
    home.root.mkdir(exist_ok=True)
    if user:
        home.config.write_text(dedent(user), encoding="utf-8")
    place = directory / "work"
    (place / ".ollm").mkdir(parents=True, exist_ok=True)
    if workspace:
        (place / ".ollm" / "config.yaml").write_text(dedent(workspace), encoding="utf-8")
    return load_settings(home, environment or {}, workspace=place, trusted=trusted, flags=flags)


def problems(found: LoadedSettings) -> list[str]:
    return [str(problem) for problem in found.problems]

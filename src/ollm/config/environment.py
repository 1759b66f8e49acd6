"""The process environment, read here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ollm.config.paths import Home


def copy_environment() -> dict[str, str]:
    """A copy of the environment this process was started with."""
    return dict(os.environ)


def find_home(environment: Mapping[str, str]) -> Home:
    """`~/.ollm`, moved as a whole by OLLM_HOME."""
    named = environment.get("OLLM_HOME", "").strip()
    return Home(root=Path(named).expanduser().absolute() if named else find_user_home(environment) / ".ollm")


def find_user_home(environment: Mapping[str, str]) -> Path:
    """The person's home directory; the password database answers where HOME is not set."""
    named = environment.get("HOME", "")
    return Path(named) if named else Path.home()


def read_log_level(environment: Mapping[str, str]) -> str:
    """What OLLM_LOG_LEVEL asks for; INFO when it is unset or not a level."""
    asked = environment.get("OLLM_LOG_LEVEL", "").strip().upper()
    level = {"WARN": "WARNING"}.get(asked, asked)
    return level if level in ("DEBUG", "INFO", "WARNING", "ERROR") else "INFO"


def has_proxy(environment: Mapping[str, str]) -> bool:
    """Whether there is a proxy for `http://` addresses."""
    return any(environment.get(name) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"))


def wants_colour(environment: Mapping[str, str]) -> bool:
    """False when NO_COLOR is set to anything, or the terminal is a dumb one."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def wants_plain(environment: Mapping[str, str]) -> bool:
    """Whether the terminal can do no more than lines, or the person wants no more."""
    return environment.get("TERM", "dumb") in ("dumb", "") or bool(environment.get("OLLM_PLAIN"))

"""The process environment, read only here, and the paths in our home directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

LOG_LEVELS = {"DEBUG": "DEBUG", "INFO": "INFO", "WARN": "WARNING", "WARNING": "WARNING", "ERROR": "ERROR"}


class Home:
    """`~/.ollm`, or the directory in OLLM_HOME. A plain class, because it is needed first and must cost no import."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.yaml"
        self.grants = root / "grants.yaml"
        self.trust = root / "trust.json"
        self.input_history = root / "input-history"
        self.sessions = root / "sessions"
        self.legacy_sessions = root / "session-data"  # An earlier version wrote sessions here; they are moved.
        self.snapshots = root / "context-snapshots"
        self.index = root / "index.db"
        self.archive_state = root / "archive.db"  # The team archive's state; absent if no archive was ever set.
        self.global_db = root / "global.db"
        self.models = root / "models"
        self.model_facts = root / "model-facts.json"  # This file may be deleted at any time.
        self.mcp_logins = root / "mcp-logins.json"
        self.trash = root / "trash"
        self.undo = root / "undo"
        self.taken = root / "taken"  # Files that earlier versions moved aside, by session.
        self.checkpoints = root / "checkpoints"  # Saved files, in one folder for each workspace.
        self.slots = root / "slots"  # Records of the model server's saved state, in one folder for each session.
        self.log = root / "logs" / "ollm.log"
        self.exports = root / "exports"  # Paths of exported files, one JSON line each.
        self.run = root / "run"
        self.extensions = root / "extensions"
        self.skills = root / "skills"
        self.cache = root / "cache"  # This folder may be deleted at any time.
        self.workspaces = root / "workspaces"

    def list_record_names(self) -> list[str]:
        """List the names in the home that ollm itself fills. People write the other files there."""
        own = (path for path in vars(self).values() if path not in (self.root, self.extensions, self.skills))
        return [path.relative_to(self.root).parts[0] for path in own]

    def resolve_path(self, text: str) -> Path:
        """Resolve a path from the settings: `~/.ollm/…` moves with the home, a relative path is below it."""
        if text == "~/.ollm" or text.startswith("~/.ollm/"):
            return self.root / text.removeprefix("~/.ollm").lstrip("/")
        return self.root / Path(text).expanduser()


def copy_environment() -> dict[str, str]:
    """Copy the environment this process was started with."""
    return dict(os.environ)


def find_home(environment: Mapping[str, str]) -> Home:
    """Find the home: `~/.ollm`, moved as a whole by OLLM_HOME."""
    named = environment.get("OLLM_HOME", "").strip()
    return Home(root=Path(named).expanduser().absolute() if named else find_user_home(environment) / ".ollm")


def find_user_home(environment: Mapping[str, str]) -> Path:
    """Find the user's home directory, in the password database if HOME is not set."""
    named = environment.get("HOME", "")
    return Path(named) if named else Path.home()


def read_log_level(environment: Mapping[str, str]) -> str | None:
    """Read OLLM_LOG_LEVEL: INFO if it is unset, None if it is not a level."""
    return LOG_LEVELS.get(environment.get("OLLM_LOG_LEVEL", "").strip().upper() or "INFO")


def has_proxy(environment: Mapping[str, str]) -> bool:
    """Return True if there is a proxy for `http://` addresses."""
    return any(environment.get(name) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"))


def wants_colour(environment: Mapping[str, str]) -> bool:
    """Return False if NO_COLOR is set and not empty, or the terminal is dumb."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def wants_plain(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal supports only lines, or the user wants plain output."""
    return environment.get("TERM", "dumb") in ("dumb", "") or bool(environment.get("OLLM_PLAIN"))

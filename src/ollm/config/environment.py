"""The process environment, read only here, and the paths in our home directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Home:
    """`~/.ollm`, or the directory in OLLM_HOME. A plain class, because it is needed first and must cost no import."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.yaml"
        self.grants = root / "grants.yaml"
        self.trust = root / "trust.json"
        self.input_history = root / "input-history"
        self.sessions = root / "sessions"
        self.legacy_sessions = root / "session-data"  # of an earlier version; its sessions are moved
        self.snapshots = root / "context-snapshots"
        self.index = root / "index.db"
        self.archive_state = root / "archive.db"  # of the team archive; absent if none was ever set
        self.global_db = root / "global.db"
        self.models = root / "models"
        self.model_facts = root / "model-facts.json"  # learned; may be deleted at any time
        self.mcp_logins = root / "mcp-logins.json"  # tokens of MCP servers
        self.trash = root / "trash"
        self.undo = root / "undo"
        self.taken = root / "taken"  # files that earlier versions moved aside, by session
        self.checkpoints = root / "checkpoints"  # saved files, one folder a workspace
        self.slots = root / "slots"  # records of what the model server saved of a session, one folder a session
        self.log = root / "logs" / "ollm.log"
        self.exports = root / "exports"  # where sessions were exported to, one path a line as JSON
        self.run = root / "run"
        self.extensions = root / "extensions"
        self.skills = root / "skills"
        self.cache = root / "cache"  # may be deleted at any time
        self.workspaces = root / "workspaces"

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


def read_log_level(environment: Mapping[str, str]) -> str:
    """Read OLLM_LOG_LEVEL, or return INFO if it is unset or not a level."""
    asked = environment.get("OLLM_LOG_LEVEL", "").strip().upper()
    level = {"WARN": "WARNING"}.get(asked, asked)
    return level if level in LOG_LEVELS else "INFO"


def has_valid_log_level(environment: Mapping[str, str]) -> bool:
    """Return True if OLLM_LOG_LEVEL is unset or a level."""
    return environment.get("OLLM_LOG_LEVEL", "").strip().upper() in ("", "WARN", *LOG_LEVELS)


def has_proxy(environment: Mapping[str, str]) -> bool:
    """Return True if there is a proxy for `http://` addresses."""
    return any(environment.get(name) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"))


def wants_colour(environment: Mapping[str, str]) -> bool:
    """Return False if NO_COLOR is set and not empty, or the terminal is dumb."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def wants_plain(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal supports only lines, or the user wants plain output."""
    return environment.get("TERM", "dumb") in ("dumb", "") or bool(environment.get("OLLM_PLAIN"))

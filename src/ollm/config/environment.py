"""The process environment, read here and nowhere else, and the places in our home directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


class Home:
    """`~/.ollm`, or what OLLM_HOME says. A plain class: it is needed before anything else, and costs no import."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def resolve_path(self, text: str) -> Path:
        """A path from the settings: `~/.ollm/…` moves with the home, a relative one is beneath it."""
        if text == "~/.ollm" or text.startswith("~/.ollm/"):
            return self.root / text.removeprefix("~/.ollm").lstrip("/")
        return self.root / Path(text).expanduser()

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def grants(self) -> Path:
        return self.root / "grants.yaml"

    @property
    def trust(self) -> Path:
        return self.root / "trust.json"

    @property
    def input_history(self) -> Path:
        return self.root / "input-history"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def legacy_sessions(self) -> Path:
        """Folder of sessions of an earlier version; still listed and resumable."""
        return self.root / "session-data"

    @property
    def snapshots(self) -> Path:
        return self.root / "context-snapshots"

    @property
    def index(self) -> Path:
        return self.root / "index.db"

    @property
    def archive_state(self) -> Path:
        """State of the team archive on this machine; absent if none was ever set."""
        return self.root / "archive.db"

    @property
    def global_db(self) -> Path:
        return self.root / "global.db"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def model_facts(self) -> Path:
        """Learned facts about models; may be deleted at any time."""
        return self.root / "model-facts.json"

    @property
    def mcp_logins(self) -> Path:
        """Tokens of MCP servers that were logged in to."""
        return self.root / "mcp-logins.json"

    @property
    def trash(self) -> Path:
        return self.root / "trash"

    @property
    def undo(self) -> Path:
        return self.root / "undo"

    @property
    def taken(self) -> Path:
        """Files that steer tools and that a command made, moved aside; one folder a session."""
        return self.root / "taken"

    @property
    def checkpoints(self) -> Path:
        """Saved files, one folder a workspace."""
        return self.root / "checkpoints"

    @property
    def log(self) -> Path:
        return self.root / "logs" / "ollm.log"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def extensions(self) -> Path:
        return self.root / "extensions"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def cache(self) -> Path:
        """Cache; may be deleted at any time."""
        return self.root / "cache"

    @property
    def workspaces(self) -> Path:
        return self.root / "workspaces"


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
    """Read OLLM_LOG_LEVEL; INFO if it is unset or not a level."""
    asked = environment.get("OLLM_LOG_LEVEL", "").strip().upper()
    level = {"WARN": "WARNING"}.get(asked, asked)
    return level if level in ("DEBUG", "INFO", "WARNING", "ERROR") else "INFO"


def read_left_out_parts(environment: Mapping[str, str]) -> frozenset[str]:
    """The parts of the help for small models that a measurement leaves out."""
    return frozenset(environment.get("OLLM_SMALL_MODELS_WITHOUT", "").replace(",", " ").split())


def has_proxy(environment: Mapping[str, str]) -> bool:
    """Return True if there is a proxy for `http://` addresses."""
    return any(environment.get(name) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"))


def wants_colour(environment: Mapping[str, str]) -> bool:
    """False when NO_COLOR is set to anything, or the terminal is a dumb one."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def wants_plain(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal supports only lines, or the person wants no more."""
    return environment.get("TERM", "dumb") in ("dumb", "") or bool(environment.get("OLLM_PLAIN"))

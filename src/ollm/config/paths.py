"""Where everything of ours is. Directories are made by whoever writes into them."""

from __future__ import annotations

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
        """Where an earlier version kept them; still listed and resumable."""
        return self.root / "session-data"

    @property
    def snapshots(self) -> Path:
        return self.root / "context-snapshots"

    @property
    def index(self) -> Path:
        return self.root / "index.db"

    @property
    def archive_state(self) -> Path:
        """What this machine knows of the team archive; nothing where none was ever set."""
        return self.root / "archive.db"

    @property
    def global_db(self) -> Path:
        return self.root / "global.db"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def model_facts(self) -> Path:
        """What was learnt about models; may be deleted at any time and is learnt again."""
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
        """What may be deleted at any time."""
        return self.root / "cache"

    @property
    def workspaces(self) -> Path:
        return self.root / "workspaces"

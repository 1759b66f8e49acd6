"""A home and a workspace for tests of the composition: nothing of the process's own environment is in it."""

import json
from pathlib import Path
from typing import Any

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.policy.trust import TrustBook


class AppPlace:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.workspace = (root / "project").resolve()
        self.workspace.mkdir()
        self.said: list[str] = []

    def configure(self, **settings: Any) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")

    def configure_workspace(self, **settings: Any) -> None:
        (self.workspace / ".ollm").mkdir(exist_ok=True)
        (self.workspace / ".ollm" / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")

    def trust(self) -> None:
        TrustBook(self.home / "trust.json").trust(self.workspace)

    def process(self, *, workspace: bool = True, flags: dict[str, Any] | None = None, **variables: str) -> ProcessScope:
        environment = {"OLLM_HOME": str(self.home), "HOME": str(self.root), "PATH": "/usr/bin:/bin", **variables}
        place = self.workspace if workspace else None
        return ProcessScope(environment, workspace=place, flags=flags, warn=self.said.append)

    def scope(self, **variables: str) -> WorkspaceScope:
        return WorkspaceScope(self.process(**variables), self.workspace)

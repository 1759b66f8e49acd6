"""The port of the archive: the parts of a process scope that it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ollm.config.environment import Home
    from ollm.config.settings import Settings
    from ollm.domain.clock import Clock
    from ollm.store.session_files.store import SessionFiles
    from ollm.store.session_index.index import SessionIndex


class ArchiveHost(Protocol):
    """Settings, environment, sessions and privacy rules of one run of the program."""

    workspace: Path | None

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def home(self) -> Home: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def session_files(self) -> SessionFiles: ...

    @property
    def sessions_directory(self) -> Path: ...

    @property
    def session_index(self) -> SessionIndex: ...

    def resolve_user_path(self, named: str) -> Path: ...

    def redact_field(self, name: str, text: str) -> str:
        """Redact secrets in a text, or all of it if the name marks it as a secret."""

    def make_path_filter(self, workspace: str | None) -> Callable[[str], bool]:
        """Make a predicate for the paths that `.ollmignore` hides in a workspace."""

"""The composition root, in three scopes: the process, a workspace, a conversation.

Each part is imported and built where it is first needed, so that a command pays for what it uses; parts are closed in
reverse. Nothing else in the house builds its own collaborators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.clock import Clock, now

if TYPE_CHECKING:
    from ollm.config.load import Loaded
    from ollm.config.paths import Home
    from ollm.config.settings import Settings
    from ollm.domain.events import Event
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.rules import RuleSet
    from ollm.providers.model_store import ModelStore
    from ollm.providers.registry import Registry
    from ollm.services.chat_recording import ChatRecordingService, SessionLibrary, Trace
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor
    from ollm.store.model_facts import ModelFactsFile
    from ollm.store.session_files import SessionFiles
    from ollm.store.session_index.index import SessionIndex
    from ollm.store.workspace_db import WorkspaceDatabase
    from ollm.system.paths import Boundary


class Process:
    """What one run of the program shares: home, environment, settings, the archive."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        workspace: Path | None = None,
        flags: Mapping[str, Any] | None = None,
        clock: Clock = now,
    ) -> None:
        from ollm.config.environment import home, process_environment

        self.environment = process_environment() if environment is None else environment
        self.home: Home = home(self.environment)
        self.clock = clock
        self._workspace = workspace
        self._flags = flags or {}

    @cached_property
    def loaded(self) -> Loaded:
        from ollm.config.load import load

        return load(
            self.home,
            self.environment,
            workspace=self._workspace,
            trusted=self.trusted,
            flags=self._flags,
        )

    @cached_property
    def trusted(self) -> bool:
        """Whether the workspace's own files may be used."""
        return False

    @cached_property
    def settings(self) -> Settings:
        return self.loaded.usable()

    @cached_property
    def user_home(self) -> Path:
        from ollm.config.environment import user_home

        return user_home(self.environment)

    @cached_property
    def session_files(self) -> SessionFiles:
        from ollm.store.session_files import Places, SessionFiles

        directory, legacy = self.session_directories
        return SessionFiles(Places(directory=directory, legacy=legacy, trash=self.home.trash), self.clock)

    @cached_property
    def session_directories(self) -> tuple[Path, Path]:
        """Where sessions are, and where an earlier version kept them. Settings are read only where there are some."""
        if not self.home.config.exists():
            return self.home.sessions, self.home.legacy_sessions
        return self.place(self.settings.sessions.data_dir, self.home.sessions), self.home.legacy_sessions

    @cached_property
    def session_index(self) -> SessionIndex:
        from ollm.store.session_index.index import SessionIndex

        return SessionIndex(self.home.index, self.session_directories)

    @cached_property
    def library(self) -> SessionLibrary:
        from ollm.services.chat_recording import SessionLibrary

        sessions = self.settings.sessions
        return SessionLibrary(self.session_files, self.session_index, sessions, traces=self.traces, clock=self.clock)

    def traces(self, workspace: str | None) -> Iterator[Trace]:
        """Everything outside a session's own files that may hold something of it (design 3.9)."""
        from ollm.store.session_traces import InputHistory, NamedDirectories, SnapshotMap

        yield NamedDirectories((self.home.snapshots, self.home.undo))
        yield SnapshotMap(self.home.snapshots / "snapshot-map.json")
        yield InputHistory(self.home.input_history)
        if workspace and Path(workspace).is_dir():
            yield WorkspaceScope(self, Path(workspace)).database

    @cached_property
    def providers(self) -> Registry:
        from ollm.providers.registry import Registry

        return Registry(self.settings.provider, self.home, self.environment)

    def providers_for(self, model: str) -> Registry:
        """The same choice of server, with another model."""
        import msgspec

        from ollm.providers.registry import Registry

        settings = msgspec.structs.replace(self.settings.provider, model=model)
        return Registry(settings, self.home, self.environment)

    @cached_property
    def model_store(self) -> ModelStore:
        from ollm.providers.model_store import ModelStore

        return ModelStore(self.home.models, self.settings.models.urls)

    @cached_property
    def model_facts(self) -> ModelFactsFile:
        from ollm.store.model_facts import ModelFactsFile

        return ModelFactsFile(self.home.model_facts)

    @cached_property
    def sanitization(self) -> EnvironmentSanitizationService:
        """Which variables are kept from tools; the ones the settings name as holding a key always are."""
        import msgspec

        from ollm.services.environment_sanitization import EnvironmentSanitizationService

        configured, tools = self.settings.environment, self.settings.tools
        named = tuple(name for name in (self.settings.provider.api_key_env, tools.web_search.api_key_env) if name)
        rules = msgspec.structs.replace(configured, deny_patterns=(*configured.deny_patterns, *named))
        return EnvironmentSanitizationService(rules)

    @cached_property
    def tool_environment(self) -> Mapping[str, str]:
        """What tools, hooks and servers are started with."""
        return self.sanitization.sanitize(self.environment)

    @cached_property
    def redactor(self) -> Redactor:
        """Takes out what looks secret and the values of the variables that tools do not get."""
        from ollm.services.redaction import Redactor

        return Redactor(self.sanitization.removed_values(self.environment))

    def recording(self, emit: Callable[[Event], None]) -> ChatRecordingService:
        from ollm.services.chat_recording import ChatRecordingService

        return ChatRecordingService(
            self.session_files, self.settings.sessions, emit=emit, library=self.library, clock=self.clock
        )

    def place(self, named: str, default: Path) -> Path:
        """A directory from the settings; the documented default follows OLLM_HOME."""
        if named in ("~/.ollm/sessions", ""):
            return default
        path = Path(named.replace("~", str(self.user_home), 1)) if named.startswith("~") else Path(named)
        return path if path.is_absolute() else self.home.root / path


class WorkspaceScope:
    """What all conversations in one workspace share: the boundary, the policy, its memory."""

    def __init__(self, process: Process, path: Path) -> None:
        self.process = process
        self.path = path

    @cached_property
    def boundary(self) -> Boundary:
        from ollm.system.paths import Boundary

        roots = [self.process.place(root, self.path) for root in self.process.settings.tools.allowed_roots]
        return Boundary.around(self.path, roots, user_home=self.process.user_home, ollm_home=self.process.home.root)

    @cached_property
    def database(self) -> WorkspaceDatabase:
        from ollm.store.workspace_db import WorkspaceDatabase
        from ollm.store.workspace_place import workspace_directory

        return WorkspaceDatabase(workspace_directory(self.path, self.process.home))

    def policy(self, grants: tuple[str, ...] = ()) -> PolicyEngine:
        from ollm.policy.engine import PolicyEngine
        from ollm.policy.grants import GrantBook

        return PolicyEngine(
            rule_set(self.process.loaded),
            self.boundary,
            grants=GrantBook(self.process.home.grants, grants),
            approval=self.process.settings.policy.approval,
            trusted=self.process.trusted,
        )


def rule_set(loaded: Loaded) -> RuleSet:
    """The configured rules with where each stands."""
    from ollm.policy.rules import RuleSet, Source, read_rules

    rules = [
        rule
        for entry, where in zip(loaded.settings.policy.rules, loaded.rule_places, strict=True)
        for rule in read_rules(
            [entry],
            Source(file=where.place.file, lines=(where.place.line,), workspace=where.layer == "workspace"),
        )
    ]
    return RuleSet(rules=tuple(rules), default_action=loaded.settings.policy.default_action)


def redact_error(text: str) -> str:
    """A message as it may be printed: by the built-in rules alone, since the settings may be what is wrong."""
    from ollm.config.environment import process_environment
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor

    return Redactor(EnvironmentSanitizationService().removed_values(process_environment())).redact(text)

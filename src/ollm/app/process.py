"""Objects shared by one run of the program: home, environment, settings, archive, model servers, model facts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ollm.config.environment import copy_environment, find_home, find_user_home, read_log_level
from ollm.domain.clock import Clock, now
from ollm.domain.lazy import LateObject

if TYPE_CHECKING:
    from ollm.archive.process import ArchiveProcess
    from ollm.config.environment import Home
    from ollm.config.load import LoadedSettings
    from ollm.config.settings import ProviderSettings, Settings
    from ollm.domain.events import Event
    from ollm.extensions.loader import Extensions
    from ollm.policy.trust import TrustBook
    from ollm.providers.local_models.model_store import ModelStore
    from ollm.providers.registry import ProviderRegistry
    from ollm.runtime.model.choice import ModelChooser
    from ollm.services.chat_recording.library import DeletionLog, ErasableStore, SessionLibrary
    from ollm.services.chat_recording.service import ChatRecordingService
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor
    from ollm.store.model_facts import ModelFactsFile
    from ollm.store.notes import NoteStore
    from ollm.store.saved_slots import SavedSlots
    from ollm.store.session_files.store import SessionFiles
    from ollm.store.session_index.index import SessionIndex

BUILT_IN_COMMANDS = Path(__file__).parents[1] / "runtime" / "commands" / "texts"


class SettingsScope:
    """Environment, settings, secrets and trust of one run. Settings are read, and their problems told, on first use."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        workspace: Path | None = None,
        flags: Mapping[str, Any] | None = None,
        clock: Clock = now,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.environment = copy_environment() if environment is None else environment
        self.home: Home = find_home(self.environment)
        self.clock = clock
        self.workspace = workspace
        self._flags = flags or {}
        self._warn = warn or print_warning
        self._making_rules = False

    @cached_property
    def loaded_settings(self) -> LoadedSettings:
        """Settings and their problems. Non-fatal problems are reported once, on first use."""
        from ollm.config.load import stamp_files

        self._settings_stamp = stamp_files(self.home, self.workspace)
        found = self._read_settings(self.trusted)
        for problem in found.problems:
            if not problem.fatal:
                self._warn(redact_error(str(problem)))
        return found

    def _read_settings(self, trusted: bool) -> LoadedSettings:
        from ollm.config.load import load_settings

        place = self.workspace
        return load_settings(self.home, self.environment, workspace=place, trusted=trusted, flags=self._flags)

    def read_changed_settings(self) -> LoadedSettings | None:
        """Read the settings again if a file was written since they were last read; the others stay in use."""
        from ollm.config.load import stamp_files

        _, before = self.loaded_settings, self._settings_stamp
        self._settings_stamp = stamp_files(self.home, self.workspace)
        if self._settings_stamp == before:
            return None
        return self._read_settings(self.workspace is not None and self.trust_book.is_trusted(self.workspace))

    @cached_property
    def trusted(self) -> bool:
        """True if the workspace's own files may be used."""
        return self.workspace is not None and self.trust_book.is_trusted(self.workspace)

    @cached_property
    def trust_book(self) -> TrustBook:
        from ollm.policy.trust import TrustBook

        return TrustBook(self.home.trust, self.clock)

    @cached_property
    def settings(self) -> Settings:
        settings = self.loaded_settings.require_settings()
        self.start_logging()
        return settings

    def start_logging(self) -> None:
        """Start writing the log, beginning with the problems in the settings."""
        import logging

        from ollm.system.logs import start_logging

        start_logging(self.home.log, read_log_level(self.environment) or "INFO", self.redact)
        for problem in self.loaded_settings.problems:
            logging.getLogger("ollm.config").warning(str(problem), extra={"operation": "load"})

    def redact(self, text: str) -> str:
        """Redact secrets: by all rules once the settings are loaded, and by the built-in rules before that and
        while the rules are being built."""
        if "settings" not in self.__dict__ or self._making_rules:
            return redact_error(text)
        return self.redactor.redact(text)

    def redact_field(self, name: str, text: str) -> str:
        return self.redactor.redact_field(name, text)

    @cached_property
    def user_home(self) -> Path:
        return find_user_home(self.environment)

    @cached_property
    def sanitization(self) -> EnvironmentSanitizationService:
        """Filter that removes variables from tools' environment, including those the settings name for keys."""
        from msgspec.structs import replace

        from ollm.services.environment_sanitization import EnvironmentSanitizationService

        configured, tools = self.settings.environment, self.settings.tools
        keys = self.settings.provider.api_key_env, tools.web_search.api_key_env, self.settings.archive.url_env
        named = tuple(filter(None, (*keys, *self.settings.roles.key_variables)))
        rules = replace(configured, deny_patterns=(*configured.deny_patterns, *named))
        self._making_rules = True
        try:
            return EnvironmentSanitizationService(rules)
        finally:
            self._making_rules = False

    @cached_property
    def tool_environment(self) -> Mapping[str, str]:
        """The environment of tools, hooks and servers."""
        for warning in self.sanitization.warnings:
            self._warn(warning)
        return self.sanitization.sanitize(self.environment)

    @cached_property
    def redactor(self) -> Redactor:
        """Redactor of text that looks secret and of the values of variables withheld from tools."""
        from ollm.services.redaction import Redactor

        return Redactor(self.sanitization.list_removed_values(self.environment))

    @cached_property
    def own_settings(self) -> Settings:
        """Settings without the workspace's."""
        return self._read_settings(trusted=False).settings if self.trusted else self.settings

    def resolve_user_path(self, named: str) -> Path:
        """Resolve a path from the settings. `~` and relative paths refer to the user's home."""
        rest = named.removeprefix("~/") if named.startswith("~/") else "" if named == "~" else named
        return self.user_home / rest

    def find_directories(self, name: str, workspace: Path) -> tuple[Path, ...]:
        """List directories of custom commands, skills or agents: a trusted workspace's, the home's, the extensions',
        and our own commands."""
        theirs = (workspace / ".ollm" / name,) if self.trusted else ()
        extensions = (self.home.extensions / one / name for one in self.settings.extensions.enabled)
        ours = (BUILT_IN_COMMANDS,) if name == "commands" else ()
        return (*theirs, self.home.root / name, *extensions, *ours)

    def resolve_directory(self, named: str, default: Path) -> Path:
        """Resolve a directory from the settings, or return the default. `~/.ollm` follows OLLM_HOME."""
        return self.home.resolve_path(named) if named else default


class ProcessScope(SettingsScope):
    """Objects of one run: the archive, model servers and model facts, each built on first use."""

    @cached_property
    def session_files(self) -> SessionFiles:
        from ollm.store.session_files.places import SessionPlaces
        from ollm.store.session_files.store import SessionFiles

        places = SessionPlaces(directory=self.sessions_directory, trash=self.home.trash)
        return SessionFiles(places, self.clock, lambda name: self.session_index.find_known(name))  # noqa: PLW0108 - late

    @cached_property
    def sessions_directory(self) -> Path:
        """Directory of sessions. Those of an earlier version are moved to it."""
        named = self.settings.sessions.data_dir if self.home.config.exists() else ""
        directory = self.resolve_directory(named, self.home.sessions)
        if self.home.legacy_sessions.is_dir():
            from ollm.store.session_files.places import SessionPlaces, adopt_sessions

            adopt_sessions(SessionPlaces(directory=directory), self.home.legacy_sessions, self.clock)
        return directory

    @cached_property
    def session_index(self) -> SessionIndex:
        from ollm.store.session_index.index import SessionIndex

        return SessionIndex(self.home.index, self.sessions_directory)

    @cached_property
    def library(self) -> SessionLibrary:
        from ollm.services.chat_recording.library import SessionLibrary

        return SessionLibrary(
            self.session_files,
            cast("SessionIndex", LateObject(lambda: self.session_index)),
            self.settings.sessions,
            traces=self.find_traces,
            deletions=self.find_deletion_log(),
            clock=self.clock,
        )

    def find_deletion_log(self) -> DeletionLog | None:
        """Return the log of sessions to delete from the team archive, or None without one or if it keeps them."""
        if self.settings.archive.deletes == "keep" or not self.settings.archive.is_set:
            return None
        from ollm.archive.state import ArchiveTombstones

        return ArchiveTombstones(self.home.archive_state, self.clock)

    @property
    def archive_process(self) -> ArchiveProcess:
        from ollm.archive.process import ArchiveProcess

        return ArchiveProcess(self)

    def make_path_filter(self, workspace: str | None) -> Callable[[str], bool]:
        """Make a predicate for the paths that `.ollmignore` hides in a workspace."""
        from ollm.services.file_discovery.rules import HiddenPaths

        return HiddenPaths(workspace).is_hidden

    def find_traces(self, workspace: str | None) -> Iterator[ErasableStore]:
        """Find every store outside a session's own files that may hold its data, even if the session is unreadable
        or was resumed in a folder that was moved since."""
        from ollm.store.session_traces import InputHistoryFile, SessionDirectories
        from ollm.store.snapshot_files import SnapshotFiles

        yield SessionDirectories((self.home.snapshots, self.home.undo, self.home.taken))
        yield SnapshotFiles(self.home.snapshots)
        yield InputHistoryFile(self.home.input_history)
        yield self.saved_slots
        if self.home.checkpoints.exists():
            from ollm.services.file_checkpoints.records import CheckpointEraser

            yield CheckpointEraser(self.home.checkpoints)
        from ollm.store.workspace_db import WorkspaceDatabase
        from ollm.store.workspace_place import find_databases, find_main_workspace

        gone = workspace and not Path(workspace).is_dir()  # For a lost worktree, any workspace may hold the record.
        places = [row["workspace"] for row in self.session_index.list_sessions()] if gone else [workspace]
        held_in = [find_main_workspace(Path(one), self.settings.worktree.dir) for one in places if one]
        yield from map(WorkspaceDatabase, find_databases((*held_in, Path()), self.home))

    @property
    def saved_slots(self) -> SavedSlots:
        from ollm.store.saved_slots import SavedSlots

        named = self.settings.provider.slot_save_path
        folder = self.resolve_user_path(named) if named else None
        return SavedSlots(self.home.slots, folder, self.settings.provider.slot_save_gigabytes)

    @cached_property
    def providers(self) -> ProviderRegistry:
        return self.create_registry(self.settings.provider)

    def create_registry(self, settings: ProviderSettings, model: str | None = None) -> ProviderRegistry:
        from msgspec.structs import replace

        from ollm.providers.registry import ProviderRegistry

        settings = replace(settings, model=model) if model else settings
        brought = self.extensions
        others, problems = (brought.providers, brought.problems) if brought else ({}, [])
        return ProviderRegistry(
            settings, self.home, self.environment, others=others, problems=problems, models=self.settings.models
        )

    @cached_property
    def extensions(self) -> Extensions | None:
        """Enabled extensions, loaded, or None without any, in which case no extension code is imported."""
        enabled = self.settings.extensions.enabled
        if not enabled:
            return None
        from ollm.extensions.loader import ExtensionContext, load_extensions

        context = ExtensionContext(self.workspace or Path.cwd(), self.tool_environment, self.settings)
        return load_extensions(enabled, self.home.extensions, context)

    @cached_property
    def mcp_entries(self) -> tuple[dict[str, Any], list[str]]:
        """MCP servers by name, and notes about `.mcp.json`. The settings take precedence over the extensions, and those
        over the `.mcp.json` of a trusted workspace."""
        merged = {**(self.extensions.mcp_servers if self.extensions else {}), **self.settings.mcp_servers}
        if self.workspace is None or not (self.workspace / ".mcp.json").exists() or not self.trusted:
            return merged, []
        from ollm.extensions.mcp.settings import read_project_servers

        project, notes = read_project_servers(self.workspace)
        return {**project, **merged}, notes

    @cached_property
    def model_store(self) -> ModelStore:
        from ollm.providers.local_models.model_store import ModelStore

        return ModelStore(self.home.models, self.settings.models.get("urls", {}))

    @cached_property
    def model_facts(self) -> ModelFactsFile:
        from ollm.store.model_facts import ModelFactsFile

        return ModelFactsFile(self.home.model_facts, self.clock, self._warn)

    @cached_property
    def model_chooser(self) -> ModelChooser:
        from ollm.runtime.model.choice import ModelChooser

        return ModelChooser(self.settings, self.create_registry, self.model_facts, self.home.run)

    def create_recording_service(
        self, emit: Callable[[Event], None], count_tokens: Callable[[str], int] | None = None
    ) -> ChatRecordingService:
        from ollm.services.chat_recording.service import ChatRecordingService

        return ChatRecordingService(
            self.session_files,
            self.settings.sessions,
            emit=emit,
            library=self.library,
            clock=self.clock,
            count_tokens=count_tokens,
        )

    @cached_property
    def notes(self) -> NoteStore:
        """Notes of the memory tool for all workspaces."""
        from ollm.store.database import GLOBAL_MIGRATIONS, Database
        from ollm.store.notes import NoteStore

        database = Database(self.home.global_db, GLOBAL_MIGRATIONS, report=self._warn)
        return NoteStore(lambda: database, clock=self.clock)

    def close(self) -> None:
        for name in {"session_index", "notes"} & self.__dict__.keys():
            getattr(self, name).close()


def print_warning(text: str) -> None:
    sys.stderr.write(f"ollm: {text}\n")


def redact_error(text: str) -> str:
    """Redact a message by the built-in rules alone, since the settings may be at fault."""
    return _get_error_redactor().redact(text)


@cache
def _get_error_redactor() -> Redactor:
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor

    return Redactor(EnvironmentSanitizationService().list_removed_values(copy_environment()))

"""Objects shared by one run of the program: home, environment, settings, archive, model servers, model facts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ollm.config.environment import copy_environment, find_home, find_user_home, read_log_level
from ollm.domain.clock import Clock, now
from ollm.domain.errors import OllmError
from ollm.domain.lazy import LateObject, Lazy

if TYPE_CHECKING:
    from ollm.config.environment import Home
    from ollm.config.load import LoadedSettings
    from ollm.config.settings import EnvironmentSettings, ProviderSettings, Settings
    from ollm.domain.events import Event
    from ollm.domain.model_facts import ModelFacts
    from ollm.extensions.loader import Extensions
    from ollm.policy.trust import TrustBook
    from ollm.providers.base import Provider
    from ollm.providers.local_models.model_store import ModelStore
    from ollm.providers.registry import ProviderChoice, ProviderRegistry
    from ollm.runtime.model.model import Model
    from ollm.services.chat_recording.library import DeletionLog, ErasableStore, SessionLibrary
    from ollm.services.chat_recording.service import ChatRecordingService
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.file_discovery.rules import IgnoreRule
    from ollm.services.redaction import Redactor
    from ollm.store.model_facts import ModelFactsFile
    from ollm.store.notes import NoteStore
    from ollm.store.saved_slots import SavedSlots
    from ollm.store.session_files.store import SessionFiles
    from ollm.store.session_index.index import SessionIndex

Fields = TypeVar("Fields", "ProviderSettings", "ModelFacts", "EnvironmentSettings", "ProviderChoice")
BUILT_IN_COMMANDS = Path(__file__).parents[1] / "runtime" / "commands" / "texts"
READ_TIMEOUT_FACTOR = 2.0  # times the seconds that reading a full window should take


def _replace(value: Fields, **changes: Any) -> Fields:
    """Copy a struct with some fields changed. msgspec is imported here, since listing commands do not need it."""
    import msgspec

    return msgspec.structs.replace(value, **changes)


class ProcessScope:
    """Objects of one run. Settings are read on first use, and their problems are reported once."""

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
        self._settings = Lazy(self._use_settings)

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

    @property
    def settings(self) -> Settings:
        return self._settings.get()

    def _use_settings(self) -> Settings:
        settings = self.loaded_settings.require_settings()
        self.start_logging()
        return settings

    def start_logging(self) -> None:
        """Start writing the log, beginning with the problems in the settings."""
        import logging

        from ollm.system.logs import start_logging

        start_logging(self.home.log, read_log_level(self.environment), self.redact)
        for problem in self.loaded_settings.problems:
            logging.getLogger("ollm.config").warning(str(problem), extra={"operation": "load"})

    def redact(self, text: str) -> str:
        """Redact secrets: by all rules once the settings are loaded, and by the built-in rules before that and
        while the rules are being built."""
        if self._settings.built is None or self._making_rules:
            return redact_error(text)
        return self.redactor.redact(text)

    @cached_property
    def user_home(self) -> Path:
        return find_user_home(self.environment)

    @cached_property
    def sanitization(self) -> EnvironmentSanitizationService:
        """Filter that removes variables from tools' environment, including those the settings name for keys."""
        from ollm.services.environment_sanitization import EnvironmentSanitizationService

        configured, tools = self.settings.environment, self.settings.tools
        keys = self.settings.provider.api_key_env, tools.web_search.api_key_env, self.settings.archive.url_env
        named = tuple(filter(None, (*keys, *self.settings.roles.key_variables)))
        rules = _replace(configured, deny_patterns=(*configured.deny_patterns, *named))
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
        """Settings from the user's own file, without the workspace's."""
        if not self.trusted:
            return self.settings
        from ollm.config.load import load_settings

        return load_settings(self.home, self.environment).settings

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
        settings = self.settings.archive
        if settings.deletes == "keep" or not (settings.url or settings.url_env):
            return None
        from ollm.archive.state import ArchiveTombstones

        return ArchiveTombstones(self.home.archive_state, self.clock)

    def redact_field(self, name: str, text: str) -> str:
        """Redact secrets in a text, or all of it if the name marks a secret."""
        from ollm.services.redaction import is_secret_name
        from ollm.services.redaction.patterns import MARK

        return MARK if text and name and is_secret_name(name) else self.redactor.redact(text)

    def make_path_filter(self, workspace: str | None) -> Callable[[str], bool]:
        """Make a predicate for the paths that `.ollmignore` hides in a workspace."""
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

        gone = workspace and not Path(workspace).is_dir()  # perhaps a worktree: any other may keep its record
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
        from ollm.providers.registry import ProviderRegistry

        settings = _replace(settings, model=model) if model else settings

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
    def model_store(self) -> ModelStore:
        from ollm.providers.local_models.model_store import ModelStore

        return ModelStore(self.home.models, self.settings.models.get("urls", {}))

    @cached_property
    def model_facts(self) -> ModelFactsFile:
        from ollm.store.model_facts import ModelFactsFile

        return ModelFactsFile(self.home.model_facts, self.clock)

    async def choose_model(
        self,
        name: str | None = None,
        *,
        anew: bool = False,
        role: ProviderSettings | None = None,
        announce: Callable[[str], object] = str,
    ) -> Model:
        """Choose model and window. `name` replaces the model, `role` the server; `anew` ignores what was learnt.
        `announce` is told what takes long."""
        from ollm.providers.model_families import BLOCKS_BELOW, read_size
        from ollm.providers.window import choose_window
        from ollm.runtime.model.model import Model
        from ollm.store.model_facts import make_facts_key

        wanted, registry = role or self.settings.provider, self.providers
        if name is not None or role is not None:
            registry = self.create_registry(wanted, name)
        choice = await registry.choose()
        try:
            if wanted.context_window is None:
                choice = _replace(choice, model=await choice.provider.prepare(choice.model, announce))
            facts = self.model_facts.get(make_facts_key(choice.provider.name, choice.provider.base_url, choice.model))
            size, why = await choose_window(choice.provider, choice.model, wanted, facts.window)
        except BaseException:
            await choice.provider.close()
            raise
        if (info := getattr(choice.provider, "described", None)) and facts.server_mark not in (None, info.mark):
            facts = facts.forget_server()  # other weights, template, window or build than when it was learnt
        facts = await self.choose_call_form(choice, facts, wanted)
        self.extend_timeout(choice.provider, size, facts, wanted)
        said, facts = size, facts.forget_server() if anew else facts
        facts = await self.compare_set_window(choice, facts, wanted.context_window)
        less = facts.served_window if facts.said_window == said else None
        is_servers = getattr(facts.learnt.get("said_window"), "source", "") == "server"
        if less and less < said and (is_servers or wanted.context_window is None):
            size, why = less, f"learnt: the server serves no more, though {said} was said"
        model = Model(choice.provider, choice.model, size, facts, why=f"Server: {choice.why}. Context window: {why}.")
        model.said_window, model.price = said, wanted.price
        model.join_queue(self.home.run, wanted.parallel)
        if self.settings.models:
            from ollm.providers.request_settings import find_model_settings

            model.settings = find_model_settings(self.settings.models, choice.model)
        parameters = facts.parameters or read_size(model.name)
        model.is_small = parameters is not None and parameters < BLOCKS_BELOW
        return model

    async def compare_set_window(self, to: ProviderChoice, facts: ModelFacts, wanted: int | None) -> ModelFacts:
        """Compare the configured window once with the server's. Ollama and our own server use what is set."""
        if wanted is None or wanted == facts.said_window or to.provider.name != "openai":
            return facts
        try:
            served = (await to.provider.describe(to.model)).window
        except OllmError:
            return facts
        found = {"served_window": served if served and served < wanted else None, "said_window": wanted}
        learnt = self.model_facts.update(facts.key, found, dict.fromkeys(found, "server")).learnt
        return _replace(facts, **found, learnt=learnt)

    async def choose_call_form(self, to: ProviderChoice, facts: ModelFacts, settings: ProviderSettings) -> ModelFacts:
        """Choose the form of tool calls: as set, as learnt, or as expected of the family and size."""
        wanted = settings.call_form
        if wanted != "auto":
            result = "user" if wanted == "text" else facts.result_form
            facts = _replace(facts, call_form=wanted, result_form=result)
        sized = facts.call_form == "blocks" and facts.parameters is None  # its size is asked for too
        if facts.call_form != "unknown" and not sized:
            return facts
        if facts.first_form and settings.context_window is not None:
            return _replace(facts, call_form=facts.first_form if wanted == "auto" else facts.call_form)
        from ollm.providers.model_families import choose_first_form, count_parameters

        try:
            info = await to.provider.describe(to.model)
        except OllmError:
            return facts
        found = {"first_form": choose_first_form(info, to.model), "parameters": count_parameters(info, to.model)}
        if settings.context_window is not None:
            self.model_facts.update(facts.key, found, dict.fromkeys(found, "server"))
        form = found["first_form"] if facts.call_form == "unknown" else facts.call_form
        return _replace(facts, call_form=form, **found)

    def extend_timeout(self, provider: Provider, window: int, facts: ModelFacts, wanted: ProviderSettings) -> None:
        """Give a slow model the time that reading a full window takes, unless the settings give a timeout."""
        from ollm.config.settings import ProviderTimeouts

        as_usual = wanted.timeouts.first_token == ProviderTimeouts().first_token
        if facts.prefill_per_second and as_usual:
            provider.allow(READ_TIMEOUT_FACTOR * window / facts.prefill_per_second)

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
        from ollm.store.database import GLOBAL_MIGRATIONS
        from ollm.store.notes import NoteStore

        notes = NoteStore(lambda: self.home.global_db, GLOBAL_MIGRATIONS, clock=self.clock)
        notes.report = self._warn
        return notes

    def close(self) -> None:
        for name in {"session_index", "notes"} & self.__dict__.keys():
            getattr(self, name).close()


class HiddenPaths:
    """Matcher of paths hidden by rule files, each read once. Without a workspace nothing is hidden."""

    def __init__(self, workspace: str | None) -> None:
        self._root = PurePath(workspace) if workspace else None
        self._read_rules = cache(self._read_rules_of)

    def is_hidden(self, path: str) -> bool:
        if self._root is None or "\0" in path:
            return False
        normal = os.path.normpath(self._root / path)
        if not PurePath(normal).is_relative_to(self._root):
            return False
        parts = PurePath(normal).relative_to(self._root).parts
        return any(self._hides(parts[:end], directory=end < len(parts)) for end in range(1, len(parts) + 1))

    def _hides(self, parts: tuple[str, ...], *, directory: bool) -> bool:
        from ollm.services.file_discovery.rules import Matcher

        rules = [rule for depth in range(len(parts)) for rule in self._read_rules(parts[:depth])]
        if not rules:
            return False
        is_directory = directory or Path(str(self._root), *parts).is_dir()
        return Matcher(rules).hides(os.fsencode("/".join(parts)), directory=is_directory)

    def _read_rules_of(self, parts: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
        from ollm.services.file_discovery.rules import OLLM_IGNORE, read_ignore_file

        path = Path(str(self._root), *parts, OLLM_IGNORE)
        if path.is_symlink() or not path.is_file():
            return ()
        return read_ignore_file(str(path), os.fsencode("/".join(parts))).rules


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

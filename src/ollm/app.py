"""The composition root, in three scopes: the process, a workspace, a conversation.

Each part is imported and built where it is first needed, so that a command pays for what it uses; parts are closed in
reverse. Nothing else in the house builds its own collaborators.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.clock import Clock, now
from ollm.domain.errors import OllmError, UsageError

if TYPE_CHECKING:
    from ollm.config.load import Loaded
    from ollm.config.paths import Home
    from ollm.config.settings import Settings
    from ollm.domain.context import CompressionRecord
    from ollm.domain.events import Event
    from ollm.domain.messages import Call
    from ollm.domain.session import Session
    from ollm.domain.tools import ToolCallRecord
    from ollm.extensions.hooks import Hooks
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.message_bus import MessageBus
    from ollm.policy.rules import RuleSet
    from ollm.policy.trust import TrustBook
    from ollm.providers.model_store import ModelStore
    from ollm.providers.registry import Registry
    from ollm.runtime.confirmation import Asker
    from ollm.runtime.conversation import LocalConversation
    from ollm.runtime.custom_commands import CustomCommands
    from ollm.runtime.event_stream import EventStream
    from ollm.runtime.model import Model
    from ollm.runtime.one_call import Desk
    from ollm.runtime.opening import Opening
    from ollm.runtime.parts import Parts
    from ollm.runtime.plan import Plan
    from ollm.runtime.prompt import Prompt
    from ollm.runtime.session import OpenSession, Resumed
    from ollm.runtime.workspace import WorkspaceContext
    from ollm.services.background_jobs import BackgroundJobs
    from ollm.services.chat_recording import ChatRecordingService, SessionLibrary, Trace
    from ollm.services.context_manager import ContextManager
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.services.goals import GoalKeeper
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.redaction import Redactor
    from ollm.services.snapshots import SnapshotManager
    from ollm.store.model_facts import ModelFactsFile
    from ollm.store.notes import NoteStore
    from ollm.store.session_files import SessionFiles
    from ollm.store.session_index.index import SessionIndex
    from ollm.store.snapshot_files import SnapshotFiles
    from ollm.store.workspace_db import WorkspaceDatabase
    from ollm.system.paths import Boundary
    from ollm.system.processes import ProcessHost
    from ollm.tools.registry import ToolRegistry
    from ollm.tools.web_fetch import PageCache


class Process:
    """What one run of the program shares: home, environment, settings, the archive."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        workspace: Path | None = None,
        flags: Mapping[str, Any] | None = None,
        clock: Clock = now,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        from ollm.config.environment import home, process_environment

        self.environment = process_environment() if environment is None else environment
        self.home: Home = home(self.environment)
        self.clock = clock
        self.workspace = workspace
        self._flags = flags or {}
        self._warn = warn or to_stderr

    @cached_property
    def loaded(self) -> Loaded:
        """The settings and what is wrong with them; what does not end the command is said here, once."""
        from ollm.config.load import load

        found = load(
            self.home,
            self.environment,
            workspace=self.workspace,
            trusted=self.trusted,
            flags=self._flags,
        )
        for problem in found.problems:
            if not problem.fatal:
                self._warn(redact_error(str(problem)))
        return found

    @cached_property
    def trusted(self) -> bool:
        """Whether the workspace's own files may be used."""
        return self.workspace is not None and self.trust.state(self.workspace).trusted

    @cached_property
    def trust(self) -> TrustBook:
        from ollm.policy.trust import TrustBook

        return TrustBook(self.home.trust, self.clock)

    @cached_property
    def settings(self) -> Settings:
        settings = self.loaded.usable()
        self.start_logging()
        return settings

    def start_logging(self) -> None:
        """From here on records go to the log; the mistakes of the settings are its first lines."""
        import logging

        from ollm.config.environment import log_level
        from ollm.system.logs import start_logging

        start_logging(self.home.log, log_level(self.environment), self._redact)
        for problem in self.loaded.problems:
            logging.getLogger("ollm.config").warning(str(problem), extra={"operation": "load"})

    def _redact(self, text: str) -> str:
        """By all rules once the settings are known, by the built-in ones before."""
        return self.redactor.redact(text) if "settings" in self.__dict__ else redact_error(text)

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

    def learnt_tokens(self, key: str, factor: float, samples: int) -> None:
        """Keep how the model counts, for the next conversation with it."""
        self.model_facts.update(key, token_factor=factor, token_samples=samples)

    async def model(self, name: str | None = None) -> Model:
        """The model to talk to and the window it is used with; `name` stands in place of the configured one."""
        from ollm.providers.window import window
        from ollm.runtime.model import Model
        from ollm.store.model_facts import facts_key

        registry = self.providers if name is None else self.providers_for(name)
        choice = await registry.choose()
        try:
            size, why = await window(choice.provider, choice.model, self.settings.provider)
        except BaseException:
            await choice.provider.close()
            raise
        facts = self.model_facts.get(facts_key(choice.provider.name, choice.provider.base_url, choice.model))
        return Model(choice.provider, choice.model, size, facts, why=f"{choice.why}; window: {why}")

    def recording(self, emit: Callable[[Event], None]) -> ChatRecordingService:
        from ollm.services.chat_recording import ChatRecordingService

        return ChatRecordingService(
            self.session_files, self.settings.sessions, emit=emit, library=self.library, clock=self.clock
        )

    @cached_property
    def notes(self) -> NoteStore:
        """What the memory tool keeps for all workspaces."""
        from ollm.store.migrations import GLOBAL
        from ollm.store.notes import NoteStore

        return NoteStore(lambda: self.home.global_db, GLOBAL, clock=self.clock)

    def export(self, session_id: str, target: Path) -> None:
        """Write a session to a new file, in the form its name asks for."""
        from ollm.services.session_export import html, markdown
        from ollm.system.atomic import replace_file

        if target.exists():
            raise UsageError(f"{target} is there already.", action="Name a file that is not.")
        forms = {".md": markdown, ".markdown": markdown, ".html": html, ".htm": html}
        if form := forms.get(target.suffix.lower()):
            text = "".join(form(self.session_files.read(session_id).session))
            content = text.encode("utf-8", "surrogatepass")
        else:
            content = b"".join(self.session_files.document(session_id))
        replace_file(target, content)

    def place(self, named: str, default: Path) -> Path:
        """A directory from the settings; `~/.ollm` in it follows OLLM_HOME."""
        return self.home.place(named) if named else default


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

    @cached_property
    def notes(self) -> NoteStore:
        from ollm.store.migrations import WORKSPACE
        from ollm.store.notes import NoteStore
        from ollm.store.workspace_place import workspace_directory

        def locate() -> Path:
            return workspace_directory(self.path, self.process.home) / "memory.db"

        return NoteStore(locate, WORKSPACE, clock=self.process.clock)

    @cached_property
    def discovery(self) -> FileDiscoveryService:
        from ollm.services.file_discovery import FileDiscoveryService

        named = self.process.environment.get("XDG_CONFIG_HOME")
        settings, home = self.process.settings.file_discovery, self.process.user_home
        return FileDiscoveryService(settings, home, Path(named) if named else None)

    @cached_property
    def context(self) -> WorkspaceContext:
        from ollm.runtime.workspace import WorkspaceContext

        context = WorkspaceContext(
            self.path, self.database, self.process.library.summaries, self.process.settings.resume
        )
        context.settle()
        return context

    def close(self) -> None:
        """Let go of the databases and watches that were opened."""
        for name in ("database", "notes", "discovery"):
            if name in self.__dict__:
                getattr(self, name).close()

    def trust(self, yes: bool) -> str:
        """What /trust says, and does when it is confirmed. The files count from the next conversation on."""
        book = self.process.trust
        state = book.state(self.path)
        if state.trusted:
            return f"{state.workspace} is trusted since {state.since}."
        changed = [*state.added, *state.changed, *state.removed] if state.known else state.files
        listed = "".join(f"\n  {name}" for name in changed) or " no files of its own"
        if not yes:
            return f"{state.workspace} is not trusted. It brings:{listed}"
        book.trust(self.path)
        return f"{state.workspace} is trusted from the next conversation on, with:{listed}"

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

    def policy_of(self, file: Path) -> PolicyEngine:
        """The policy a file of rules makes when it stands in place of all others, built-in ones and grants too."""
        from ollm.config.load import load_policy
        from ollm.policy.engine import PolicyEngine

        loaded = load_policy(file)
        approval = loaded.usable().policy.approval
        return PolicyEngine(
            rule_set(loaded, builtin=False), self.boundary, approval=approval, trusted=self.process.trusted
        )


class ConversationScope:
    """The parts of one conversation. What must be closed is pushed onto `stack` when it is built."""

    def __init__(self, scope: WorkspaceScope, opening: Opening, stack: AsyncExitStack) -> None:
        self.scope = scope
        self.process = scope.process
        self.opening = opening
        self.stack = stack
        self.notices: list[str] = []
        self.asked_to_close: Callable[[], bool] = lambda: False
        self.attached: Callable[[], bool] = lambda: True

    async def open(self) -> LocalConversation:
        """Take the workspace, the session that was asked for and a model, and put them together."""
        from ollm.runtime.conversation import LocalConversation

        if not self.opening.one_shot:
            await self.hold_workspace()
        self.stack.push_async_callback(self.session.close)
        wanted = self.wanted_session()
        resumed = await self.session.resume(wanted) if wanted else None
        parts = self.parts(await self.model_for(resumed))
        self.bus.subscribe(self.stream.emit)
        self.observe(parts)
        if resumed:
            await self.take_up(parts, resumed)
        return LocalConversation(parts)

    def wanted_session(self) -> str | None:
        """The id of the session to resume; None for a new one."""
        if self.opening.session:
            return self.process.session_files.places.find(self.opening.session)
        if not self.opening.newest:
            return None
        standing = [found for found in self.scope.context.list_sessions() if found.status != "archived"]
        if not standing:
            self.notices.append("There is no session in this workspace yet; a new one begins.")
        return standing[0].session_id if standing else None

    async def hold_workspace(self) -> None:
        from ollm.runtime.lease_holding import take
        from ollm.store.lease import Lease
        from ollm.store.workspace_place import workspace_directory

        lease = Lease(workspace_directory(self.scope.path, self.process.home), self.process.clock)
        await take(lease, force=self.opening.force)
        self.asked_to_close = lease.asked_to_close
        self.stack.callback(lease.release)

    async def model_for(self, resumed: Resumed | None) -> Model:
        """The model a resumed session had, when it can be had and no other is configured."""
        from ollm.domain.errors import ModelError

        model: Model | None = None
        if resumed and not self.process.settings.provider.model:
            try:
                model = await self.process.model(resumed.session.model)
            except ModelError:
                self.notices.append(f"{resumed.session.model} is not to be had here any more.")
        model = model or await self.process.model()
        self.stack.push_async_callback(model.provider.close)
        if resumed and model.name != resumed.session.model:
            self.notices.append(f"This session was with {resumed.session.model}; it goes on with {model.name}.")
        return model

    async def take_up(self, parts: Parts, resumed: Resumed) -> None:
        """Fill the prompt with where the session stood."""
        from ollm.runtime.resume import Source, take_up
        from ollm.services.snapshots import context_of

        session = resumed.session
        if not self.scope.context.owns(session):
            raise UsageError(
                f"That session belongs to {session.metadata.workspace}.",
                action=f"ollm chat --workspace {session.metadata.workspace} --session {session.session_id[:8]}",
            )
        if resumed.damage:
            self.notices.append(f"The session's file was damaged: {resumed.damage}")
        record = self.scope.context.record_of(session)
        kept = self.scope.database.kept_context(session.session_id)
        source = Source(
            session=session, record=record, kept=kept, snapshot=lambda name: context_of(self.snapshot_files.load(name))
        )
        how = take_up(parts.prompt, source, full=self.opening.full)
        parts.mode_history.extend(session.metadata.mode_history)
        parts.context_history.extend(session.metadata.context_history)
        self.stream.session_id = session.session_id
        parts.prompt.belongs_to(session.session_id)
        self.notices.append(f"Taken up {how}.")
        for observer in parts.observers:
            await observer.session_opened(session.session_id, resumed=True)

    def observe(self, parts: Parts) -> None:
        from ollm.runtime.housekeeping import FreshPages, Housekeeping
        from ollm.runtime.learning import LearntTokens
        from ollm.runtime.parts import SessionView
        from ollm.runtime.workspace_memory import WorkspaceMemory

        settings, clock = self.process.settings, self.process.clock
        parts.observers.append(WorkspaceMemory(self.scope.database, settings.resume, SessionView(parts), clock))
        parts.observers.append(Housekeeping(self.process.library, self.stream.emit))
        parts.observers.append(FreshPages(self.pages))
        parts.observers.append(LearntTokens(parts, self.process.learnt_tokens))
        if self.hooks:
            from ollm.runtime.hook_observer import HookObserver

            observer = HookObserver(self.hooks)
            parts.observers.append(observer)
            self.stream.listen(observer.hear)
        self.stack.callback(self.scope.close)

    def parts(self, model: Model) -> Parts:
        from ollm.runtime.dispatch import Dispatch
        from ollm.runtime.parts import Parts

        settings = self.process.settings
        parts = Parts(
            workspace=self.opening.workspace,
            settings=settings,
            session=self.session,
            stream=self.stream,
            model=model,
            prompt=self.prompt(model),
            registry=self.registry,
            policy=self.policy,
            bus=self.bus,
            loops=self.loops(),
            dispatch=Dispatch(self.desk(sees=lambda: can_see(parts.model))),
            snapshots=self.snapshots,
            edits=self.edits,
            notes=self.scope.notes,
            plan=self.plan,
            workspace_context=self.scope.context,
            custom_commands=self.custom_commands(),
            closing=self.stack,
            choose_model=self.process.model,
            trust=self.scope.trust,
            export=self.process.export,
            approval=settings.policy.approval,
            auto_switch=settings.modes.auto_switch,
            notices=self.notices,
            asked_to_close=self.asked_to_close,
            clock=self.process.clock,
        )
        parts.show_tools()
        return parts

    @cached_property
    def stream(self) -> EventStream:
        from ollm.runtime.event_stream import EventStream

        return EventStream(self.process.clock)

    @cached_property
    def bus(self) -> MessageBus:
        from ollm.policy.message_bus import MessageBus

        return MessageBus()

    @cached_property
    def policy(self) -> PolicyEngine:
        return self.scope.policy(self.opening.grants)

    @cached_property
    def session(self) -> OpenSession:
        from ollm.runtime.session import OpenSession

        origin = "one-shot" if self.opening.one_shot else None
        recording = self.process.recording(self.stream.emit)
        return OpenSession(recording, str(self.opening.workspace), origin, self.process.clock)

    @cached_property
    def snapshots(self) -> SnapshotManager:
        from ollm.services.snapshots import SnapshotManager

        settings = self.process.settings.snapshots
        return SnapshotManager(self.snapshot_files, settings, emit=self.stream.emit, clock=self.process.clock)

    @cached_property
    def snapshot_files(self) -> SnapshotFiles:
        from ollm.store.snapshot_files import SnapshotFiles

        return SnapshotFiles(self.process.home.snapshots)

    @cached_property
    def edits(self) -> EditLedger:
        from ollm.services.edit_ledger import EditLedger

        def folder() -> Path | None:
            return self.process.home.undo / self.session.id if self.session.id else None

        return EditLedger(folder)

    @cached_property
    def plan(self) -> Plan:
        from ollm.runtime.plan import Plan

        return Plan(self.scope.notes.todos)

    @cached_property
    def goals(self) -> GoalKeeper:
        from ollm.services.goals import GoalKeeper

        return GoalKeeper(clock=self.process.clock)

    @cached_property
    def registry(self) -> ToolRegistry:
        """Every tool of ours with what it needs."""
        from ollm.domain.events import TodosChanged
        from ollm.runtime.archive import SessionArchive
        from ollm.tools.shelf import ShelfParts, stocked
        from ollm.tools.web_search import Search

        return stocked(
            ShelfParts(
                edits=self.edits,
                discovery=self.scope.discovery,
                notes=self.scope.notes,
                global_notes=self.process.notes,
                todos_changed=lambda todos: self.stream.emit(TodosChanged(todos=todos)),
                goals=self.goals,
                archive=SessionArchive(self.archived),
                pages=self.pages,
                jobs=self.jobs,
                search=Search(
                    key=self.process.environment.get(self.process.settings.tools.web_search.api_key_env or "")
                ),
            )
        )

    @cached_property
    def pages(self) -> PageCache:
        from ollm.tools.web_fetch import PageCache

        return PageCache()

    @cached_property
    def jobs(self) -> BackgroundJobs:
        """The commands of this conversation; all of them, and what they leave behind, end with it."""
        from ollm.services.background_jobs import BackgroundJobs

        jobs = BackgroundJobs(self.host, self.process.settings.tools.shell.max_background)
        self.stack.push_async_callback(jobs.close)
        return jobs

    @cached_property
    def host(self) -> ProcessHost:
        """Starts everything this conversation runs, and ends it."""
        from ollm.system.processes import ProcessHost, make_undumpable

        make_undumpable()
        host = ProcessHost()
        self.stack.push_async_callback(host.close)
        return host

    @cached_property
    def hooks(self) -> Hooks | None:
        """The configured hooks; None when there are none, and then nothing of them is imported."""
        if not self.process.settings.hooks:
            return None
        from ollm.extensions.hook_process import HookRunner
        from ollm.extensions.hook_settings import read_hooks
        from ollm.extensions.hooks import HookContext, Hooks

        found, problems = read_hooks(self.process.settings.hooks)
        self.notices.extend(problems)
        runner = HookRunner(self.host, self.scope.path, self.process.tool_environment)
        context = HookContext(lambda: self.session.id, str(self.scope.path), self.stream.emit, self.add_hook_context)
        return Hooks(found, runner, context)

    def add_hook_context(self, entry: Mapping[str, Any]) -> None:
        """What a hook wants the model to be told (S5.6); a wrong entry is skipped with a warning."""
        self.entries.add_context(
            str(entry.get("key", "")),
            str(entry.get("content", "")),
            priority=entry.get("priority", 50),
            source="hook",
            ttl_seconds=entry.get("ttl"),
            volatile=entry.get("volatile") is True,
        )

    @cached_property
    def entries(self) -> ContextManager:
        from ollm.domain.events import Notice
        from ollm.services.context_manager import ContextManager

        return ContextManager(self.process.clock, lambda text: self.stream.emit(Notice(level="warning", text=text)))

    async def archived(self) -> Session | None:
        """The session as it stands, for `recall`."""
        return self.session.load() if self.session.id else None

    def prompt(self, model: Model) -> Prompt:
        from ollm.runtime.prompt import Prompt, PromptModel
        from ollm.runtime.room import Room
        from ollm.services.token_counting import TokenCounter

        settings, clock = self.process.settings, self.process.clock
        counter = TokenCounter(model.facts.token_factor, model.facts.token_samples)
        room = Room(
            settings,
            counter,
            self.snapshots,
            keep=self.compressed,
            before=self.before_compression,
            clock=clock,
        )
        whom = PromptModel(
            session_id="", model=model.name, window=model.window, mode=self.opening.mode or settings.modes.default
        )
        if self.process.trusted:
            self.instruct()
        return Prompt(whom, settings, counter, self.entries, room, goals=self.goals)

    def instruct(self) -> None:
        """Tell the model what the project's own files ask of it."""
        from ollm.runtime.project_instructions import project_instructions

        found, warnings = project_instructions(self.scope.boundary, Path.cwd())
        for entry in found:
            self.entries.add_entry(entry)
        self.notices.extend(warnings)

    async def before_compression(self) -> None:
        if self.hooks:
            await self.hooks.happened("before-compression", {})

    async def compressed(self, record: CompressionRecord) -> None:
        await self.session.compressed(record)
        if self.hooks:
            data = {"before": record.original_token_count, "after": record.compressed_token_count}
            await self.hooks.happened("after-compression", data)

    def loops(self) -> LoopDetectionService:
        from ollm.services.loop_detection import LoopDetectionService

        return LoopDetectionService(self.process.settings.loop_detection, self.stream.emit)

    def custom_commands(self) -> CustomCommands:
        from ollm.runtime.custom_commands import CustomCommands

        ours = (self.process.home.root / "commands",)
        theirs = (self.opening.workspace / ".ollm" / "commands",) if self.process.trusted else ()
        return CustomCommands((*theirs, *ours))

    def desk(self, sees: Callable[[], Awaitable[bool]] | None = None) -> Desk:
        """What running calls takes; `sees` tells whether the model of the moment can see pictures."""
        import msgspec

        from ollm.extensions.base import NoHooks
        from ollm.runtime.one_call import Desk
        from ollm.tools.base import ToolContext

        settings = self.process.settings
        context = ToolContext(
            boundary=self.scope.boundary, environment=self.process.tool_environment, settings=settings.tools
        )
        if sees is not None:
            context = msgspec.structs.replace(context, sees=sees)
        return Desk(
            registry=self.registry,
            policy=self.policy,
            context=context,
            emit=self.stream.emit,
            asker=self.asker(),
            hooks=self.hooks or NoHooks(),
            record=self.session.record_call,
            remember=self.policy.grants.add,
            clock=self.process.clock,
        )

    def asker(self) -> Asker:
        from ollm.runtime.confirmation import AskOverBus, Unattended

        if not self.opening.interactive:
            return Unattended(yes=self.opening.yes)
        timeout = self.process.settings.policy.confirmation_timeout or None
        return AskOverBus(self.bus, timeout, yes=self.opening.yes, attached=self.attached)


async def can_see(model: Model) -> bool:
    """Whether a model takes pictures, as its server says; False when it does not say."""
    try:
        return (await model.provider.describe(model.name)).vision
    except OllmError:
        return False


async def run_by_hand(
    opening: Opening, call: Call, emit: Callable[[Event], None], asker: Asker | None = None
) -> ToolCallRecord:
    """One call as a conversation would run it: the same policy and limits, but nothing is recorded."""
    import msgspec

    from ollm.runtime.dispatch import Dispatch

    process = Process(workspace=opening.workspace, flags=opening.flags)
    async with AsyncExitStack() as stack:
        scope = WorkspaceScope(process, opening.workspace)
        stack.callback(scope.close)
        desk = ConversationScope(scope, opening, stack).desk()
        plain = msgspec.structs.replace(desk, record=unrecorded, emit=emit, asker=asker or desk.asker)
        dispatch = Dispatch(plain)
        stack.push_async_callback(dispatch.close)
        (record,) = await dispatch.run([call], 0)
        return record


def tools_of(workspace: Path) -> ToolRegistry:
    """The tools a conversation in this workspace would have."""
    from ollm.runtime.opening import Opening

    scope = WorkspaceScope(Process(workspace=workspace), workspace)
    return ConversationScope(scope, Opening(workspace=workspace), AsyncExitStack()).registry


async def unrecorded(_record: ToolCallRecord) -> None:
    """There is no session to keep it in."""


class StoredScope:
    """A session that is not open: its context as the archive has it, and its snapshots. No server is asked."""

    def __init__(self, process: Process, workspace: Path) -> None:
        self.process = process
        self.workspace = workspace
        self.events: list[Event] = []

    @cached_property
    def snapshot_files(self) -> SnapshotFiles:
        from ollm.store.snapshot_files import SnapshotFiles

        return SnapshotFiles(self.process.home.snapshots)

    @cached_property
    def snapshots(self) -> SnapshotManager:
        from ollm.services.snapshots import SnapshotManager

        settings, clock = self.process.settings.snapshots, self.process.clock
        return SnapshotManager(self.snapshot_files, settings, emit=self.events.append, clock=clock)

    def recording(self) -> ChatRecordingService:
        return self.process.recording(self.events.append)

    def prompt(self, session: Session | None) -> Prompt:
        """What the model would be sent in this session, or in a new one."""
        from ollm.providers.window import UNKNOWN
        from ollm.runtime.prompt import Prompt, PromptModel
        from ollm.runtime.rebuilding import rebuilt, words_of
        from ollm.runtime.room import Room
        from ollm.services.context_manager import ContextManager
        from ollm.services.snapshots import context_of
        from ollm.services.token_counting import TokenCounter
        from ollm.tools.sets import tool_set

        settings = self.process.settings
        known = session.metadata.context_window if session else None
        model = PromptModel(
            session_id=session.session_id if session else "",
            model=(session.model if session else settings.provider.model) or "",
            window=known or settings.provider.context_window or UNKNOWN,
            mode=settings.modes.default,
        )
        counter = TokenCounter()
        prompt = Prompt(model, settings, counter, ContextManager(self.process.clock), Room(settings, counter))
        if session:
            context = rebuilt(session, lambda name: context_of(self.snapshot_files.load(name)))
            prompt.restore(context, words_of(session))
        registry = self._registry()
        prompt.set_tools(tool_set(prompt.mode, registry.get_function_schemas(), model.window))
        return prompt

    def _registry(self) -> ToolRegistry:
        from ollm.runtime.opening import Opening

        scope = WorkspaceScope(self.process, self.workspace)
        return ConversationScope(scope, Opening(workspace=self.workspace), AsyncExitStack()).registry


@asynccontextmanager
async def open_conversation(
    opening: Opening, attached: Callable[[], bool] = lambda: True
) -> AsyncIterator[LocalConversation]:
    """A conversation, closed on leaving: session folded, processes ended, lease released.

    `attached` says whether a front end listens, for questions that wait."""
    process = Process(workspace=opening.workspace, flags=opening.flags)
    async with AsyncExitStack() as stack:
        scope = ConversationScope(WorkspaceScope(process, opening.workspace), opening, stack)
        scope.attached = attached
        conversation = await scope.open()
        try:
            yield conversation
        finally:
            await conversation.close()


def rule_set(loaded: Loaded, *, builtin: bool = True) -> RuleSet:
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
    return RuleSet(rules=tuple(rules), default_action=loaded.settings.policy.default_action, builtin=builtin)


def to_stderr(text: str) -> None:
    import sys

    sys.stderr.write(f"ollm: {text}\n")


def redact_error(text: str) -> str:
    """A message as it may be printed: by the built-in rules alone, since the settings may be what is wrong."""
    return _error_redactor().redact(text)


@cache
def _error_redactor() -> Redactor:
    from ollm.config.environment import process_environment
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor

    return Redactor(EnvironmentSanitizationService().removed_values(process_environment()))

"""Composes a conversation: claims the workspace, resumes or starts the session, chooses the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.process import ProcessScope
from ollm.app.storage import Storage, find_wanted_session, resume_session
from ollm.app.toolbox import Toolbox
from ollm.app.workspace import WorkspaceScope
from ollm.config.environment import copy_environment
from ollm.domain.context import make_note_entry
from ollm.domain.errors import ModelError, NoServerError, OllmError
from ollm.domain.events import PrefillProgress
from ollm.domain.lazy import Lazy
from ollm.providers.base import is_called, name_model
from ollm.providers.window import explain_window
from ollm.runtime.base import Attachment, ConversationOptions, build_message_parts
from ollm.runtime.changes import update_tools
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.observers.housekeeping import (
    EmbeddingObserver,
    ModelFactsObserver,
    TemplateObserver,
)
from ollm.runtime.parts import ConversationParts, ConversationState
from ollm.runtime.prompt.compaction import Compactor
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.runtime.resume.workspace_record import WorkspaceMemory
from ollm.services.budget import compute_result_cap
from ollm.store.workspace_place import has_interrupted_restore, has_personal_notes

if TYPE_CHECKING:
    from ollm.app.tasks import TaskOrigin, TaskRunner
    from ollm.app.worktrees import WorktreeManager
    from ollm.domain.context import CompressionRecord
    from ollm.runtime.base import TurnObserver
    from ollm.runtime.model.model import Model
    from ollm.runtime.model.role_models import RoleModels
    from ollm.store.session_files.loading import LoadedSession
    from ollm.tools.framework.base import EditorFiles

CHATS_ONLY = (
    "{} is good for a short chat, without tools. For work get a larger model: `ollm models get qwen2.5-coder-1.5b`, "
    "or see `ollm doctor`."
)


class ConversationScope:
    """Composition of one conversation from its storage, toolbox and prompts."""

    def __init__(
        self,
        scope: WorkspaceScope,
        options: ConversationOptions,
        stack: AsyncExitStack,
        task: TaskOrigin | None = None,
    ) -> None:
        self.task = task
        self.scope = scope
        scope.added_roots = task.toolbox.scope.added_roots if task else options.added_roots
        self.process = scope.process
        self.options = options
        self.stack = stack
        self.storage = Storage(scope, options)
        self.toolbox = task.create_toolbox(self.storage, stack) if task else Toolbox(self.storage, stack)
        self.asked_to_close: Callable[..., bool] = lambda **_: False

    async def open(self) -> LocalConversation:
        """Claim the workspace, open the requested session, choose a model, and compose the conversation."""
        storage = self.storage
        storage.has_session = True
        if not self.options.one_shot:
            await self.hold_workspace()
        self.stack.push_async_callback(storage.session.close)
        if has_interrupted_restore(self.process.home):  # It comes first, since it changes the session and the files.
            from ollm.app.interrupted_restore import recover_restore

            await recover_restore(self.scope, storage.notices.append)
        wanted = await self.find_wanted_session()
        resumed: LoadedSession | None = None
        if wanted:
            from ollm.runtime.resume.resume import find_last_mode

            known_until = 0 if self.options.full else self.scope.context.find_known_until(wanted)
            resumed = await storage.session.resume(wanted, known_until)
            storage.resumed_mode = find_last_mode(resumed.session)
        model = await self.choose_model(resumed)
        if model.facts.chats_only:
            storage.notices.append(CHATS_ONLY.format(name_model(model.name)))
        parts = self.build_parts(model)
        update_tools(parts)
        self.stack.callback(self.scope.close)
        resumed_at = await resume_session(storage, parts, resumed) if resumed else 0
        observers = list(self.create_observers(parts, resumed_at))
        for observer in observers if resumed else ():
            await observer.session_resumed(storage.session.require_id())
        return LocalConversation(parts, observers)

    async def find_wanted_session(self) -> str | None:
        """Find the session to resume and acquire its team archive lease, if any. Returns None for a new one."""
        wanted = find_wanted_session(self.storage)
        if wanted and self.process.settings.archive.is_set:
            await self.process.archive_process.require_lease(wanted, force=self.options.force)
        return wanted

    async def hold_workspace(self) -> None:
        if self.options.beside or self.process.settings.workspace.sessions == "many":
            return
        from ollm.runtime.resume.workspace_sessions import take_lease

        lease = self.scope.create_lease(self.options.holder)
        await take_lease(lease, force=self.options.force)
        self.asked_to_close = lease.is_asked_to_close
        self.stack.callback(lease.release)

    async def choose_model(self, resumed: LoadedSession | None) -> Model:
        """Choose the model. A resumed session keeps its model if available and no other is configured."""
        if self.task and (self.task.agent is None or self.task.agent.model in ("", self.task.model.name)):
            return self.task.model  # Its parent closes the server.
        model: Model | None = None
        same = resumed and resumed.session.model == (self.process.settings.provider.model or resumed.session.model)
        held = resumed.session.metadata.context_window if resumed and same else None
        choose = partial(self.process.model_chooser.choose, announce=self.options.announce)
        if self.task and self.task.agent:
            model = await choose(self.task.agent.model)
        if resumed and not self.process.settings.provider.model:
            try:
                model = await choose(resumed.session.model, held=held)
            except ModelError:
                self.storage.notices.append(f"Model {resumed.session.model} is no longer available.")
        model = model or await choose(held=held)
        self.stack.push_async_callback(model.provider.close)
        if told := explain_window(model.window, model.said_window):
            self.storage.notices.append(told)
        if resumed and resumed.session.model and not is_called(model.name, before := name_model(resumed.session.model)):
            self.storage.notices.append(f"This session used {before}; continuing with {name_model(model.name)}.")
        return model

    def create_observers(self, parts: ConversationParts, resumed_at: int) -> Iterator[TurnObserver]:
        """Create the observers of turns, in calling order. `resumed_at` is the number of the newest message."""
        if self.task:
            return  # Only the parent's turn is reported.
        yield self.toolbox.checkpoint_observer
        yield WorkspaceMemory(
            Lazy(lambda: self.scope.context.database),  # Opening it checks whether the folder was moved.
            self.process.settings.resume,
            parts,
            resumed_at=resumed_at,
            at_end=self.options.one_shot,
        )
        if not self.options.one_shot or parts.state.model.facts.server_mark is None:  # A later chat looks again.
            yield TemplateObserver(parts.state, partial(update_tools, parts))
        yield ModelFactsObserver(parts.state, parts.prompt, parts.stream.emit, self.process.model_facts.update)
        if not self.options.one_shot and (embedder := self.storage.embedder):
            yield EmbeddingObserver(embedder, lambda: self.storage.session.id)
        yield from self._create_outside_observers(parts)

    def _create_outside_observers(self, parts: ConversationParts) -> Iterator[TurnObserver]:
        """Create the observers of hooks, extensions, the team archive, MCP and model servers, if any."""
        toolbox, emit, pushes = self.toolbox, parts.stream.emit, self.process.settings.archive.is_pushed
        if self.process.settings.provider.slot_save_path and (folder := (saved := self.process.saved_slots).folder):
            from ollm.runtime.observers.server_memory import ServerMemory

            yield ServerMemory(parts, saved, folder, keeps=self.options.record and not self.options.one_shot)
        context = toolbox.extensions.context if toolbox.extensions else ()
        if not (toolbox.hooks or context or pushes or toolbox.mcp):
            return
        from ollm.runtime.observers.extensions import ArchiveObserver, ExtensionObserver, HookObserver, McpObserver

        if toolbox.hooks:
            observer = HookObserver(toolbox.hooks)
            parts.stream.add_listener(observer.notify_hooks)
            yield observer
        if context:
            yield ExtensionObserver(context, self.storage.entries, emit)
        if pushes:
            yield ArchiveObserver(self.process.archive_process, emit)
        if toolbox.mcp:
            yield McpObserver(toolbox.mcp, parts)

    def build_parts(self, model: Model) -> ConversationParts:
        storage, toolbox = self.storage, self.toolbox
        state = self._create_state(model)
        prompt = self.build_prompt(model)
        self._connect_toolbox(state, prompt)

        def create_worktree_manager() -> WorktreeManager:
            from ollm.app.worktrees import WorktreeManager

            return WorktreeManager(self.process, self.scope.path)

        return ConversationParts(
            workspace=self.options.workspace,
            find_directories=lambda name: self.process.find_directories(name, self.options.workspace),
            notices=storage.notices,
            state=state,
            session=storage.session,
            stream=storage.stream,
            prompt=prompt,
            compactor=self.build_compactor(prompt, toolbox.roles),
            loops=storage.create_loop_detection(),
            snapshots=storage.snapshots,
            notes=Lazy(lambda: storage.notes),
            archive=Lazy(lambda: storage.archive),
            list_sessions=lambda: self.scope.context.list_sessions(),  # noqa: PLW0108 - it is opened when asked
            dispatch=Lazy(lambda: toolbox.create_dispatch(state)),
            registry=Lazy(lambda: toolbox.registry),
            policy=Lazy(lambda: toolbox.policy),
            bus=Lazy(lambda: toolbox.bus),
            edits=Lazy(lambda: toolbox.edits),
            sandbox=toolbox.sandbox,
            project_files=Lazy(lambda: toolbox.project_files),
            checkpoints=toolbox.checkpoints,
            checkpoints_enabled=self.process.settings.checkpoints.enabled,
            files=Lazy(lambda: toolbox.file_context),
            mcp=toolbox.mcp,
            worktrees=Lazy(create_worktree_manager),
            choose_model=lambda name: self.process.model_chooser.choose(
                name, announce=lambda _: storage.stream.emit(PrefillProgress(stage="loading"))
            ),
            tasks=toolbox.tasks,
            checks=None if self.task else toolbox.checks,
            roles=toolbox.roles,
            trust=self.scope.trust_workspace,
            export=storage.export_session,
            add_root=toolbox.add_root,
            asked_to_close=self.asked_to_close,
            closing=self.stack,
            clock=self.process.clock,
        )

    def build_prompt(self, model: Model) -> Prompt:
        counter = self.storage.counter
        counter.calibrate(model.facts.token_factor, model.facts.token_samples)
        prompt_model = PromptModel(
            session_id="",
            model=model.name,
            window=model.window,
            mode=self.storage.mode,
            origin=model.origin,
            replay=model.replay,
        )
        self.add_entries(model.window)
        prompt = Prompt(prompt_model, self.process.settings, counter, self.storage.entries, goals=self.storage.goals)
        prompt.meter.set_shown_thinking(model.facts.shown_thinking)
        prompt.load_words = self.storage.session.load_user_messages
        return prompt

    def build_compactor(self, prompt: Prompt, roles: Lazy[RoleModels] | None = None) -> Compactor:
        return Compactor(
            self.process.settings,
            prompt.counter,
            self.storage.snapshots,
            keep=self.record_compression,
            before=self.announce_compression,
            roles=roles,
            clock=self.process.clock,
        )

    def add_entries(self, window: int) -> None:
        """Add what the project and the person have for every conversation here to the prompt."""
        self.add_project_instructions()
        self.add_notes()
        self.add_skills(window)

    def add_project_instructions(self) -> None:
        """Add the instructions in the project's files to the prompt, if they are trusted."""
        if not self.process.trusted:
            return
        from ollm.runtime.prompt.project_context import read_project_instructions

        found, warnings = read_project_instructions(self.scope.boundary, Path.cwd())
        for entry in found:
            self.storage.entries.add_entry(entry)
        self.storage.notices.extend(warnings)

    def add_notes(self) -> None:
        """Add the notes that the person wrote for this workspace. The database is opened only if there are some."""
        if has_personal_notes(self.scope.main, self.process.home):
            with suppress(OllmError, OSError):
                for key, text in self.scope.notes.list_personal():
                    self.storage.entries.add_entry(make_note_entry(key, text))

    def add_skills(self, window: int) -> None:
        """Add a list of the skills to the prompt, one line each."""
        places = self.process.find_directories("skills", self.options.workspace)
        directories = [place for place in places if place.is_dir()]
        if not directories:
            return
        from ollm.runtime.prompt.project_context import build_skills_entry, find_skills

        entry = build_skills_entry(find_skills(directories, self.scope.path), window)
        if entry is not None:
            self.storage.entries.add_entry(entry)

    async def announce_compression(self) -> None:
        if hooks := self.toolbox.hooks:
            await hooks.run_event("before-compression", {})

    async def record_compression(self, record: CompressionRecord) -> None:
        await self.storage.session.record_compression(record)
        if hooks := self.toolbox.hooks:
            data = {"before": record.original_token_count, "after": record.compressed_token_count}
            await hooks.run_event("after-compression", data)

    def _connect_toolbox(self, state: ConversationState, prompt: Prompt) -> None:
        toolbox, settings = self.toolbox, self.process.settings.roles
        if self.task:
            toolbox.roles = self.task.toolbox.roles
        elif settings.small or settings.summary or settings.tasks or settings.embedding:
            toolbox.roles = Lazy(lambda: create_role_models(toolbox, state))
        toolbox.tasks = None if self.task else Lazy(lambda: create_task_runner(toolbox, state))
        toolbox.get_result_tokens = lambda: compute_result_cap(prompt.compute_budget(), prompt.message_tokens)

    def _create_state(self, model: Model) -> ConversationState:
        """Create the state. Mode switches are not proposed in non-interactive runs."""
        settings = self.process.settings
        nobody_answers = settings.modes.auto_switch == "propose" and not self.options.interactive
        return ConversationState(
            model=model,
            approval=settings.policy.approval,
            has_rules=bool(settings.policy.rules),
            auto_switch="off" if nobody_answers else settings.modes.auto_switch,
        )


def create_task_runner(toolbox: Toolbox, state: ConversationState) -> TaskRunner:
    from ollm.app.tasks import TaskRunner

    async def find_model() -> Model:
        return (await toolbox.roles.get().find("tasks") if toolbox.roles else None) or state.model

    return TaskRunner(toolbox, find_model, open_task)


def create_role_models(toolbox: Toolbox, state: ConversationState) -> RoleModels:
    from ollm.config.roles import find_role
    from ollm.runtime.model.role_models import RoleModels

    process = toolbox.process
    found = {role: find_role(process.settings, role) for role in ("small", "summary", "tasks")}
    servers = {role: server for role, server in found.items() if server}
    models = RoleModels(
        servers,
        lambda: state.model,
        lambda server: process.model_chooser.choose(role=server),
        process.model_facts.update,
        toolbox.storage.stream.emit,
        toolbox.storage.embedder,
    )
    toolbox.stack.push_async_callback(models.close)
    return models


async def open_task(origin: TaskOrigin, options: ConversationOptions, stack: AsyncExitStack) -> LocalConversation:
    """Open the conversation of a task, which shares its parent's lease and workspace record."""
    parent = origin.toolbox
    scope = WorkspaceScope(parent.process, origin.folder or parent.scope.path)
    conversation = ConversationScope(scope, options, stack, origin)
    conversation.toolbox.editor = None if origin.folder else parent.editor
    return await conversation.open()


@asynccontextmanager
async def open_conversation(
    options: ConversationOptions,
    editor: EditorFiles | None = None,
) -> AsyncIterator[LocalConversation]:
    """Open a conversation. On exit the session is closed, processes end, and the lease is released.

    `editor` has unsaved files open."""
    process = create_process(options)
    async with AsyncExitStack() as stack:
        scope = ConversationScope(WorkspaceScope(process, options.workspace), options, stack)
        scope.toolbox.editor = editor
        conversation = await scope.open()
        try:
            conversation.parts.stream.unheard.clear()  # The conversation's notices already report these.
            yield conversation
        finally:
            session_id = conversation.session_id
            await conversation.close()
            if session_id and not options.record:
                process.library.delete(session_id)


def create_process(options: ConversationOptions) -> ProcessScope:
    """Create the process scope in the home given by the options."""
    environment = {**copy_environment(), "OLLM_HOME": str(options.home)} if options.home else None
    return ProcessScope(environment, workspace=options.workspace, flags=options.flags)


async def ask(text: str, options: ConversationOptions | None = None) -> str:
    """Ask one question in a new conversation and return the answer. Raises TurnFailedError if there is none."""
    async with open_conversation(options or ConversationOptions(workspace=Path.cwd(), one_shot=True)) as conversation:
        return await conversation.ask(text)


async def keep_unsent(
    text: str, attachments: tuple[Attachment, ...], options: ConversationOptions, error: OllmError
) -> str:
    """Record a message that could not be sent to a model, in its session (S1.1). Returns the session's id."""
    scope = WorkspaceScope(create_process(options), options.workspace)
    storage = Storage(scope, options)
    session = storage.session
    try:
        if wanted := find_wanted_session(storage):
            await session.resume(wanted, 0)
        else:
            to = scope.process.settings.provider
            session.id = await session.service.create_session(
                to.model or "", to.type or "", workspace=session.workspace, origin=session.origin
            )
        await session.record_message("user", build_message_parts(text, attachments))
        await session.record_failed_turn("no-server" if isinstance(error, NoServerError) else "model-error", str(error))
        return session.require_id()
    finally:
        await session.close()
        scope.close()

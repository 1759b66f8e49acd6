"""A conversation put together: the workspace taken, the session resumed, the model chosen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from ollm.app.process import ProcessScope
from ollm.app.prompt_factory import PromptFactory
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import OllmError

if TYPE_CHECKING:
    from datetime import datetime

    from ollm.domain.session import Session
    from ollm.runtime.base import CommandReply
    from ollm.runtime.conversation import LocalConversation
    from ollm.runtime.conversation_options import ConversationOptions
    from ollm.runtime.model.model import Model
    from ollm.runtime.parts import ConversationParts
    from ollm.runtime.resume.workspace_record import WorkspaceMemory
    from ollm.runtime.session import ResumedSession

MAX_RECORD_MESSAGES = 4000  # newest messages, from which the workspace's record of a session it does not know is made


class ConversationScope(PromptFactory):
    """Opens one conversation."""

    async def open(self) -> LocalConversation:
        """Take the workspace, the session that was asked for and a model, and put them together."""
        from ollm.runtime.conversation import LocalConversation
        from ollm.runtime.resume.rebuild import find_last_mode

        if not self.opening.one_shot:
            await self.hold_workspace()
        self.stack.push_async_callback(self.session.close)
        wanted = self.find_wanted_session()
        resumed = await self.session.resume(wanted, self.find_skippable_until(wanted)) if wanted else None
        self.resumed_mode = find_last_mode(resumed.session) if resumed else None
        model = await self.choose_model(resumed)
        await self.add_project_map(model.window)
        parts = self.build_parts(model)
        self.add_observers(parts)
        if resumed:
            await self.resume_session(parts, resumed)
        return LocalConversation(parts, run_command)

    def find_wanted_session(self) -> str | None:
        """The id of the session to resume; None for a new one."""
        if self.opening.session:
            return self.process.session_files.places.find(self.opening.session)
        if not self.opening.newest:
            return None
        standing = [found for found in self.scope.context.list_sessions() if found.status != "archived"]
        if not standing:
            self.notices.append("There is no session in this workspace yet; a new one begins.")
        return standing[0].session_id if standing else None

    def find_skippable_until(self, session_id: str) -> int:
        """Up to which number the messages of a session need not be read to go on with it."""
        return 0 if self.opening.full else self.scope.context.find_known_until(session_id)

    async def hold_workspace(self) -> None:
        from ollm.runtime.resume.lease import take_lease
        from ollm.store.lease import Lease
        from ollm.store.workspace_place import ensure_workspace_directory

        lease = Lease(ensure_workspace_directory(self.scope.path, self.process.home), self.process.clock)
        await take_lease(lease, force=self.opening.force)
        self.asked_to_close = lease.is_asked_to_close
        self.stack.callback(lease.release)

    async def choose_model(self, resumed: ResumedSession | None) -> Model:
        """The model a resumed session had, when it can be had and no other is configured."""
        from ollm.domain.errors import ModelError
        from ollm.providers.window import explain_small_window

        model: Model | None = None
        if resumed and not self.process.settings.provider.model:
            try:
                model = await self.process.choose_model(resumed.session.model)
            except ModelError:
                self.notices.append(f"{resumed.session.model} is not to be had here any more.")
        model = model or await self.process.choose_model()
        self.stack.push_async_callback(model.provider.close)
        if small := explain_small_window(model.window):
            self.notices.append(small)
        if resumed and model.name != resumed.session.model:
            self.notices.append(f"This session was with {resumed.session.model}; it goes on with {model.name}.")
        return model

    async def resume_session(self, parts: ConversationParts, resumed: ResumedSession) -> None:
        """Fill the prompt with where the session stood."""
        from ollm.runtime.resume.resume import ResumeSource, resume_prompt
        from ollm.runtime.resume.saved_context import ResumePoint, read_saved_context
        from ollm.services.snapshots import read_context
        from ollm.store.session_files import MessagePage

        session = resumed.session
        self.scope.context.check_ownership(session)
        if session.metadata.workspace is None:
            await self.session.update_metadata({"workspace": self.session.workspace})
        if resumed.damage:
            self.notices.append(f"The session's file was damaged: {resumed.damage}")

        def load() -> Session:
            return self.session.load(MessagePage(None, MAX_RECORD_MESSAGES)) if resumed.skipped else session

        record = self.scope.context.get_record(session, load)
        kept = read_saved_context(self.scope.database.load_context(session.session_id))
        source = ResumeSource(
            session=session,
            load=self.session.load,
            words=self.session.load_user_messages,
            record=record,
            kept=kept,
            snapshot=lambda name: read_context(self.snapshot_files.load(name)),
        )
        how = resume_prompt(parts.prompt, source, full=self.opening.full)
        newest = max((message.id for message in session.messages), default=kept.last_number if kept else 0)
        parts.taken_up = ResumePoint.from_prompt(parts.prompt, newest)
        parts.mode_history.extend(session.metadata.mode_history)
        parts.context_history.extend(session.metadata.context_history)
        self.stream.session_id = session.session_id
        parts.prompt.set_session_id(session.session_id)
        self.notices.append(f"Taken up {how}.")
        for observer in parts.observers:
            await observer.session_opened(session.session_id, resumed=True)

    def add_observers(self, parts: ConversationParts) -> None:
        from ollm.runtime.observers.housekeeping import LazyObserver, PageCacheObserver, WorkspaceMoveObserver
        from ollm.runtime.observers.model_facts import ModelFactsObserver

        parts.observers.append(WorkspaceMoveObserver(lambda: self.scope.context))
        parts.observers.append(
            LazyObserver(lambda opened: self.create_workspace_memory(parts, opened), self.process.clock)
        )
        parts.observers.append(PageCacheObserver(lambda: self.__dict__.get("pages")))
        parts.observers.append(ModelFactsObserver(parts, self.process.save_model_facts))
        if self.hooks:
            from ollm.runtime.observers.hooks import HookObserver

            observer = HookObserver(self.hooks)
            parts.observers.append(observer)
            self.stream.listen(observer.notify_hooks)
        if self.extensions and self.extensions.context:
            from ollm.runtime.observers.extensions import ExtensionObserver

            parts.observers.append(ExtensionObserver(self.extensions.context, self.entries, self.stream.emit))
        if self.mcp:
            from ollm.runtime.observers.mcp import McpObserver

            parts.observers.append(McpObserver(self.mcp, parts))
        self.stack.callback(self.scope.close)

    def create_workspace_memory(self, parts: ConversationParts, opened: datetime) -> WorkspaceMemory:
        """What keeps the workspace's record of this session."""
        from ollm.runtime.parts import ConversationView
        from ollm.runtime.resume.workspace_record import WorkspaceMemory

        database, settings, clock = self.scope.database, self.process.settings.resume, self.process.clock
        view, once = ConversationView(parts), self.opening.one_shot
        return WorkspaceMemory(database, settings, view, clock, opened=opened, at_end=once)

    def build_parts(self, model: Model) -> ConversationParts:
        from ollm.runtime.calls.late_dispatch import LazyDispatch
        from ollm.runtime.parts import ConversationParts

        settings = self.process.settings
        parts = ConversationParts(
            workspace=self.opening.workspace,
            settings=settings,
            session=self.session,
            stream=self.stream,
            model=model,
            prompt=self.build_prompt(model),
            loops=self.create_loop_detection(),
            dispatch=LazyDispatch(lambda: self.create_dispatch(lambda: supports_images(parts.model))),
            late=self,
            closing=self.stack,
            choose_model=self.process.choose_model,
            trust=self.scope.trust_workspace,
            export=self.process.export_session,
            mcp=self.mcp,
            approval=settings.policy.approval,
            auto_switch=settings.modes.auto_switch,
            notices=self.notices,
            asked_to_close=self.asked_to_close,
            clock=self.process.clock,
        )
        parts.update_tools()
        return parts


async def run_command(conversation: LocalConversation, name: str, arguments: str) -> CommandReply:
    """A slash command; what they take is imported with the first."""
    from ollm.runtime.commands import run_command

    return await run_command(conversation, name, arguments)


async def supports_images(model: Model) -> bool:
    """Whether a model takes pictures, as its server says; False when it does not say."""
    try:
        return (await model.provider.describe(model.name)).vision
    except OllmError:
        return False


@asynccontextmanager
async def open_conversation(
    opening: ConversationOptions, attached: Callable[[], bool] = lambda: True
) -> AsyncIterator[LocalConversation]:
    """A conversation, closed on leaving: session folded, processes ended, lease released.

    `attached` says whether a front end listens, for questions that wait."""
    process = ProcessScope(workspace=opening.workspace, flags=opening.flags)
    async with AsyncExitStack() as stack:
        scope = ConversationScope(WorkspaceScope(process, opening.workspace), opening, stack)
        scope.attached = attached
        conversation = await scope.open()
        try:
            yield conversation
        finally:
            await conversation.close()

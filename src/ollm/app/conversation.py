"""A conversation put together: the workspace taken, the session resumed, the model chosen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from ollm.app.process import Process
from ollm.app.prompt_factory import PromptPieces
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import OllmError

if TYPE_CHECKING:
    from datetime import datetime

    from ollm.domain.session import Session
    from ollm.runtime.base import CommandReply
    from ollm.runtime.conversation import LocalConversation
    from ollm.runtime.conversation_options import Opening
    from ollm.runtime.model.model import Model
    from ollm.runtime.parts import Parts
    from ollm.runtime.resume.workspace_record import WorkspaceMemory
    from ollm.runtime.session import Resumed

RECORDED_FROM = 4000  # newest messages, from which the workspace's record of a session it does not know is made


class ConversationScope(PromptPieces):
    """Opens one conversation."""

    async def open(self) -> LocalConversation:
        """Take the workspace, the session that was asked for and a model, and put them together."""
        from ollm.runtime.conversation import LocalConversation
        from ollm.runtime.resume.rebuild import mode_of

        if not self.opening.one_shot:
            await self.hold_workspace()
        self.stack.push_async_callback(self.session.close)
        wanted = self.wanted_session()
        resumed = await self.session.resume(wanted, self.needless(wanted)) if wanted else None
        self.resumed_mode = mode_of(resumed.session) if resumed else None
        model = await self.model_for(resumed)
        await self.survey(model.window)
        parts = self.parts(model)
        self.observe(parts)
        if resumed:
            await self.take_up(parts, resumed)
        return LocalConversation(parts, run_command)

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

    def needless(self, session_id: str) -> int:
        """Up to which number the messages of a session need not be read to go on with it."""
        return 0 if self.opening.full else self.scope.context.known_until(session_id)

    async def hold_workspace(self) -> None:
        from ollm.runtime.resume.lease import take
        from ollm.store.lease import Lease
        from ollm.store.workspace_place import workspace_directory

        lease = Lease(workspace_directory(self.scope.path, self.process.home), self.process.clock)
        await take(lease, force=self.opening.force)
        self.asked_to_close = lease.asked_to_close
        self.stack.callback(lease.release)

    async def model_for(self, resumed: Resumed | None) -> Model:
        """The model a resumed session had, when it can be had and no other is configured."""
        from ollm.domain.errors import ModelError
        from ollm.providers.window import too_small

        model: Model | None = None
        if resumed and not self.process.settings.provider.model:
            try:
                model = await self.process.model(resumed.session.model)
            except ModelError:
                self.notices.append(f"{resumed.session.model} is not to be had here any more.")
        model = model or await self.process.model()
        self.stack.push_async_callback(model.provider.close)
        if small := too_small(model.window):
            self.notices.append(small)
        if resumed and model.name != resumed.session.model:
            self.notices.append(f"This session was with {resumed.session.model}; it goes on with {model.name}.")
        return model

    async def take_up(self, parts: Parts, resumed: Resumed) -> None:
        """Fill the prompt with where the session stood."""
        from ollm.runtime.resume.resume import Source, take_up
        from ollm.runtime.resume.saved_context import TakenUp, read_kept_context
        from ollm.services.snapshots import context_of
        from ollm.store.session_files import Page

        session = resumed.session
        self.scope.context.claim(session)
        if session.metadata.workspace is None:
            await self.session.note({"workspace": self.session.workspace})
        if resumed.damage:
            self.notices.append(f"The session's file was damaged: {resumed.damage}")

        def load() -> Session:
            return self.session.load(Page(None, RECORDED_FROM)) if resumed.skipped else session

        record = self.scope.context.record_of(session, load)
        kept = read_kept_context(self.scope.database.kept_context(session.session_id))
        source = Source(
            session=session,
            load=self.session.load,
            words=self.session.user_words,
            record=record,
            kept=kept,
            snapshot=lambda name: context_of(self.snapshot_files.load(name)),
        )
        how = take_up(parts.prompt, source, full=self.opening.full)
        newest = max((message.id for message in session.messages), default=kept.last_number if kept else 0)
        parts.taken_up = TakenUp.of(parts.prompt, newest)
        parts.mode_history.extend(session.metadata.mode_history)
        parts.context_history.extend(session.metadata.context_history)
        self.stream.session_id = session.session_id
        parts.prompt.belongs_to(session.session_id)
        self.notices.append(f"Taken up {how}.")
        for observer in parts.observers:
            await observer.session_opened(session.session_id, resumed=True)

    def observe(self, parts: Parts) -> None:
        from ollm.runtime.observers.housekeeping import FreshPages, Later, Settling
        from ollm.runtime.observers.model_facts import LearntFacts

        parts.observers.append(Settling(lambda: self.scope.context))
        parts.observers.append(Later(lambda opened: self.memory(parts, opened), self.process.clock))
        parts.observers.append(FreshPages(lambda: self.__dict__.get("pages")))
        parts.observers.append(LearntFacts(parts, self.process.learnt))
        if self.hooks:
            from ollm.runtime.observers.hooks import HookObserver

            observer = HookObserver(self.hooks)
            parts.observers.append(observer)
            self.stream.listen(observer.hear)
        if self.extensions and self.extensions.context:
            from ollm.runtime.observers.extensions import ExtensionObserver

            parts.observers.append(ExtensionObserver(self.extensions.context, self.entries, self.stream.emit))
        if self.mcp:
            from ollm.runtime.observers.mcp import McpObserver

            parts.observers.append(McpObserver(self.mcp, parts))
        self.stack.callback(self.scope.close)

    def memory(self, parts: Parts, opened: datetime) -> WorkspaceMemory:
        """What keeps the workspace's record of this session."""
        from ollm.runtime.parts import SessionView
        from ollm.runtime.resume.workspace_record import WorkspaceMemory

        database, settings, clock = self.scope.database, self.process.settings.resume, self.process.clock
        view, once = SessionView(parts), self.opening.one_shot
        return WorkspaceMemory(database, settings, view, clock, opened=opened, at_end=once)

    def parts(self, model: Model) -> Parts:
        from ollm.runtime.calls.late_dispatch import LateDispatch
        from ollm.runtime.parts import Parts

        settings = self.process.settings
        parts = Parts(
            workspace=self.opening.workspace,
            settings=settings,
            session=self.session,
            stream=self.stream,
            model=model,
            prompt=self.prompt(model),
            loops=self.loops(),
            dispatch=LateDispatch(lambda: self.dispatch(lambda: can_see(parts.model))),
            late=self,
            closing=self.stack,
            choose_model=self.process.model,
            trust=self.scope.trust,
            export=self.process.export,
            mcp=self.mcp,
            approval=settings.policy.approval,
            auto_switch=settings.modes.auto_switch,
            notices=self.notices,
            asked_to_close=self.asked_to_close,
            clock=self.process.clock,
        )
        parts.show_tools()
        return parts


async def run_command(conversation: LocalConversation, name: str, arguments: str) -> CommandReply:
    """A slash command; what they take is imported with the first."""
    from ollm.runtime.commands import run_command

    return await run_command(conversation, name, arguments)


async def can_see(model: Model) -> bool:
    """Whether a model takes pictures, as its server says; False when it does not say."""
    try:
        return (await model.provider.describe(model.name)).vision
    except OllmError:
        return False


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

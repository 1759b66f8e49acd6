"""One open editor session: prompts become turns or commands, and questions go to the editor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ollm.acp.client import EditorBuffers
from ollm.acp.permissions import OPTIONS as TRUST_OPTIONS
from ollm.acp.permissions import WorkspaceTrust, build_options, build_question, read_answer, restore_choices
from ollm.acp.prompts import PromptContent, read_prompt, replay_message, use_buffers
from ollm.acp.updates import ToolCallViews, UpdateRenderer, render_chunk, render_plan, render_title, render_usage
from ollm.domain.errors import BusyError, OllmError, TurnFailedError, UsageError
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved, Event, TurnFinished
from ollm.domain.messages import JsonObject
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import Status
from ollm.runtime.commands import describe_commands
from ollm.runtime.commands.settings import ABOUT_APPROVALS, ABOUT_MODES, APPROVALS, MODE_NAMES
from ollm.runtime.conversation import LocalConversation
from ollm.system.paths import Boundary
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.acp.connection import EditorClient

SCREEN_COMMANDS = frozenset({"exit", "quit", "new", "clear", "sessions", "resume", "copy", "expand"})


def build_config_options(status: Status, models: Iterable[str]) -> list[JsonObject]:
    names = dict.fromkeys([status.model, *models])
    return [
        build_select("approval", "Approval", status.approval, ABOUT_APPROVALS, category="mode"),
        build_select("mode", "Mode", status.mode, ABOUT_MODES),
        build_select("model", "Model", status.model, dict.fromkeys(names, ""), category="model"),
    ]


def build_select(option_id: str, name: str, current: str, values: dict[str, str], category: str = "") -> JsonObject:
    options = [
        {"value": value, "name": value, **({"description": text} if text else {})} for value, text in values.items()
    ]
    select = {"type": "select", "id": option_id, "name": name, "currentValue": current, "options": options}
    return {**select, "category": category} if category else select


def build_commands(directories: tuple[Path, ...]) -> list[JsonObject]:
    """List the commands that need no screen, including the person's own."""
    shown = [one for one in describe_commands(directories) if one[0] not in SCREEN_COMMANDS]
    return [
        {"name": name, "description": text or name, **({"input": {"hint": usage}} if usage else {})}
        for name, usage, text in shown
    ]


FOLLOW_UPS = {
    "exit": "This session is saved; close the thread in your editor.",
    "new-session": "Start a new thread in your editor; this one stays as it is.",
    "open-folder": "Open that folder in your editor; this thread stays as it is.",
    "open-session": "Open that session from the list of threads in your editor.",
}


def render_help(directories: tuple[Path, ...]) -> str:
    """List the commands available in an editor."""
    lines = []
    for command in build_commands(directories):
        usage = f" {command['input']['hint']}" if "input" in command else ""
        lines.append(f"- `/{command['name']}{usage}`: {command['description']}")
    return "\n".join([*lines, "", "A message that starts with a slash is sent with two: `//etc is what?`."])


log = logging.getLogger("ollm.acp")
T = TypeVar("T")
OpenConversation = Callable[[str | None], Awaitable[tuple[LocalConversation, AsyncExitStack]]]
MODEL_LIST_SECONDS = 5.0
MAX_REPLAYED_MESSAGES = 2_000
FAILED_REASONS = ("no-server", "model-error", "timeout")


class EditorSession:
    """A conversation with an editor as its front end. One prompt at a time."""

    def __init__(
        self,
        open_conversation: OpenConversation,
        editor: EditorClient,
        boundary: Boundary,
        buffers: EditorBuffers,
        trust: WorkspaceTrust,
        remarks: tuple[str, ...],
    ) -> None:
        self.conversation: LocalConversation
        self.session_id = ""
        self._open_conversation = open_conversation
        self._editor = editor
        self._boundary = boundary
        self._buffers = buffers
        self._trust = trust
        self._remarks = remarks  # Reported once, when the editor knows the session.
        self._stack = AsyncExitStack()
        self._first: Status | None = None  # The status before anything was chosen.
        self._models: tuple[str, ...] = ()
        self._last_status: Status | None = None
        self._work: asyncio.Task[object] | None = None
        self._turn_runs = False
        self._cancelled = self._stopping = False
        self._asking: asyncio.Future[Any] | None = None  # A question to the editor before a turn.
        self._questions: dict[str, asyncio.Task[None]] = {}

    async def open(self, session_id: str | None) -> None:
        """Open the conversation, with the settings of the files that are trusted now."""
        self.conversation, self._stack = await self._open_conversation(session_id)
        self.session_id = self.conversation.session_id or ""
        self._views = ToolCallViews(self.conversation.parts.registry.get(), self._boundary.workspace)
        self._renderer = UpdateRenderer(self._views, terminals=self._editor.abilities.shows_terminals)

    def check_loadable(self, workspace: Path) -> None:
        """Raise UsageError for a different folder, or BusyError while a prompt is running."""
        if workspace.resolve() != self._boundary.workspace.resolve():
            raise UsageError(f"That session belongs to {self._boundary.workspace}.", action="Load it with that cwd.")
        if self._work is not None:
            raise BusyError("A prompt is being answered in this session.", action="Wait for it, or cancel it.")

    async def describe(self) -> JsonObject:
        """Describe the current modes and options."""
        if not self._models:
            self._models = await self._list_models()
        status = self._last_status = await self.conversation.status()
        self._first = self._first or status
        modes = [{"id": level, "name": level, "description": ABOUT_APPROVALS[level]} for level in APPROVALS]
        return {
            "modes": {"currentModeId": status.approval, "availableModes": modes},
            "configOptions": build_config_options(status, self._models),
        }

    async def announce(self, known: Collection[str] = ()) -> None:
        """Send the session's state to the editor, without the notices in `known`."""
        commands = build_commands(self.conversation.parts.find_directories("commands"))
        await self._send({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        remarks, self._remarks = self._remarks, ()
        notices = [text for text in (await self.conversation.status()).notices if text not in known]
        for text in (*remarks, *notices):
            await self._send(render_chunk("agent_thought_chunk", f"{text}\n"))
        await self.refresh()

    async def replay(self) -> None:
        """Send the conversation so far, in order."""
        messages = await self.conversation.history(limit=MAX_REPLAYED_MESSAGES + 1)
        if len(messages) > MAX_REPLAYED_MESSAGES:
            hint = f"Earlier messages: `ollm sessions view {self.session_id}`.\n"
            await self._send(render_chunk("agent_thought_chunk", hint))
        for message in messages[-MAX_REPLAYED_MESSAGES:]:
            for update in replay_message(message, self._views):
                await self._send(update)
        status = await self.conversation.status()
        if status.todos:
            await self._send(render_plan(status.todos))

    async def prompt(self, blocks: list[JsonObject]) -> JsonObject:
        """Run one prompt to its end. Returns `{stopReason, usage}`."""
        if self._work is not None:
            raise BusyError("A prompt is being answered in this session.", action="Wait for it, or cancel it.")
        self._cancelled = self._stopping = False
        self._work = asyncio.current_task()
        try:
            return await self._answer(read_prompt(blocks, self._boundary))
        finally:
            self._work = None
            await self._withdraw_questions()
            await self.refresh()

    async def cancel(self) -> None:
        """Stop the current work. Its prompt is answered with `cancelled`."""
        if self._work is None:
            return
        self._cancelled = True
        if self._asking:
            self._asking.cancel()
        if self._turn_runs:
            await self._stop_turn()

    async def _stop_turn(self) -> None:
        """Cancel the turn only once: a second cancellation would interrupt saving."""
        if not self._stopping:
            self._stopping = True
            await self.conversation.cancel()

    async def set_option(self, option: str, value: str | bool) -> JsonObject:
        known = {"approval": APPROVALS, "mode": MODE_NAMES, "model": None}
        if option not in known:
            raise UsageError(f"No option {make_printable(option[:60])!r}.", action=f"Options: {', '.join(known)}.")
        await self._choose(option, value, known[option])
        return {"configOptions": (await self.describe())["configOptions"]}

    async def refresh(self) -> None:
        """Send the editor any state that changed since the last update."""
        before, now = self._last_status, await self.conversation.status()
        self._last_status = now
        if before is None or before.approval != now.approval:
            await self._send({"sessionUpdate": "current_mode_update", "currentModeId": now.approval})
        if before is None or (before.approval, before.mode, before.model) != (now.approval, now.mode, now.model):
            options = build_config_options(now, self._models)
            await self._send({"sessionUpdate": "config_option_update", "configOptions": options})
        if now.title and (before is None or before.title != now.title):
            await self._send({"sessionUpdate": "session_info_update", "title": render_title(now.title)})
        if before is not None and before.todos != now.todos:
            await self._send(render_plan(now.todos))
        if before is None or before.used != now.used:
            await self._send(render_usage(now.used, now.window))

    async def close(self) -> None:
        await self.cancel()
        await self._stack.aclose()

    async def _answer(self, content: PromptContent) -> JsonObject:
        text = content.text
        if text.startswith("/") and not text.startswith("//"):
            sent = await self._run_command(text)
            if sent is None:
                return {"stopReason": "cancelled" if self._cancelled else "end_turn"}
            text = sent
        return await self._run_turn(msgspec.structs.replace(content, text=text[text.startswith("//") :]))

    async def _run_command(self, line: str) -> str | None:
        """Run `/name arguments`. Returns the text to send as a message, or None."""
        name, _, arguments = line[1:].partition(" ")
        try:
            reply = await self.conversation.command(name, arguments.strip())
        except OllmError as error:
            await self._send(render_chunk("agent_message_chunk", str(error)))
            return None
        if reply.follow_up == "send":
            return reply.argument
        text = FOLLOW_UPS.get(reply.follow_up, reply.text)
        if name == "help" and not arguments.strip():
            text = render_help(self.conversation.parts.find_directories("commands"))
        await self._send(render_chunk("agent_message_chunk", text))
        return None

    async def _ask_trust(self) -> bool:
        """Ask whether to trust the workspace's files, which stay unused without an answer. Returns False if the
        prompt was cancelled meanwhile."""
        question = self._trust.take_question()
        if question is None:
            return True
        chosen = await self._wait_for(self._editor.ask_permission(self.session_id, question, TRUST_OPTIONS))
        if chosen is not None:
            await self._send(render_chunk("agent_thought_chunk", f"{self._trust.keep_answer(chosen)}\n"))
        if chosen == "trust":
            await self._open_again()
        return not self._cancelled

    async def _open_again(self) -> None:
        """Open the session with the workspace's files enabled, and keep the person's choices."""
        last = await self.conversation.status()
        await self._stack.aclose()
        await self.open(self.session_id)
        await restore_choices(self.conversation, self._first or last, last)
        await self.announce(last.notices)

    async def _wait_for(self, asked: Coroutine[Any, Any, T]) -> T | None:
        self._asking = asking = asyncio.ensure_future(asked)
        try:
            await asyncio.wait([asking])
            failed = asking.cancelled() or asking.exception() is not None
            return None if failed else asking.result()
        finally:
            self._asking = None

    async def _run_turn(self, content: PromptContent) -> JsonObject:
        if not await self._ask_trust():
            return {"stopReason": "cancelled"}
        if content.saved:
            content = await self._wait_for(use_buffers(content, self._boundary, self._buffers)) or content
        for problem in content.problems:
            await self._send(render_chunk("agent_thought_chunk", f"{problem}\n"))
        ended = TurnFinished(reason="model-error")
        try:
            async with self.conversation.turn(content.text, content.attachments) as events:
                async for event in events:
                    self._turn_runs = True  # A turn that has not begun yet cannot be cancelled.
                    if self._cancelled:
                        await self._stop_turn()
                    await self._show(event)
                    ended = event if isinstance(event, TurnFinished) else ended
        finally:
            self._turn_runs = False
        return await self._end_turn(ended)

    async def _end_turn(self, ended: TurnFinished) -> JsonObject:
        if ended.reason in FAILED_REASONS and not self._cancelled:
            raise TurnFailedError(ended.reason, ended.message)
        if ended.message and ended.reason not in ("answered", "cancelled"):
            await self._send(render_chunk("agent_message_chunk", f"\n\n{ended.message}"))
        reasons = {"cancelled": "cancelled", "context-full": "max_tokens", "loop": "max_turn_requests"}
        used = ended.usage
        return {
            "stopReason": "cancelled" if self._cancelled else reasons.get(ended.reason, "end_turn"),
            "usage": {
                "inputTokens": used.prompt_tokens,
                "outputTokens": used.completion_tokens,
                "cachedReadTokens": used.reused_tokens,
                "totalTokens": used.prompt_tokens + used.completion_tokens,
            },
        }

    async def _show(self, event: Event) -> None:
        for update in self._renderer.render(event):
            await self._send(update)
        if isinstance(event, ConfirmationRequested):
            self._questions[event.correlation_id] = asyncio.create_task(self._ask(event), name="permission")
        elif isinstance(event, ConfirmationResolved) and (task := self._questions.pop(event.correlation_id, None)):
            task.cancel()

    async def _ask(self, event: ConfirmationRequested) -> None:
        """Send a question to the editor. A missing answer means no."""
        details = event.details
        if details.typed:
            await self._refuse_typed(event)
            return
        question = build_question(details, self._views, self._renderer.get_kind(details.call_id))
        try:
            chosen = await self._editor.ask_permission(self.session_id, question, build_options(details))
            answer = read_answer(chosen, details)
        except OllmError as error:
            answer = ConfirmationAnswer(approved=False, reason=str(error))
        await self.conversation.respond(event.correlation_id, answer)

    async def _refuse_typed(self, event: ConfirmationRequested) -> None:
        """Refuse a question that needs typed text: the protocol's permissions have only options."""
        text = f"{event.details.description}\nThis needs a typed answer, which an editor cannot give: use `ollm chat`."
        await self._send(render_chunk("agent_thought_chunk", f"\n{text}\n"))
        answer = ConfirmationAnswer(approved=False, reason="an editor cannot type an answer to this")
        await self.conversation.respond(event.correlation_id, answer)

    async def _withdraw_questions(self) -> None:
        tasks = list(self._questions.values())
        self._questions.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _choose(self, name: str, value: str | bool, known: tuple[str, ...] | None) -> None:
        """Set an option, and correct the editor's display if the result differs from its choice."""
        if not isinstance(value, str) or not value.strip() or (known and value not in known):
            listed = f"One of {', '.join(known)}." if known else "Give the name of a model."
            raise UsageError(f"No {name} {make_printable(str(value)[:60])!r}.", action=listed)
        reply = await self.conversation.command(name, value)
        status = await self.conversation.status()
        if name == "approval" and status.approval != value:
            self._last_status = None
            await self._send(render_chunk("agent_thought_chunk", f"{reply.text}\n"))
        await self.refresh()

    async def _list_models(self) -> tuple[str, ...]:
        """Return the server's models, or () on an error or a timeout."""
        with contextlib.suppress(OllmError, TimeoutError):
            async with asyncio.timeout(MODEL_LIST_SECONDS):
                reply = await self.conversation.command("model")
            return tuple(reply.data["options"])
        return ()

    async def _send(self, update: JsonObject) -> None:
        await self._editor.send_update(self.session_id, update)

"""Link between screen and conversation: input is sent in order, one item at a time; events come back."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ollm.cli.screen.composing import InputKind, Pastes, attach_mentions, parse_input, run_own_command
from ollm.cli.screen.option_dialog import OptionDialog, OptionList
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.recap import RECAP_MESSAGES, pick_last_turns, show_recap
from ollm.cli.screen.themes import ScreenOptions
from ollm.cli.screen.transcript import Transcript
from ollm.cli.screen.view import read_git_branch, render_header
from ollm.cli.signals import wait_for_input
from ollm.config.environment import copy_environment
from ollm.domain.errors import BusyError, OllmError
from ollm.domain.events import (
    CompressionError,
    ConfirmationRequested,
    ConfirmationResolved,
    Event,
    Notice,
    PrefillProgress,
    SnapshotError,
)
from ollm.runtime.base import Attachment, CommandReply, Conversation, ForeignTurn, Status, get_recap_end
from ollm.runtime.commands.base import SHELL_COMMANDS, SlashCommand

log = logging.getLogger("ollm.screen")
Opener = Callable[[], AbstractAsyncContextManager[Conversation]]
TurnEvents = AbstractAsyncContextManager[AsyncIterator[Event]]
PICK_COMMANDS = ("sessions", "resume")  # Without an argument, these open the list of sessions.
COMMAND_EVENTS = (  # The reply of a command reports the rest.
    PrefillProgress,
    Notice,
    CompressionError,
    SnapshotError,
    ConfirmationRequested,
    ConfirmationResolved,
)
MAX_LEARNING_TURNS = 3  # After this many turns the screen no longer looks for commands of slow servers.
OPTION_COMMANDS = ("model", "mode", "approval")  # Without an argument, these offer a choice.
TITLES = {"approval": "approval level"}
REWIND_SCOPES = {"both": "Conversation and files", "talk": "Conversation only", "files": "Files only"}


class ChatDisplay(Protocol):
    """The part of the screen that a conversation drives."""

    options: ScreenOptions
    painter: Painter
    pastes: Pastes
    transcript: Transcript
    dialog: OptionDialog

    def print(self, text: str) -> None: ...

    def begin_turn(self, command: str) -> None: ...

    def handle_event(self, event: Event) -> None: ...

    def end_turn(self) -> None: ...

    def refresh(self, status: Status) -> None: ...

    def exit(self, reply: CommandReply) -> None: ...

    async def pick_session(self) -> None: ...

    def insert(self, text: str) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    def copy(self, text: str) -> None: ...

    def change_look(self, name: str, value: str) -> None: ...

    def lend_terminal(self) -> AbstractAsyncContextManager[None]: ...


class ConversationRunner:
    """Runner of a conversation. Input typed before it opens, or while the model works, is queued."""

    def __init__(self, display: ChatDisplay) -> None:
        self.conversation: Conversation | None = None
        self.commands: dict[str, str] = {}  # Help texts by command name.
        self.resources: list[str] = []  # MCP resources as server:uri.
        self._turns_learnt = 0
        self.queue: list[str] = []
        self.busy = self.leaving = False
        self._display = display
        self._attached: list[Attachment] = []
        self._own_commands: dict[str, SlashCommand] = {}
        self._wake = asyncio.Event()

    async def run(self, opener: Opener) -> None:
        async with opener() as conversation:
            self.conversation = conversation
            await self._greet(conversation)
            while True:
                await wait_for_input(
                    self._wake.wait(), conversation, lambda begun: self._show_remote_turn(conversation, begun)
                )
                self._wake.clear()
                while self.queue and not self.leaving:  # Text after /clear belongs to the next session.
                    await self._handle_input(conversation, self.queue.pop(0))

    async def _show_remote_turn(self, conversation: Conversation, begun: ForeignTurn) -> None:
        self._display.print(self._display.painter.paint_user_message(begun.text) + "\n")
        await self._run_busy(self._show(conversation.follow_turn(begun.after)))
        self._display.refresh(await conversation.status())

    def submit(self, text: str) -> None:
        self.queue.append(text)
        self._wake.set()

    def can_run_now(self, text: str) -> bool:
        """Return True while the model works, for a command that need not wait for it."""
        name, _, arguments = text.removeprefix("/").partition(" ")
        known = self._own_commands.get(name) if text.startswith("/") else None
        return bool(self.busy and known and known.runs_during_turn(arguments))

    async def run_now(self, text: str) -> None:
        if self.conversation:
            self._display.print(self._display.painter.paint_user_message(text))
            await self.run_safely(self._run_slash_command(self.conversation, text[1:], during_turn=True))

    def detach_last(self) -> None:
        if self._attached:
            self.print_aside(f"Not sent with the next message: {self._attached.pop().name}", "dim")

    async def _greet(self, conversation: Conversation) -> None:
        from ollm.runtime.commands import build_command_table

        self._own_commands = build_command_table()
        self.commands = {found.name: found.help for found in self._own_commands.values()}
        status = await conversation.status()
        branch = read_git_branch(self._display.options.workspace)
        self._display.print(render_header(status, branch, self._display.painter))
        if past := await conversation.history(get_recap_end(status), RECAP_MESSAGES):
            show_recap(pick_last_turns(past), self._display.transcript, self._display.painter, self._display.print)
        for notice in status.notices:
            self.print_aside(notice, "dim")
        if status.notices:
            self._display.print("\n")
        self._display.refresh(status)
        await self.run_safely(self._learn_commands(conversation))
        if status.turn_after is not None:
            await self._run_busy(self._show(conversation.follow_turn(status.turn_after)))

    async def refresh(self) -> None:
        if self.conversation:
            self._display.refresh(await self.conversation.status())

    async def _learn_commands(self, conversation: Conversation) -> None:
        if self._turns_learnt > MAX_LEARNING_TURNS:
            return
        self._turns_learnt += 1
        listed = (await conversation.command("help")).data or []
        for name, _, about in (str(line)[1:].partition(" ") for line in listed):
            self.commands.setdefault(name, about or "from .ollm/commands")
        self.resources = [str(name) for name in (await conversation.command("resource")).data or []]

    async def _handle_input(self, conversation: Conversation, typed: str) -> None:
        self._display.print(self._display.painter.paint_user_message(typed))
        kind, text = parse_input(typed)
        command = f"/{text.partition(' ')[0]}" if kind == "command" else ""
        await self._run_busy(self._dispatch_input(conversation, kind, self._display.pastes.unfold(text)), command)
        self._display.refresh(await conversation.status())

    async def _run_busy(self, work: Coroutine[Any, Any, None], command: str = "") -> None:
        self.busy = True
        self._display.begin_turn(command)
        try:
            await self.run_safely(work)
        finally:
            self.busy = False
            self._display.end_turn()

    async def _dispatch_input(self, conversation: Conversation, kind: InputKind, text: str) -> None:
        if kind == "message":
            await self._run_turn(conversation, text, below_message=True)
            return
        self._display.print("\n")
        if kind == "shell":
            await self._run_own_command(text)
        else:
            await self._run_slash_command(conversation, text)

    async def _run_slash_command(self, conversation: Conversation, text: str, *, during_turn: bool = False) -> None:
        name, _, rest = text.partition(" ")
        arguments = rest.strip()
        if name in PICK_COMMANDS and not arguments:
            await self._display.pick_session()
        elif name in SHELL_COMMANDS and arguments != "reload":
            await self._run_ollm(conversation, name, arguments)
        elif name in ("theme", "vim"):
            self._display.change_look(name, arguments)
        elif name == "rewind" and not arguments:
            await self.offer_messages()
        else:
            reply = await (conversation.command if during_turn else self._run_command)(name, arguments)
            await self._show_reply(conversation, reply, name, arguments)

    async def _run_ollm(self, conversation: Conversation, name: str, arguments: str) -> None:
        """Run a command of `ollm` on the terminal. The doctor checks the server of this chat."""
        environment, status = copy_environment(), await conversation.status()
        if name == "doctor" and status.base_url.startswith("http"):
            place = {"OLLM_PROVIDER": status.provider, "OLLM_BASE_URL": status.base_url, "OLLM_MODEL": status.model}
            environment |= place
        async with self._display.lend_terminal():
            program = (sys.executable, "-m", "ollm", name, *(arguments.split() or SHELL_COMMANDS[name]))
            where = self._display.options.workspace
            process = await asyncio.create_subprocess_exec(*program, cwd=where, env=environment)
            await process.wait()
        self._display.print("\n")

    async def _show_reply(self, conversation: Conversation, reply: CommandReply, name: str, arguments: str) -> None:
        if name == "copy":
            self._display.copy(reply.text)
            return
        if name in OPTION_COMMANDS and not arguments and self._offer_options(name, reply.data):
            return
        if reply.text:
            self._display.print(self._display.painter.paint_answer(reply.text, first=False) + "\n")
        if reply.follow_up == "send":
            await self._run_turn(conversation, reply.argument)
        elif reply.follow_up != "none":
            self._display.exit(reply)

    def _offer_options(self, name: str, data: dict[str, Any]) -> bool:
        """Offer the arguments of a command, each with its meaning. Returns False if there is no choice."""
        labels = {str(option): str(option) for option in data["options"]}
        title, current, about = f"Choose the {TITLES.get(name, name)}", str(data[name]), data.get("about", {})
        found = OptionList(title, labels, lambda chosen: self.submit(f"/{name} {chosen}"), current=current, about=about)
        if len(labels) > 1:
            self._display.dialog.open(found)
        return len(labels) > 1

    async def offer_messages(self) -> None:
        """Offer the person's messages to rewind to. Nothing changes without confirmation."""
        if not (conversation := self.conversation):
            return
        reply = await conversation.command("rewind")
        if not reply.data:
            self.print_aside(reply.text, "dim")
            return
        found = OptionList(
            "Rewind to before which message?",
            {str(found["number"]): found["text"] for found in reply.data},
            lambda number: self._display.spawn(self.run_safely(self._preview_rewind(conversation, number))),
            hint="↑↓ choose · Enter preview · Esc cancel",
        )
        found.place = len(found.values) - 1
        self._display.dialog.open(found)

    async def _preview_rewind(self, conversation: Conversation, number: str) -> None:
        reply = await conversation.command("rewind", number)
        data = reply.data or {}
        scopes = REWIND_SCOPES if data.get("files") or data.get("skipped") else {str(data["scope"]): "Rewind"}
        found = OptionList(
            reply.text.partition("To confirm")[0].replace("`", "").strip(),
            scopes,
            lambda scope: self._display.spawn(self.run_safely(self._rewind(conversation, number, scope))),
            hint="↑↓ choose · Enter rewind · Esc cancel",
        )
        self._display.dialog.open(found)

    async def _rewind(self, conversation: Conversation, number: str, scope: str) -> None:
        reply = await conversation.command("rewind", f"{number} {scope} yes")
        self.print_aside(f"{reply.text}\n", "yellow")
        if scope != "files":
            self._display.insert(str((reply.data or {}).get("text", "")))
        await self.refresh()

    async def _run_command(self, name: str, arguments: str) -> CommandReply:
        assert self.conversation
        following = asyncio.create_task(self._follow_command(self.conversation))
        try:
            return await self.conversation.command(name, arguments)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _follow_command(self, conversation: Conversation) -> None:
        await self._show(conversation.follow_turn((await conversation.status()).last_event), COMMAND_EVENTS)

    async def _run_turn(self, conversation: Conversation, text: str, *, below_message: bool = False) -> None:
        """Send a message. The names of its attachments are shown directly below it."""
        found, problems = await attach_mentions(text, self._display.options.workspace, conversation)
        for problem in problems:
            self.print_aside(problem, "yellow")
        for attachment in found:
            self.print_aside(f"{'▣' if attachment.image else '+'} {attachment.name}", "dim")
        if below_message or found or problems:
            self._display.print("\n")
        attachments, self._attached = (*found, *self._attached), []
        try:
            await self._show(conversation.turn(text, attachments))
            await self._learn_commands(conversation)
        except BusyError:
            running = (await conversation.status()).turn_after
            if running is None:
                raise
            self.print_aside("another terminal is chatting here; your message is next", "dim")
            await self._show(conversation.follow_turn(running))
            await self._show(conversation.turn(text, attachments))

    async def _show(self, turn: TurnEvents, kinds: tuple[type[Event], ...] = (Event,)) -> None:
        async with turn as events:
            async for event in events:
                if isinstance(event, kinds):
                    self._display.handle_event(event)

    async def _run_own_command(self, command: str) -> None:
        if not command:
            return
        code, output = await run_own_command(command, self._display.options.workspace, self._display.lend_terminal())
        self._attached.append(output)
        self.print_aside(f"exit {code} · the model sees this with your next message · Alt-A drops it\n", "dim")

    async def run_safely(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except OllmError as error:
            self.print_aside(str(error), "red")
            self._display.print("\n")
        except Exception as error:
            log.exception("A turn failed.", extra={"operation": "turn"})
            self.print_aside(f"Internal error: {type(error).__name__}: {error}", "red")

    def print_aside(self, text: str, style: str) -> None:
        self._display.print(self._display.painter.paint_aside(text, style))

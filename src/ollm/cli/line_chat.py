"""The chat as plain lines, for screen readers and limited terminals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ollm.cli.screen.composing import attach_mentions, parse_input, run_own_command
from ollm.cli.screen.questions import KEY_SCOPES, describe_allowed, list_grants, parse_answer, split_parts
from ollm.cli.sessions.session_list import SessionListItem, filter_sessions
from ollm.cli.signals import ShutdownHandler, wait_for_input
from ollm.cli.text_printer import TextPrinter
from ollm.domain.clock import format_age
from ollm.domain.errors import OllmError
from ollm.domain.events import ConfirmationRequested, Event
from ollm.domain.text import format_count
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.runtime.base import Attachment, CommandReply, Conversation, ForeignTurn, Status, get_recap_end
from ollm.system.terminal_text import clean_lines, escape_controls, make_printable


class LineReader:
    """Reads lines from stdin ahead of the prompts that take them; None marks the end of input."""

    def __init__(self) -> None:
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()

    @contextmanager
    def start_reading(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self._read)
        loop.add_signal_handler(signal.SIGINT, self.put, None)
        try:
            yield
        finally:
            loop.remove_reader(0)

    async def ask(self, prompt: str) -> str | None:
        """Prompt for a line; a trailing backslash continues it. Returns None at the end of input."""
        said: list[str] = []
        while True:
            sys.stdout.write(prompt if not said else "| ")
            sys.stdout.flush()
            line = await self._typed.get()
            if line is None or not line.endswith("\\"):
                return line if not said else "\n".join([*said, line or ""])
            said.append(line[:-1])

    async def ask_anew(self, prompt: str) -> str | None:
        earlier = self.take_waiting()
        line = None if None in earlier else await self.ask(prompt)
        for typed in earlier:
            self.put(typed)
        return line

    def take_waiting(self) -> list[str | None]:
        return [self._typed.get_nowait() for _ in range(self._typed.qsize())]

    def put(self, line: str | None) -> None:
        self._typed.put_nowait(line)

    def _read(self) -> None:
        data = os.read(0, 65536)
        for line in data.decode("utf-8", "replace").splitlines() if data else [None]:
            self._typed.put_nowait(line)


EXIT_REPLY = CommandReply(follow_up="exit")
MAX_SHOWN_SESSIONS = 20

QUESTION = "Number to resume, words to search, Enter for a new session, q to quit: "


async def choose_session(items: list[SessionListItem], reader: LineReader) -> CommandReply:
    """Ask until the answer is a number in the list, empty, or q. Other text filters the list, or becomes the first
    message of a new session if nothing matches."""
    unarchived = [item for item in items if not item.archived]
    shown = filter_sessions(unarchived, "")
    while True:
        print(format_list(shown))
        line = await reader.ask(QUESTION)
        word = (line or "").strip()
        if line is None or word.lower() == "q":
            return EXIT_REPLY
        if not word:
            return CommandReply(follow_up="new-session")
        if not word.isdecimal():
            shown = filter_sessions(unarchived, word)
            if not shown:
                return CommandReply(follow_up="new-session", text=word)
        elif 1 <= int(word) <= len(shown):
            return CommandReply(follow_up="open-session", argument=shown[int(word) - 1].session_id)


def format_list(lines: list[SessionListItem]) -> str:
    rows = [f"{number}. {format_session(line)}" for number, line in enumerate(lines[:MAX_SHOWN_SESSIONS], start=1)]
    if len(lines) > MAX_SHOWN_SESSIONS:
        rows.append(f"and {len(lines) - MAX_SHOWN_SESSIONS} more; type words to narrow the list")
    return "\n".join(["Sessions of this workspace:", *(rows or ["No matching sessions."])])


def format_session(line: SessionListItem) -> str:
    count = "" if line.messages is None else f", {format_count(line.messages, 'message')}"
    origin = f", {line.origin}" if line.origin else ""
    return make_printable(f"{line.title or '(no title)'}, {format_age(line.updated_at)}, {line.model}{count}{origin}")


RECAP_MESSAGES = 6


class LineChat:
    """Line-based chat. Ctrl-C stops a turn; at the prompt, Ctrl-C or Ctrl-D quits."""

    def __init__(self, conversation: Conversation, lines: LineReader, workspace: Path) -> None:
        self._conversation = conversation
        self._lines = lines
        self._workspace = workspace
        self._attached: list[Attachment] = []
        self._busy = False

    async def run(self, ending: ShutdownHandler) -> CommandReply:
        ending.attach(self._leave, lambda: self._conversation)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt_turn)
        status = await self._conversation.status()
        await self._greet(status)
        if status.turn_after is not None:
            await self._run_safely(self._show(self._conversation.follow_turn(status.turn_after)))
        while True:
            text = await wait_for_input(self._lines.ask("> "), self._conversation, self._show_remote_turn)
            if text is None:
                return EXIT_REPLY
            after = await self._handle_input(text.strip()) if text.strip() else None
            if after:
                return after

    async def _greet(self, status: Status) -> None:
        for message in await self._conversation.history(get_recap_end(status), RECAP_MESSAGES):
            said = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
            if said.strip() and message["role"] in ("user", "assistant"):
                print(escape_controls(f"{'> ' if message['role'] == 'user' else ''}{said}"))
        for notice in status.notices:
            print(escape_controls(notice))
        print(f"{status.model} · {status.window:,}-token context · /help for commands, Ctrl-D to quit")

    async def _show_remote_turn(self, begun: ForeignTurn) -> None:
        print(f"\n(from another terminal) {escape_controls(begun.text)}")
        await self._run_safely(self._show(self._conversation.follow_turn(begun.after), asks=False))
        print("> ", end="", flush=True)

    async def _handle_input(self, typed: str) -> CommandReply | None:
        kind, text = parse_input(typed)
        if kind == "command":
            return await self._run_slash_command(text)
        await self._run_safely(self._run_turn(text) if kind == "message" else self._run_own_command(text))
        return None

    async def _run_slash_command(self, text: str) -> CommandReply | None:
        name, _, arguments = text.partition(" ")
        try:
            reply = await self._conversation.command(name, arguments.strip())
        except OllmError as error:
            print(escape_controls(str(error)))
            return None
        if reply.text:
            print(escape_controls(reply.text))
        if reply.follow_up == "send":
            await self._run_safely(self._run_turn(reply.argument))
        return reply if reply.follow_up not in ("none", "send") else None

    async def _run_turn(self, text: str) -> None:
        found, problems = await attach_mentions(text, self._workspace, self._conversation)
        for line in [*problems, *(f"+ {attachment.name}" for attachment in found)]:
            print(escape_controls(line))
        attachments, self._attached = (*found, *self._attached), []
        await self._show(self._conversation.turn(text, attachments))

    async def _show(self, turn: AbstractAsyncContextManager[AsyncIterator[Event]], *, asks: bool = True) -> None:
        """Print a turn. `asks`: its questions are answered here."""
        printer = TextPrinter()
        async with turn as events:
            async for event in events:
                printer.show(event)
                if isinstance(event, ConfirmationRequested) and asks:
                    await self._ask(event)
        printer.close("")

    async def _ask(self, event: ConfirmationRequested) -> None:
        line = await self._lines.ask_anew(format_question(event.details))
        answer = parse_answer("/no" if line is None else line, event.details)
        refusal = ConfirmationAnswer(approved=False, reason=(line or "").strip())
        await self._conversation.respond(event.correlation_id, answer or refusal)

    async def _run_safely(self, work: Coroutine[Any, Any, None]) -> None:
        self._busy = True
        try:
            await work
        except OllmError as error:
            print(escape_controls(str(error)))
        finally:
            self._busy = False

    async def _run_own_command(self, command: str) -> None:
        if not command:
            return
        code, output = await run_own_command(command, self._workspace, nullcontext())
        answer = await self._lines.ask(f"exit {code}; attach the output to your next message? [Y/n] ")
        if answer is not None and answer.strip().lower() not in ("n", "no"):
            self._attached.append(output)

    def _interrupt_turn(self) -> None:
        if self._busy:
            print("\n(stopped)")
            self._stopping = asyncio.ensure_future(self._conversation.cancel())
            self._lines.put("")
        else:
            self._leave()

    def _leave(self) -> None:
        self._lines.put(None)
        if self._busy:
            self._stopping = asyncio.ensure_future(self._conversation.cancel())


def format_question(details: ConfirmationDetails) -> str:
    """Format a question with its reason and its answers; hidden characters are shown as escapes."""
    allowed, asking = split_parts(details)
    lines = [f"\n  {clean_lines(details.command)}" if details.command else ""]
    lines += [clean_lines(details.diff)] if details.diff else []
    lines += [describe_allowed(allowed, asking)] if allowed else []
    lines += [clean_lines(line) for line in asking] if details.command else [clean_lines(details.description)]
    lines += [clean_lines(details.unusual)] if details.unusual else []
    if details.typed:
        return "\n".join([*lines, "Your answer (/no to refuse): "])
    offered = ["[y] yes", *(f"[{key}] {text}" for key, text in list_grants(details).items() if key in KEY_SCOPES)]
    return "\n".join([*lines, f"{' · '.join(offered)}, or type a reason to refuse: "])

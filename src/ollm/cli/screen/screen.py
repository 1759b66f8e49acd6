"""The chat on a terminal. The input line is drawn at once; the conversation opens behind it.

A front end and no more: it sends text and answers, reads events, and prints; the same over the daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.styles import Style

from ollm.cli.screen import keys, layout
from ollm.cli.screen.completion import ChatCompleter
from ollm.cli.screen.composing import Pastes, mentioned, read_file
from ollm.cli.screen.history import InputHistory
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.questions import Questions, painted
from ollm.cli.screen.status import status_line
from ollm.cli.screen.transcript import Transcript
from ollm.domain.errors import OllmError
from ollm.domain.events import AnyEvent, ConfirmationRequested, Notice, TurnFinished
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import Attachment, CommandReply, Conversation, Status

FRAME = 0.1
LONG_TURN = 20.0
Opener = Callable[[], AbstractAsyncContextManager[Conversation]]
STYLE = Style.from_dict({"status": "reverse", "live": "ansibrightblack", "prompt": "ansicyan bold", "question": "bold"})


class Look:
    """What the terminal can do, and what the person wants."""

    def __init__(self, *, colour: bool, vi: bool, history: Path, workspace: Path) -> None:
        self.colour = colour
        self.vi = vi
        self.history = history
        self.workspace = workspace


class ChatScreen:
    """One conversation at a time. `run` gives what to do next: leave, or open another session."""

    def __init__(self, look: Look, find_files: Callable[[str], list[str]]) -> None:
        self.look = look
        self.questions = Questions()
        self.pastes = Pastes()
        self.painter = Painter(self._width, colour=look.colour)
        self.transcript = Transcript(self.painter, self._print)
        self.next: CommandReply = CommandReply(follow_up="exit")
        self._conversation: Conversation | None = None
        self._status: Status | None = None
        self._branch = ""
        self._queue: list[str] = []
        self._wake = asyncio.Event()
        self._printed: list[str] = []
        self._offer: Attachment | None = None
        self._attached: list[Attachment] = []
        self._commands: list[tuple[str, str]] = []
        self._failure: OllmError | None = None
        self._turn_began = 0.0
        self._buffer = Buffer(
            completer=ChatCompleter(lambda: self._commands, find_files),
            complete_while_typing=True,
            multiline=True,
            history=InputHistory(look.history, lambda: self._conversation.session_id if self._conversation else None),
            enable_history_search=True,
        )
        self.app: Application[None] = Application(
            layout=layout.chat_layout(self._buffer, self._live, self._question, self._footer, self._before),
            key_bindings=keys.bindings(self),
            style=STYLE if look.colour else None,
            editing_mode=EditingMode.VI if look.vi else EditingMode.EMACS,
            full_screen=False,
            mouse_support=False,
        )
        self.app.ttimeoutlen = 0.05

    async def run(self, opener: Opener) -> CommandReply:
        """Show the input, open the conversation, talk until the person leaves."""
        async with asyncio.TaskGroup() as group:
            work = [group.create_task(self._talk(opener)), group.create_task(self._repaint())]
            try:
                await self.app.run_async(handle_sigint=False)
            finally:
                for task in work:
                    task.cancel()
        self._write_printed()
        if self._failure:
            raise self._failure
        return self.next

    # What the keys ask for

    @property
    def busy(self) -> bool:
        return self.transcript.phase != "idle"

    @property
    def asking(self) -> bool:
        return self.questions.current is not None and not self.questions.refusing

    @property
    def vi(self) -> bool:
        return self.look.vi

    def submit(self, text: str) -> None:
        if self.questions.refusing:
            self._respond(ConfirmationAnswer(approved=False, reason=text.strip()))
        elif text.strip():
            self._queue.append(text)
            self._wake.set()

    def answer(self, key: str) -> None:
        if answer := self.questions.answer(key):
            self._respond(answer)

    def refuse(self) -> None:
        self.questions.refusing = True
        self.app.invalidate()

    def stop(self) -> None:
        self._queue.clear()
        if self._conversation:
            self.app.create_background_task(self._conversation.cancel())

    def leave(self) -> None:
        self._exit(CommandReply(follow_up="exit"))

    def paste(self, text: str) -> str:
        return self.pastes.fold(text)

    def rewind(self) -> None:
        self.app.create_background_task(self._show_rewind())

    def unfold(self) -> None:
        """Show the last tool's output in full, and show everything from now on; again folds it."""
        self.transcript.unfolded = not self.transcript.unfolded
        last = self.transcript.last_finished
        if self.transcript.unfolded and last:
            self._print(self.painter.dim(last.result.full_output or last.result.llm_content))

    def attach_offer(self) -> None:
        if self._offer:
            self._attached.append(self._offer)
            self._print(self.painter.aside(f"{self._offer.name} goes with your next message", "dim"))
            self._offer = None

    # The conversation

    async def _talk(self, opener: Opener) -> None:
        try:
            async with opener() as conversation:
                self._conversation = conversation
                await self._greet(conversation)
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    while self._queue:
                        await self._one(conversation, self._queue.pop(0))
        except OllmError as error:
            self._failure = error
            self._exit(CommandReply(follow_up="exit"))

    async def _greet(self, conversation: Conversation) -> None:
        from ollm.runtime.commands import command_table

        self._commands = [(command.name, command.help) for command in command_table().all()]
        self._status = await conversation.status()
        for notice in self._status.notices:
            self._print(self.painter.aside(notice, "dim"))
        self._branch = git_branch(self.look.workspace)
        self.app.invalidate()

    async def _one(self, conversation: Conversation, typed: str) -> None:
        text = self.pastes.unfold(typed)
        self._print(self.painter.user(typed) + "\n")
        try:
            if text.startswith("!"):
                await self._run_command(text[1:])
            elif text.startswith("/"):
                await self._slash(conversation, text)
            else:
                await self._turn(conversation, text)
        except OllmError as error:
            self._print(self.painter.aside(str(error), "red"))
        self._status = await conversation.status()
        self.app.invalidate()

    async def _slash(self, conversation: Conversation, text: str) -> None:
        name, _, arguments = text[1:].partition(" ")
        self.transcript.phase = "waiting"
        try:
            reply = await conversation.command(name, arguments.strip())
        finally:
            self.transcript.phase = "idle"
        if reply.text:
            self._print(self.painter.markdown(reply.text) + "\n")
        if reply.follow_up == "send":
            await self._turn(conversation, reply.argument)
        elif reply.follow_up != "none":
            self._exit(reply)

    async def _turn(self, conversation: Conversation, text: str) -> None:
        found, problems = mentioned(text, self.look.workspace, read_file)
        for problem in problems:
            self._print(self.painter.aside(problem, "yellow"))
        attachments = (*found, *self._attached)
        self._attached = []
        self._turn_began = asyncio.get_running_loop().time()
        self.transcript.phase = "waiting"
        try:
            async with conversation.turn(text, attachments) as events:
                async for event in events:
                    self._show(event)
        finally:
            self.transcript.phase = "idle"

    def _show(self, event: AnyEvent) -> None:
        self.questions.hear(event)
        self.transcript.show(event)
        if isinstance(event, ConfirmationRequested):
            self._print(painted(event.details, self.painter))
            self.app.output.bell()
        elif isinstance(event, TurnFinished):
            if asyncio.get_running_loop().time() - self._turn_began > LONG_TURN:
                self.app.output.bell()
        elif isinstance(event, Notice) and self.app.is_running:
            self.app.invalidate()

    def _respond(self, answer: ConfirmationAnswer) -> None:
        current = self.questions.current
        self.questions.refusing = False
        if current and self._conversation:
            self.app.create_background_task(self._send_answer(current.correlation_id, answer))

    async def _send_answer(self, correlation_id: str, answer: ConfirmationAnswer) -> None:
        assert self._conversation
        if not await self._conversation.respond(correlation_id, answer):
            self._print(self.painter.aside("that was answered already", "dim"))

    async def _run_command(self, command: str) -> None:
        """Run a command as the person, outside policy; its output may be attached to the next message."""
        if not command.strip():
            return
        async with in_terminal():
            process = await asyncio.create_subprocess_shell(
                command, cwd=self.look.workspace, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
            )
            out, _ = await process.communicate()
            sys.stdout.buffer.write(out)
            sys.stdout.flush()
        self._offer = Attachment(name=f"$ {command.strip()}", text=out.decode("utf-8", "replace"))
        self._print(self.painter.aside(f"exit {process.returncode} · Alt-A attaches this to your next message", "dim"))

    async def _show_rewind(self) -> None:
        """The person's messages, to go back before one of them; nothing changes until it is confirmed."""
        if self._conversation is None:
            return
        page = await self._conversation.history(limit=200)
        asked = [message for message in page if message["role"] == "user"][-10:]
        for message in asked:
            text = " ".join(part.get("text", "") for part in message["parts"])
            self._print(self.painter.aside(f"#{message['id']} {text[:100]}", "dim"))
        if asked:
            self._print(self.painter.aside("/rewind NUMBER goes back to before that message", "yellow"))

    # Painting

    def _print(self, text: str) -> None:
        self._printed.append(text)
        if self.app.is_running:
            self.app.invalidate()

    async def _repaint(self) -> None:
        """At most ten times a second, and only when something is alive or waits to be printed."""
        while True:
            if self._printed:
                async with in_terminal():
                    self._write_printed()
            elif self.busy:
                self.app.invalidate()
            await asyncio.sleep(FRAME)

    def _write_printed(self) -> None:
        text, self._printed = "".join(self._printed), []
        with contextlib.suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()

    def _exit(self, reply: CommandReply) -> None:
        self.next = reply
        if self.app.is_running:
            self.app.exit()

    def _width(self) -> int:
        return self.app.output.get_size().columns

    def _live(self) -> StyleAndTextTuples:
        size = self.app.output.get_size()
        lines = self.transcript.live(size.columns, max(3, size.rows // 3))
        return [("class:live", "\n".join(lines))] if lines else []

    def _question(self) -> StyleAndTextTuples:
        return [("class:question", self.questions.choices())] if self.questions.current else []

    def _footer(self) -> StyleAndTextTuples:
        line = status_line(self._status, self.transcript, self._branch, len(self._queue), self._width())
        return [("class:status", line.ljust(self._width() - 1))]

    def _before(self) -> StyleAndTextTuples:
        return [("class:prompt", "no, because: " if self.questions.refusing else "› ")]


def git_branch(workspace: Path) -> str:
    """The branch that is checked out, read from the file git keeps it in."""
    try:
        head = (workspace / ".git" / "HEAD").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return head.strip().removeprefix("ref: refs/heads/")[:40]

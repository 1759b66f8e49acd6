"""The chat on a terminal. The input line is drawn at once; the conversation opens in the background.

The screen only sends text and answers, reads events, and prints, so that it works the same over the daemon.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.styles import Style

from ollm.cli.screen.chat_session import ConversationRunner, Opener
from ollm.cli.screen.composing import Pastes
from ollm.cli.screen.input_field import build_input
from ollm.cli.screen.live import WAITING_TEXT
from ollm.cli.screen.option_dialog import OptionDialog, OptionList
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.questions import ConfirmationQueue, paint_question
from ollm.cli.screen.themes import THEMES, ScreenOptions, choose_notification, choose_theme
from ollm.cli.screen.transcript import Transcript
from ollm.cli.screen.view import ScreenView, merge_style_runs, read_git_branch
from ollm.domain.errors import OllmError
from ollm.domain.events import ConfirmationRequested, Event
from ollm.domain.text import format_count
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import CommandReply, Status
from ollm.system.terminal_text import make_printable

FRAME_SECONDS = 0.1


class ScreenPrinter:
    """Printer above the input. `alive` returns True while something is animated; otherwise nothing runs."""

    def __init__(self, app: Application[None], alive: Callable[[], bool]) -> None:
        self._app = app
        self._alive = alive
        self._waiting: list[str] = []
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()

    def add(self, text: str) -> None:
        self._waiting.append(text)
        self._wake.set()

    def hurry(self) -> None:
        """Redraw at once instead of at the next frame."""
        self._wake.set()
        self._hurry.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            if self._is_lent:
                await asyncio.sleep(FRAME_SECONDS)
                continue
            self._hurry.clear()
            if not self._alive():
                self._wake.clear()
            if self._waiting and self._app.is_running:
                self._write_above()
            self._app.invalidate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FRAME_SECONDS):  # In Python 3.11 `wait_for` may lose a cancellation.
                    await self._hurry.wait()

    @property
    def _is_lent(self) -> bool:
        lent = self._app._running_in_terminal_f  # noqa: SLF001 - the toolkit does not tell it otherwise
        return lent is not None and not lent.done()

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stdout.write(self._take_waiting())
            sys.stdout.flush()

    def _write_above(self) -> None:
        """Erase the input, write, and let it be redrawn. The terminal mode is unchanged, so that keys pressed
        meanwhile keep their meaning."""
        renderer, output = self._app.renderer, self._app.output
        renderer.erase(leave_alternate_screen=False)
        output.write_raw(self._take_waiting().replace("\n", "\r\n"))
        output.flush()

    def _take_waiting(self) -> str:
        text, self._waiting = "".join(self._waiting), []
        return text


THEME_NAMES = {name: name for name in ("auto", *THEMES)}
THEME_SAMPLE = "Code is `inline` or **in** a [link](https://example.org):"
DIFF_SAMPLE = """\
--- a/total.py
+++ b/total.py
@@ -1,3 +1,3 @@
 def total(prices: list[int]) -> int:  # of all
-    return prices[0] or "none"
+    return sum(prices) or "none"
"""
LEAVE_WORDS = ("exit", "quit", ":q")
CYCLE = {"ask": "accept-edits", "accept-edits": "plan", "plan": "ask"}  # No key sets yolo.
LONG_TURN_SECONDS = 20.0
HINT_SECONDS = 1.0
Pick = Callable[[str | None], Awaitable[CommandReply | None]]
Find = Callable[[str], list[str]]


class ChatScreen:
    """Screen for one conversation at a time. `run` returns the next step: quit, or open another session.

    `find_files` completes `@`; `pick` shows the workspace's sessions and returns the choice.
    """

    def __init__(self, options: ScreenOptions, find_files: Find, pick: Pick) -> None:
        self.options = options
        self.next = CommandReply(follow_up="exit")
        self.left: str | None = None  # Id of the last session.
        self.questions = ConfirmationQueue()
        self.pastes = Pastes()
        self.painter = Painter(self._get_width, choose_theme(options.settings.theme, options.environment))
        self.transcript = Transcript(self.painter, self.print)
        self.chat = ConversationRunner(self)
        self.buffer = build_input(options, self.chat, self.questions, find_files)
        self._pick = pick
        self._began = 0.0
        self._mode_before_plan = "code"
        self.first_letter_at: float | None = None  # Time of the first letter since the screen last took the terminal.
        self._taken_back = ""  # Queued messages that went back to the input.
        self._failure: OllmError | None = None
        self._group: asyncio.TaskGroup | None = None
        self.dialog = OptionDialog()
        self.questions.attach(
            self.buffer,
            lambda question, answer: self.spawn(self._respond(question, answer)),
            lambda: self.spawn(self._set_approval("accept-edits")),
        )
        self.view = ScreenView(self.transcript, self.questions, self.dialog, lambda: self.chat.queue)

    def attach(self, app: Application[None]) -> None:
        self.app = app
        self._printing = ScreenPrinter(app, lambda: self.chat.busy)

    async def run(self, opener: Opener) -> CommandReply:
        try:
            self._repaint_while_connecting()
            async with asyncio.TaskGroup() as self._group:
                work = [
                    self._group.create_task(self._run_conversation(opener)),
                    self._group.create_task(self._printing.run()),
                ]
                try:
                    await self.app.run_async(handle_sigint=False, set_exception_handler=False)
                    if self.chat.conversation:
                        self.left = self.chat.conversation.session_id
                        await self.chat.conversation.close()
                finally:
                    for task in work:
                        task.cancel()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            self._printing.flush()
            with contextlib.suppress(OSError):
                self.app.output.clear_title()
                self.app.output.flush()
        if self._failure:
            raise self._failure
        return self.next

    def _repaint_while_connecting(self) -> None:
        if self.view.status is None:
            self.app.invalidate()
            asyncio.get_running_loop().call_later(1.0, self._repaint_while_connecting)

    async def _run_conversation(self, opener: Opener) -> None:
        try:
            await self.chat.run(opener)
        except OllmError as error:
            self._failure = error
            self.exit(CommandReply(follow_up="exit"))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._group
        self._group.create_task(work)

    # What the chat does to the screen

    def print(self, text: str) -> None:
        self._printing.add(text)

    def begin_turn(self, command: str) -> None:
        """Show that a slash command runs, or with "" that the model works."""
        self._began = asyncio.get_running_loop().time()
        self.transcript.live.begin(f"running {command}" if command else WAITING_TEXT)
        self._printing.hurry()

    def handle_event(self, event: Event) -> None:
        self.questions.handle_event(event)
        self.transcript.show(event)
        if isinstance(event, ConfirmationRequested):
            self.print(paint_question(event.details, self.painter))
            self._notify(event.details.description)

    def end_turn(self) -> None:
        self.transcript.live.end()
        self._clear_hint()
        self._printing.hurry()
        if asyncio.get_running_loop().time() - self._began > LONG_TURN_SECONDS:
            self._notify("The model is done.")

    def refresh(self, status: Status) -> None:
        self.view.status = status
        self.transcript.apply_status(status)
        self.view.branch = read_git_branch(self.options.workspace)
        self.app.output.set_title(f"ollm · {status.title or self.options.workspace.name}")
        self.app.invalidate()
        if self.buffer.text.startswith("/") and self.buffer.complete_state is None:
            self.buffer.start_completion()  # A command may be typed before the list of commands is known.

    def exit(self, reply: CommandReply) -> None:
        self.next, self.chat.leaving = reply, True
        if self.app.is_running:
            self.app.exit()

    async def pick_session(self) -> None:
        current = self.chat.conversation.session_id if self.chat.conversation else None
        async with self.lend_terminal():
            chosen = await self._pick(current)
        if chosen:
            self.exit(chosen)

    @contextlib.asynccontextmanager
    async def lend_terminal(self) -> AsyncIterator[None]:
        """Lend the terminal for a while, after writing pending text."""
        async with in_terminal():
            self._printing.flush()
            yield
        self.first_letter_at = None

    def _notify(self, text: str) -> None:
        if self.options.settings.bell:
            notification = choose_notification(self.options.environment)
            self.app.output.bell()
            self.app.output.write_raw(notification.format(make_printable(text)[:100]))
            self.app.output.flush()

    # What the keys ask for

    @property
    def can_take_back(self) -> bool:
        """True if a message is queued and the input holds at most text taken back earlier."""
        document = self.buffer.document
        return bool(self.chat.queue) and document.is_cursor_at_the_end and document.text in ("", self._taken_back)

    def submit(self, text: str) -> None:
        if text.strip().lower() in LEAVE_WORDS and not self.questions.typing:
            self.leave()
            return
        if self.questions.typing:
            self.questions.submit(text.strip())
        elif self.questions.take_words(text):
            return
        elif self.chat.can_run_now(text):
            self.spawn(self.chat.run_now(text))
        elif text.strip():
            self.chat.submit(text)

    def stop(self) -> None:
        waiting, self.chat.queue = self.chat.queue, []
        if waiting:
            draft = [self.buffer.text] if self.buffer.text.strip() else []
            self.buffer.reset()
            self.buffer.insert_text("\n".join([*waiting, *draft]))
        if self.chat.conversation:
            self.show_hint("Stopping…")
            self.spawn(self.chat.conversation.cancel())

    def take_back_queued(self) -> None:
        """Return the newest queued message to the input, above those returned earlier."""
        below = [self.buffer.text] if self.buffer.text else []
        self.buffer.reset()
        self._taken_back = "\n".join([self.chat.queue.pop(), *below])
        self.buffer.insert_text(self._taken_back)

    def leave(self) -> None:
        self.exit(CommandReply(follow_up="exit"))

    def insert(self, text: str) -> None:
        self.buffer.insert_text(self.pastes.fold(text))

    def set_draft(self, text: str) -> None:
        self.buffer.reset(Document(text))

    def find_chip(self) -> str:
        """Find the folded paste just before the cursor, which one key deletes."""
        before = self.buffer.document.text_before_cursor
        return next((chip for chip in self.pastes.kept if before.endswith(chip)), "")

    def copy(self, text: str) -> None:
        data = base64.b64encode(text.encode("utf-8", "replace")).decode()
        self.app.output.write_raw(f"\x1b]52;c;{data}\x07")
        self.app.output.flush()
        self.print(self.painter.paint_aside(f"Copied {format_count(len(text), 'character')}.", "dim") + "\n")

    def change_look(self, name: str, value: str) -> None:
        """Choose a theme, or switch between the keys of vi and emacs; the choice is saved."""
        if name == "vim":
            self.app.editing_mode = EditingMode.VI if self.app.editing_mode == EditingMode.EMACS else EditingMode.EMACS
            self._save_look("keys", self.app.editing_mode.value.lower())
        elif value in THEME_NAMES:
            self._use_theme(value)
        else:
            self.dialog.open(
                OptionList("Choose the colours", THEME_NAMES, self._use_theme, preview=self._preview_theme)
            )

    def _use_theme(self, name: str) -> None:
        theme = choose_theme(name, self.options.environment)
        self.painter.set_theme(theme)
        self.app.style = Style.from_dict(theme.toolkit)
        self._save_look("theme", name)

    def _save_look(self, key: str, value: str) -> None:
        self.options.save(key, value)
        self.print(self.painter.paint_aside(f"screen.{key} is {value} now.", "dim") + "\n")

    def _preview_theme(self, name: str) -> StyleAndTextTuples:
        painter = Painter(self._get_width, choose_theme(name, self.options.environment))
        return merge_style_runs(painter.paint_answer(THEME_SAMPLE, first=True) + painter.paint_diff(DIFF_SAMPLE))

    def cycle_approval(self) -> None:
        if status := self.view.status:
            now = "plan" if status.mode == "plan" else status.approval
            self.spawn(self.chat.run_safely(self._set_approval(CYCLE.get(now, "ask"))))

    async def _set_approval(self, level: str) -> None:
        """Set an approval level or plan mode. Leaving plan mode restores the earlier mode."""
        status, conversation = self.view.status, self.chat.conversation
        if not status or not conversation:
            return
        if level == "plan":
            self._mode_before_plan = status.mode
            await conversation.command("mode", "plan")
        elif status.mode == "plan":
            await conversation.command("mode", self._mode_before_plan)
        await conversation.command("approval", "ask" if level == "plan" else level)
        self.refresh(await conversation.status())

    def show_hint(self, text: str) -> None:
        self.view.hint = text
        self.app.invalidate()
        asyncio.get_running_loop().call_later(HINT_SECONDS, self._clear_hint)

    def _clear_hint(self) -> None:
        self.view.hint = ""
        self.app.invalidate()

    async def _respond(self, correlation_id: str, answer: ConfirmationAnswer) -> None:
        assert self.chat.conversation
        if not await self.chat.conversation.respond(correlation_id, answer):
            self.print(self.painter.paint_aside("already answered", "dim"))

    def _get_width(self) -> int:
        return self.app.output.get_size().columns

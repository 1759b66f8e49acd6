"""`ollm chat` on a terminal: a choice of the workspace's sessions, then the screen, until the person quits."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.cli.line_chat import LineChat, LineReader, choose_session
from ollm.cli.sessions.session_list import SessionList, put_waiting_first
from ollm.cli.signals import ShutdownHandler, handle_signals
from ollm.cli.start import ChatArguments
from ollm.config.environment import wants_plain
from ollm.domain.errors import ExitCode, ModelError, NoServerError, OllmError, UnsavedError
from ollm.domain.events import Notice
from ollm.runtime.base import CommandReply, Conversation
from ollm.store.workspace_place import find_database
from ollm.system.terminal_text import clean_lines, make_printable, wrap_words

if TYPE_CHECKING:
    from ollm.config.settings import ScreenSettings
    from ollm.store.lease import Lease, LeaseOwner

GC_THRESHOLD_OBJECTS = 2_000  # The collector looks for garbage after this many new objects.
WELCOME_TEXT = """\
Ask anything about this project. ollm asks before it changes a file.
Enter to send, Alt-Enter for a new line, Esc to stop, Ctrl-D to quit.
"""
EARLIER_CHATS_TEXT = "`ollm -c` continues the last chat, `ollm -r` lists them."


def run_terminal_chat(start: ChatArguments) -> int:
    process = ProcessScope(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
    if start.daemon:
        from ollm.cli.daemon import refuse_local_flags

        refuse_local_flags(start)
    from ollm.cli.trust import ask_trust

    ask_trust(process.trust_book, start.workspace)
    if not start.daemon and not start.force and not start.beside:
        settled = settle_workspace(process, start)
        if settled is None:
            return ExitCode.DONE
        start = settled
    return asyncio.run(Terminal(process, start).run())


class Terminal:
    """One person at one terminal, through any number of sessions."""

    def __init__(self, process: ProcessScope, start: ChatArguments) -> None:
        self._process = process
        self._start = start
        self._scope = WorkspaceScope(process, start.workspace)
        self._left: str | None = None
        self._unsaved = False
        self._late: list[Notice] = []  # Warnings that came after the last turn.
        self._settings = load_screen_settings(process)
        self._plain = self._settings.plain or wants_plain(process.environment)
        self._lines = LineReader()
        self._flags = start.flags
        self._model = ""  # The name given with /model, for new sessions.
        self._text = start.text  # The first message, until it is sent.
        self._draft = ""  # Text typed at the list of sessions.
        self._typed_ahead: list[str] = []  # Text typed after a command that left the session.
        self._ending = ShutdownHandler()

    async def run(self) -> int:
        with handle_signals(self._ending), self._lines.start_reading() if self._plain else nullcontext():
            try:
                await self._run_sessions()
            finally:
                self._scope.close()
                self._print_resume_hint()
        if self._ending.sentence:
            print(wrap_words(self._ending.sentence))
        if self._unsaved:
            return ExitCode.FAILED
        return 128 + self._ending.signal if self._ending.signal else ExitCode.DONE

    async def _run_sessions(self) -> None:
        start = self._start
        is_named = start.new or start.session or start.newest or start.text or start.bare
        if (start.pick or not is_named) and not await self._pick_session():
            return
        if not self._plain and not self._process.home.input_history.exists():
            print(wrap_words(WELCOME_TEXT), end="\n\n")
        if self._start.bare and not self._text and find_database(self._scope.main, self._process.home):
            print(wrap_words(EARLIER_CHATS_TEXT), end="\n\n")
        one = self._run_line_chat if self._plain else self._run_screen
        while (after := await one()).follow_up != "exit":
            if after.follow_up == "open-session":
                self._switch_session(after.argument)
            elif after.follow_up == "open-folder":
                self._switch_session(None)
                self._enter_folder(Path(after.argument))
            elif after.follow_up == "finish-worktree":
                if self._finish_worktree("drop" if after.argument == "drop" else "merge"):
                    return
                self._switch_session(self._left)
            else:
                self._model = after.argument or self._model
                self._switch_session(None)

    async def _run_line_chat(self) -> CommandReply:
        if text := self._take_text():
            self._lines.put(text)
        after = CommandReply(follow_up="exit")
        with self._report_unsaved(self._lines.take_waiting):
            async with self._open_and_track() as conversation:
                after = await LineChat(conversation, self._lines, self._start.workspace).run(self._ending)
        return after

    async def _run_screen(self) -> CommandReply:
        from ollm.cli.screen.application import create_chat_screen
        from ollm.cli.screen.input_field import WorkspaceFiles
        from ollm.cli.screen.themes import ScreenOptions

        files = WorkspaceFiles(lambda: self._scope.discovery, self._start.workspace)

        def find_mentions(typed: str) -> list[str]:
            from ollm.services.agents import complete_agent

            return [*complete_agent(self._scope.agent_directories, typed), *files.find(typed)]

        options = ScreenOptions(
            history=self._process.home.input_history,
            workspace=self._start.workspace,
            settings=self._settings,
            environment=self._process.environment,
            save=self._save_screen_setting,
        )
        screen = create_chat_screen(options, find_mentions, self._pick_another)
        screen.set_draft(self._draft)
        self._draft = ""
        for text in filter(None, (self._take_text(), *self._typed_ahead)):
            screen.chat.submit(text)
        self._start = msgspec.structs.replace(self._start, announce=screen.view.note_wait)
        self._ending.attach(screen.leave, lambda: screen.chat.conversation)
        with self._report_unsaved(lambda: screen.chat.queue):
            await screen.run(self._open_and_track)
        self._left, self._typed_ahead = screen.left or self._left, screen.chat.queue
        return screen.next

    @contextmanager
    def _report_unsaved(self, get_waiting: Callable[[], Sequence[str | None]]) -> Iterator[None]:
        """Report data that could not be saved when a session closed, as the last output and by the exit code. The error
        of a session that could not be opened gets the messages that wait for it."""
        try:
            yield
        except (NoServerError, ModelError) as error:
            error.unsent = "\n\n".join(filter(None, get_waiting()))
            raise
        except UnsavedError as error:
            self._unsaved = True
            print(f"ollm: {make_printable(error.message)}\n  {make_printable(error.action)}", file=sys.stderr)
        finally:
            while self._late:
                print(f"ollm: {make_printable(self._late.pop(0).text)}", file=sys.stderr)

    def _take_text(self) -> str:
        text, self._text = self._text, ""
        return text

    def _switch_session(self, session: str | None) -> None:
        self._left = None
        flags = self._flags
        if session is None and self._model:
            flags = {**flags, "provider": {**flags.get("provider", {}), "model": self._model}}
        self._start = msgspec.structs.replace(
            self._start, new=session is None, session=session, newest=False, flags=flags
        )
        if session is not None:
            from ollm.app.worktrees import find_session_folder

            self._enter_folder(find_session_folder(self._process, self._start.workspace, session))

    def _enter_folder(self, folder: Path) -> None:
        if folder != self._start.workspace:
            self._scope.close()
            self._start = msgspec.structs.replace(self._start, workspace=folder)
            self._process = ProcessScope(workspace=folder, flags=self._flags, warn=lambda _: None)
            self._scope = WorkspaceScope(self._process, folder)

    def _finish_worktree(self, ending: Literal["merge", "drop"]) -> bool:
        from ollm.app.worktrees import WorktreeManager

        manager = WorktreeManager(self._process, self._start.workspace)
        try:
            if found := manager.find_current():
                print(clean_lines(manager.finish(found, ending)))
        except OllmError as error:
            print(clean_lines(str(error)))
            return False
        return True

    @asynccontextmanager
    async def _open_and_track(self) -> AsyncIterator[Conversation]:
        """Open the conversation, here or in the daemon, and remember its session for the last line."""
        async with self._open_conversation() as conversation:
            from ollm.runtime.conversation import LocalConversation

            if not gc.get_freeze_count():  # Objects of the start stay, those of a conversation go soon.
                gc.freeze()
                gc.set_threshold(GC_THRESHOLD_OBJECTS)
            if isinstance(conversation, LocalConversation):
                self._late = conversation.parts.stream.unheard
            try:
                yield conversation
            finally:
                self._left = conversation.session_id or self._left

    def _open_conversation(self) -> AbstractAsyncContextManager[Conversation]:
        if self._start.daemon:
            from ollm.cli.daemon import open_remote_conversation

            return open_remote_conversation(self._start)
        from ollm.app.conversation import open_conversation

        return open_conversation(self._start)

    def _save_screen_setting(self, key: str, value: str) -> None:
        from ollm.config.change import set_setting

        set_setting(self._process.home, f"screen.{key}", value)
        self._settings = msgspec.structs.replace(self._settings, **{key: value})

    # Choosing a session

    async def _pick_session(self) -> bool:
        choice = await self._choose_session(without=None)
        if choice is None or choice.follow_up == "exit":
            return choice is None
        if choice.follow_up == "open-session":
            self._switch_session(choice.argument)
        else:
            self._text, self._draft = choice.text or self._text, choice.argument
        return True

    async def _pick_another(self, current: str | None) -> CommandReply | None:
        choice = await self._choose_session(without=current)
        if choice is None:
            print("  No other sessions in this workspace.")
        return None if choice is None or choice.follow_up == "exit" else choice

    async def _choose_session(self, without: str | None) -> CommandReply | None:
        sessions = SessionList(self._scope)
        lines = [line for line in sessions.load_items() if line.session_id != without]
        lines = await put_waiting_first(self._process, lines)
        if not any(not line.archived for line in lines):
            return None
        if self._plain:
            with self._ending.override_leave(lambda: self._lines.put(None)):
                return await choose_session(lines, self._lines)
        from ollm.cli.screen.picker import Picker
        from ollm.cli.screen.themes import choose_theme

        theme = choose_theme(self._settings.theme, self._process.environment)
        picker = Picker(lines, sessions, theme=theme, first=without is None, searching=self._start.pick)
        with self._ending.override_leave(picker.leave):
            return await picker.choose()

    def _print_resume_hint(self) -> None:
        places = self._process.session_files.places
        if self._left and places.has(self._left):
            daemon = " --daemon" if self._start.daemon else ""
            print(f"Resume with: ollm -r {places.shorten_id(self._left)}{daemon}")
            if self._start.workspace.is_dir() and self._scope.main != self._start.workspace:
                from ollm.cli.worktree import describe_kept

                print(clean_lines(describe_kept(self._process, self._start.workspace)))
            sys.stdout.flush()


def load_screen_settings(process: ProcessScope) -> ScreenSettings:
    """Load the screen settings. Files that do not mention them are skipped, since the input line waits for this."""
    from ollm.config.settings import ScreenSettings

    assert process.workspace
    files = (process.home.config, process.workspace / ".ollm" / "config.yaml")
    if not any(file.is_file() and b"screen" in file.read_bytes() for file in files):
        return ScreenSettings()
    return process.loaded_settings.settings.screen


DAEMON_TIMEOUT_SECONDS = 5.0
REFUSED_SECONDS = 1.0  # The daemon may count a client that has just left for this long.
RETRY_INTERVAL_SECONDS = 0.05
ASKING_DAEMON = "Asking the daemon for the workspace …"  # It fits one line at 40 columns.
QUESTION = "[b] open beside it · [t] take over, which closes it there · [q] quit:"
KEYS = ("b", "t", "q")
QUIT_KEYS = ("", "\x04", "\x1b")
MAX_KEY_BYTES = 64


def settle_workspace(process: ProcessScope, start: ChatArguments) -> ChatArguments | None:
    """Choose how to open the chat, after a question if another one is open. Returns None to open none."""
    lease = WorkspaceScope(process, start.workspace).create_lease()
    owner = lease.find_other_owner()
    if owner is None or process.settings.workspace.sessions == "many" or _ask_daemon(lease, owner):
        return start
    print(wrap_words(f"This workspace is in use by {owner.describe()}."))
    key = _ask_for_key()
    if key == "b":  # The newest session is open in the other chat, so the default is a new one.
        anew = not (start.pick or start.session or start.newest)
        return msgspec.structs.replace(start, beside=True, new=anew)
    return msgspec.structs.replace(start, force=True) if key == "t" else None


def _ask_for_key() -> str:
    """Read `b`, `t` or `q` without Enter. Esc, Ctrl-D and a lost terminal mean `q`; other keys are ignored."""
    import termios
    import tty

    inlet = sys.stdin.fileno()
    before = termios.tcgetattr(inlet)
    tty.setcbreak(inlet)  # Keys typed before the question are no answer.
    try:
        print(wrap_words(QUESTION), end=" ", flush=True)
        key = ""
        while key not in KEYS:
            pressed = os.read(inlet, MAX_KEY_BYTES).decode(errors="replace")
            key = "q" if pressed in QUIT_KEYS else pressed.strip().lower()  # Pasted words are no answer.
        print(key)
    finally:
        termios.tcsetattr(inlet, termios.TCSAFLUSH, before)  # An Enter typed from habit is dropped.
    return key


def _ask_daemon(lease: Lease, owner: LeaseOwner) -> bool:
    """Ask the daemon to release the workspace; False if it does not hold it or someone uses it."""
    if not owner.is_daemon or not lease.ask_owner_to_close(only_when_idle=True):
        return False
    began = time.monotonic()
    print(ASKING_DAEMON, end="", flush=True)
    try:
        while (waited := time.monotonic() - began) < DAEMON_TIMEOUT_SECONDS:
            refused = not lease.is_requested
            if lease.find_other_owner() is None:
                return True
            if refused and (waited > REFUSED_SECONDS or not lease.ask_owner_to_close(only_when_idle=True)):
                return False
            time.sleep(RETRY_INTERVAL_SECONDS)
        lease.withdraw_request()
        return False
    finally:
        print("\r\x1b[K", end="", flush=True)

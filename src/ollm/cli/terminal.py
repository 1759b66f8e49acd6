"""`ollm chat` on a terminal: the workspace's sessions to choose from, then the screen, until the person leaves."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import msgspec

from ollm.app import Process
from ollm.cli.line_chat.line_reader import Lines
from ollm.cli.signals import Ending, listening
from ollm.cli.start import Start
from ollm.domain.errors import Exit
from ollm.runtime.base import CommandReply, Conversation

if TYPE_CHECKING:
    from ollm.cli.screen.choice import Choice
    from ollm.cli.screen.screen_options import Look
    from ollm.cli.sessions.session_list import Shelf
    from ollm.config.settings import ScreenSettings

GARBAGE = 2_000  # objects that may be left behind before they are looked for
FIRST_WORDS = """\
Talk to the model about the files here. It asks before it changes anything.
  /help lists the commands · @ attaches a file · ! runs a command of yours
  Enter sends, Alt-Enter makes a new line, Esc stops the model, Ctrl-D leaves
  Type on while it works: what you send waits its turn.
  Everything said is kept: ollm sessions list. What is sent: /context."""


def talk(start: Start) -> int:
    """Talk until the person leaves; the exit code."""
    process = Process(workspace=start.workspace, flags=start.flags, warn=lambda _: None)
    if start.daemon:
        from ollm.cli.remote import refuse_foreign

        refuse_foreign(start)
    from ollm.cli.trust_question import ask_trust

    ask_trust(process.trust, start.workspace)
    return asyncio.run(Terminal(process, start).run())


class Terminal:
    """One person at one terminal, through any number of sessions."""

    def __init__(self, process: Process, start: Start) -> None:
        from ollm.app import WorkspaceScope

        self._process = process
        self._start = start
        self._scope = WorkspaceScope(process, start.workspace)
        self._left: str | None = None
        self._settings = screen_settings(process)
        self._plain = self._settings.plain or wants_plain(process.environment)
        self._lines = Lines()
        self._ending = Ending()

    async def run(self) -> int:
        with listening(self._ending), self._lines.reading() if self._plain else nullcontext():
            try:
                await self._run()
            finally:
                self._scope.close()
                self._say_how_to_resume()
        if self._ending.sentence:
            print(self._ending.sentence)
        return Exit.INTERRUPTED if self._ending.signal else Exit.DONE

    async def _run(self) -> None:
        """Choose a session and talk; then the next one, until the person leaves."""
        if self._to_be_picked() and not await self._picked():
            return
        if not self._plain and not self._process.home.input_history.exists():
            print(FIRST_WORDS)
        one = self._one_plainly if self._plain else self._one_session
        while (after := await one()).follow_up != "exit":
            self._turn_to(after.argument if after.follow_up == "open-session" else None)

    async def _one_plainly(self) -> CommandReply:
        from ollm.cli.line_chat.chat import PlainScreen

        async with self._opened() as conversation:
            return await PlainScreen(conversation, self._lines, self._start.workspace).run(self._ending)

    async def _one_session(self) -> CommandReply:
        from ollm.cli.screen.files import WorkspaceFiles
        from ollm.cli.screen.screen import ChatScreen

        files = WorkspaceFiles(lambda: self._scope.discovery, self._start.workspace)
        screen = ChatScreen(self._look(), files.find, self._pick_another)
        self._ending.attach(screen.leave, lambda: asked_to_close(screen.talking.conversation))
        after = await screen.run(self._opened)
        self._left = screen.left or self._left
        return after

    def _turn_to(self, session: str | None) -> None:
        self._left = None
        self._start = msgspec.structs.replace(self._start, new=session is None, session=session, continue_=False)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Conversation]:
        """The conversation, here or in the daemon; its session is remembered for the last line."""
        async with self._open() as conversation:
            keep_small()
            try:
                yield conversation
            finally:
                self._left = conversation.session_id or self._left

    def _open(self) -> AbstractAsyncContextManager[Conversation]:
        if self._start.daemon:
            from ollm.cli.remote import remote_conversation

            return remote_conversation(self._start)
        from ollm.app import open_conversation

        return open_conversation(self._start.opening())

    def _look(self) -> Look:
        from ollm.cli.screen.resizing import wraps_again
        from ollm.cli.screen.screen_options import Look
        from ollm.config.environment import wants_colour

        return Look(
            history=self._process.home.input_history,
            workspace=self._start.workspace,
            colour=wants_colour(self._process.environment),
            vi=self._settings.keys == "vi",
            bell=self._settings.bell,
            wraps_again=wraps_again(self._process.environment),
        )

    # Choosing a session

    def _to_be_picked(self) -> bool:
        return not (self._start.new or self._start.session or self._start.continue_)

    async def _picked(self) -> bool:
        """Offer the sessions there are; False when the person leaves. The first time there is nothing to ask."""
        choice = await self._choose(without=None)
        if choice is None or choice.action == "new":
            return True
        if choice.action == "leave":
            return False
        self._turn_to(choice.session_id)
        return True

    async def _pick_another(self, current: str | None) -> CommandReply | None:
        choice = await self._choose(without=current)
        if choice is None:
            print("  There is no other session in this workspace.")
            return None
        if choice.action == "leave":
            return None
        if choice.action == "new":
            return CommandReply(follow_up="new-session")
        return CommandReply(follow_up="open-session", argument=choice.session_id or "")

    async def _choose(self, without: str | None) -> Choice | None:
        """None when there is nothing to choose from."""
        shelf = self._shelf()
        lines = [line for line in await shelf.lines() if line.session_id != without]
        if not any(not line.archived for line in lines):
            return None
        if self._plain:
            from ollm.cli.line_chat.picker import choose_plainly

            with self._ending.through(lambda: self._lines.put(None)):
                return await choose_plainly(lines, self._lines)
        from ollm.cli.screen.picker import Picker

        picker = Picker(lines, shelf, colour=self._look().colour)
        with self._ending.through(picker.leave):
            return await picker.choose()

    def _shelf(self) -> Shelf:
        from ollm.cli.sessions.session_list import LocalShelf, RemoteShelf

        return RemoteShelf(self._start) if self._start.daemon else LocalShelf(self._scope)

    def _say_how_to_resume(self) -> None:
        if self._left:
            daemon = " --daemon" if self._start.daemon else ""
            print(f"ollm chat{daemon} --session {self._left[:8]}")
            sys.stdout.flush()


def wants_plain(environment: Mapping[str, str]) -> bool:
    """Whether the terminal can do no more than lines, or the person wants no more."""
    return environment.get("TERM", "dumb") in ("dumb", "") or bool(environment.get("OLLM_PLAIN"))


def keep_small() -> None:
    """Starting is over: what stands need not be looked through again, and what talking leaves behind goes soon."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(GARBAGE)


def asked_to_close(conversation: Conversation | None) -> bool:
    """Whether another process wants this workspace; the daemon looks after that for its own."""
    asked = getattr(conversation, "asked_to_close", None)
    return bool(asked and asked())


def screen_settings(process: Process) -> ScreenSettings:
    """How the screen is to be. Files that do not speak of it are not read: the input line waits for this."""
    from ollm.config.settings import ScreenSettings

    assert process.workspace
    files = (process.home.config, process.workspace / ".ollm" / "config.yaml")
    if not any(file.is_file() and b"screen" in file.read_bytes() for file in files):
        return ScreenSettings()
    return process.loaded.settings.screen

"""The chat as plain lines: for terminals that can do no more, and for screen readers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from ollm.cli.elsewhere import waited_for
from ollm.cli.oneshot import TextPrinter, visible
from ollm.cli.signals import Ending
from ollm.domain.errors import OllmError
from ollm.domain.events import AnyEvent, ConfirmationRequested
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Scope
from ollm.runtime.base import Begun, Conversation

ANSWERS: dict[str, Scope] = {"y": "once", "s": "session", "a": "always"}


class PlainScreen:
    """Reads a line, prints what comes. Ctrl-C stops a turn, and at the prompt it leaves; so does Ctrl-D."""

    def __init__(self, conversation: Conversation, ending: Ending) -> None:
        self._conversation = conversation
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._talking = False
        ending.attach(self._leave, lambda: bool(getattr(conversation, "asked_to_close", lambda: False)()))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self._read)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            await self._talk()
        finally:
            loop.remove_reader(0)

    async def _talk(self) -> None:
        status = await self._conversation.status()
        for notice in status.notices:
            print(visible(notice))
        print(f"{status.model} · window {status.window} · /help lists the commands, Ctrl-D leaves")
        if status.turn_after is not None:
            await self._follow(self._conversation.following(status.turn_after))
        while (text := await self._typed()) is not None:
            if text.strip() in ("/exit", "/quit"):
                return
            if text.strip():
                await self._turn(text)

    async def _typed(self) -> str | None:
        """The next line; a turn that another terminal begins meanwhile is shown."""
        asking = asyncio.ensure_future(self._ask("> "))
        try:
            return await waited_for(asking, self._conversation, self._watch)
        finally:
            asking.cancel()

    async def _watch(self, begun: Begun) -> None:
        print(f"\n(from another terminal) {visible(begun.text)}")
        await self._follow(self._conversation.following(begun.after), asked=False)
        sys.stdout.write("> ")
        sys.stdout.flush()

    async def _turn(self, text: str) -> None:
        await self._follow(self._conversation.turn(text))

    async def _follow(self, turn: AbstractAsyncContextManager[AsyncIterator[AnyEvent]], *, asked: bool = True) -> None:
        """Show a turn; the questions of one that was begun elsewhere are answered there."""
        printer = TextPrinter()
        self._talking = True
        try:
            async with turn as events:
                async for event in events:
                    await self._show(event, printer, asked=asked)
        except OllmError as error:
            print(visible(str(error)))
        finally:
            self._talking = False
        printer.close("")

    async def _show(self, event: AnyEvent, printer: TextPrinter, *, asked: bool) -> None:
        printer.show(event)
        if isinstance(event, ConfirmationRequested) and asked:
            said = await self._ask(question(event.details))
            await self._conversation.respond(event.correlation_id, answer(said, event.details))

    async def _ask(self, prompt: str) -> str | None:
        """A line from the terminal; None when there are no more."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        return await self._lines.get()

    def _read(self) -> None:
        """A terminal gives a whole line at a time."""
        data = os.read(0, 65536)
        for line in data.decode("utf-8", "replace").splitlines() if data else [None]:
            self._lines.put_nowait(line)

    def _interrupt(self) -> None:
        if self._talking:
            print("\n(stopped)")
            self._stopping = asyncio.ensure_future(self._conversation.cancel())
            self._lines.put_nowait("")
        else:
            self._leave()

    def _leave(self) -> None:
        self._lines.put_nowait(None)
        if self._talking:
            self._stopping = asyncio.ensure_future(self._conversation.cancel())


def question(details: ConfirmationDetails) -> str:
    """What is asked, why, and the ways to answer."""
    lines = [f"\n{visible(details.description)} ({details.risk} risk): {visible(details.reason)}"]
    lines += [visible(details.diff)] if details.diff else []
    lines += [f"  {visible(details.command)}"] if details.command else []
    grant = f", [s]ession or [a]lways ({visible(details.grant)})" if details.grant and not details.locked else ""
    return "\n".join([*lines, f"[y]es once{grant}, or why not: "])


def answer(said: str | None, details: ConfirmationDetails) -> ConfirmationAnswer:
    """Anything but a letter that is offered is a no, with what was typed as its reason."""
    word = (said or "").strip()
    scope = ANSWERS.get(word.lower())
    if scope == "once" or (scope and details.grant and not details.locked):
        return ConfirmationAnswer(approved=True, scope=scope)
    return ConfirmationAnswer(approved=False, reason="" if word.lower() in ("n", "no", "") else word)

"""The chat as plain lines: for terminals that can do no more, and for screen readers."""

from __future__ import annotations

import asyncio
import sys

from ollm.cli.oneshot import TextPrinter, visible
from ollm.domain.events import AnyEvent, ConfirmationRequested, TurnFinished
from ollm.domain.tools import ConfirmationAnswer, Scope
from ollm.runtime.base import Conversation

ANSWERS: dict[str, Scope] = {"y": "once", "s": "session", "a": "always"}


class PlainScreen:
    """Reads a line, prints what comes; Ctrl-C stops a turn, Ctrl-D leaves."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def run(self) -> None:
        status = await self._conversation.status()
        print(f"{status.model} · window {status.window} · /help lists the commands, Ctrl-D leaves")
        while (text := await ask("> ")) is not None:
            if text.strip() in ("/exit", "/quit"):
                return
            if text.strip():
                await self._turn(text)

    async def _turn(self, text: str) -> None:
        printer = TextPrinter()
        async with self._conversation.turn(text) as events:
            try:
                async for event in events:
                    await self._show(event, printer)
            except (KeyboardInterrupt, asyncio.CancelledError):
                await self._conversation.cancel()
                print("\n(stopped)")
        printer.close("")

    async def _show(self, event: AnyEvent, printer: TextPrinter) -> None:
        printer.show(event)
        if isinstance(event, ConfirmationRequested):
            await self._conversation.respond(event.correlation_id, await confirm(event))
        if isinstance(event, TurnFinished):
            sys.stdout.flush()


async def confirm(event: ConfirmationRequested) -> ConfirmationAnswer:
    """Show what is asked, and take the answer."""
    details = event.details
    print(f"\n{visible(details.description)} ({details.risk} risk): {visible(details.reason)}")
    if details.diff:
        print(visible(details.diff))
    if details.command:
        print(f"  {details.command}")
    wider = f", [s]ession or [a]lways ({details.grant})" if details.grant and not details.locked else ""
    said = (await ask(f"[y]es once{wider}, or why not: ") or "").strip()
    scope = ANSWERS.get(said.lower())
    if scope is None or (scope != "once" and not wider):
        return ConfirmationAnswer(approved=False, reason="" if said.lower() in ("n", "no", "") else said)
    return ConfirmationAnswer(approved=True, scope=scope)


async def ask(prompt: str) -> str | None:
    """A line from the terminal; None when there are no more."""
    try:
        return await asyncio.to_thread(input, prompt)
    except EOFError:
        return None

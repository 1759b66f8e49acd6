"""`ollm chat` on a terminal: draws the input at once and opens the conversation behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from ollm.cli.start import Start
from ollm.runtime.base import Conversation

FIRST_WORDS = """\
Talk to the model about the files here. It asks before it changes anything.
  /help lists the commands · @ attaches a file · ! runs a command of yours
  Enter sends, Alt-Enter makes a new line, Esc stops the model, Ctrl-D leaves
  Everything said is kept: ollm sessions list. What is sent: /context."""


def talk(start: Start) -> int:
    """Talk until the person leaves; the exit code."""
    return asyncio.run(run(start))


async def run(start: Start) -> int:
    from ollm.config.environment import home, process_environment, wants_colour

    environment = process_environment()
    if environment.get("TERM", "dumb") in ("dumb", "") or environment.get("OLLM_PLAIN"):
        return await run_plain(start)
    from ollm.cli.screen.screen import ChatScreen, Look

    place = home(environment)
    if not place.input_history.exists():
        print(FIRST_WORDS)
    look = Look(
        colour=wants_colour(environment),
        vi="vi" in environment.get("EDITING_MODE", ""),
        history=place.input_history,
        workspace=start.workspace,
    )
    while True:
        left: list[str] = []
        screen = ChatScreen(look, lambda _typed: [])
        after = await screen.run(lambda: opened(start, left))  # noqa: B023 - used within this round
        if after.follow_up == "exit":
            if left:
                print(f"ollm chat --session {left[0][:8]}")
            return 0
        session = after.argument if after.follow_up == "open-session" else None
        start = msgspec.structs.replace(start, new=session is None, session=session, continue_=False)


@asynccontextmanager
async def opened(start: Start, left: list[str]) -> AsyncIterator[Conversation]:
    """The conversation, here or in the daemon; `left` holds the session's id when it is over."""
    from ollm.app import open_conversation

    async with open_conversation(start.opening()) as conversation:
        try:
            yield conversation
        finally:
            if conversation.session_id:
                left.append(conversation.session_id)


async def run_plain(start: Start) -> int:
    from ollm.cli.plain import PlainScreen

    left: list[str] = []
    async with opened(start, left) as conversation:
        await PlainScreen(conversation).run()
    if left:
        print(f"ollm chat --session {left[0][:8]}")
    return 0

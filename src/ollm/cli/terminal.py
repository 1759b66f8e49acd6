"""`ollm chat` on a terminal: opens the conversation and hands it to a screen."""

from __future__ import annotations

import asyncio

from ollm.cli.start import Start


def talk(start: Start) -> int:
    """Talk until the person leaves; the exit code."""
    return asyncio.run(run(start))


async def run(start: Start) -> int:
    from ollm.app import open_conversation
    from ollm.cli.plain import PlainScreen

    async with open_conversation(start.opening()) as conversation:
        await PlainScreen(conversation).run()
        if conversation.session_id:
            print(f"ollm chat --session {conversation.session_id[:8]}")
    return 0

import asyncio
from pathlib import Path

from ollm import ConfirmationAnswer, ConfirmationRequested, ConversationOptions, TurnFinished, open_conversation


async def main() -> None:
    async with open_conversation(ConversationOptions(workspace=Path.cwd(), interactive=True)) as conversation:
        async with conversation.turn("Write hello.txt") as events:
            async for event in events:
                if isinstance(event, ConfirmationRequested):
                    small = len(event.details.diff) < 1_000
                    await conversation.respond(event.correlation_id, ConfirmationAnswer(approved=small))
                elif isinstance(event, TurnFinished):
                    print(event.reason, event.usage.prompt_tokens)


asyncio.run(main())

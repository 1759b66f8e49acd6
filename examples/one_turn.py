import asyncio
from pathlib import Path
from typing import ClassVar

from ollm import ConversationOptions, TextDelta, Tool, ToolContext, ToolResult, open_conversation


class Weather(Tool[None], frozen=True):
    """Say what the weather is like."""

    name: ClassVar[str] = "weather"

    def summary(self) -> str:
        return "Look out of the window"

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        return ToolResult(llm_content="It is raining.")


async def main() -> None:
    async with open_conversation(ConversationOptions(workspace=Path.cwd(), grants=("weather",))) as conversation:
        conversation.add_tool(Weather)
        async with conversation.turn("Do I need an umbrella?") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    print(event.text, end="", flush=True)


asyncio.run(main())

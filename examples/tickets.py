import asyncio
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm import Conversation, ConversationOptions, Tool, ToolContext, ToolResult, open_conversation


class OpenTicket(Tool[None], frozen=True):
    """Open a ticket for the support team."""

    name: ClassVar[str] = "open_ticket"
    strict: ClassVar[bool] = True
    title: Annotated[str, Meta(description="The problem in one line.", max_length=80)]
    urgent: Annotated[bool, Meta(description="Nobody can work until it is solved.")] = False

    def summary(self) -> str:
        return f"Open a ticket: {self.title}"

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        return ToolResult(llm_content=f"Ticket 7 is open: {self.title}.")


async def answer(conversation: Conversation, text: str) -> str:
    conversation.add_tool(OpenTicket)
    said = await conversation.ask(text)
    return f"{said} ({conversation.usage.completion_tokens} tokens, session {conversation.session_id})"


async def serve(text: str) -> None:
    options = ConversationOptions(workspace=Path.cwd(), grants=("open_ticket",), flags={"workspace.sessions": "many"})
    async with open_conversation(options) as conversation:
        print(await answer(conversation, text))


async def main() -> None:
    await asyncio.gather(serve("The printer is on fire."), serve("I forgot my password."))


asyncio.run(main())

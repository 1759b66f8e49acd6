"""A conversation with a scripted server, and short words for what is done with it."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from ollm.domain.events import AnyEvent
from ollm.runtime.conversation import LocalConversation
from tests.servers.openai import ScriptedServer


class Talk:
    def __init__(self, conversation: LocalConversation, server: ScriptedServer, home: Path, workspace: Path) -> None:
        self.conversation, self.server, self.home, self.workspace = conversation, server, home, workspace

    async def say(self, text: str) -> list[AnyEvent]:
        async with self.conversation.turn(text) as events:
            return [event async for event in events]

    async def run(self, line: str) -> Any:
        name, _, rest = line.removeprefix("/").partition(" ")
        return await self.conversation.command(name, rest)

    @property
    def document(self) -> dict[str, Any]:
        (file,) = (self.home / "sessions").glob("*.json")
        found: dict[str, Any] = json.loads(file.read_text())
        return found


Talking = Callable[..., AbstractAsyncContextManager[Talk]]

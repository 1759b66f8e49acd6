"""The tools and instructions of MCP servers join a conversation, turn by turn."""

import msgspec
import pytest

from ollm.runtime.observers.mcp import McpObserver
from ollm.tools.framework.base import ToolSpec
from ollm.tools.framework.deferred_tools import make_find_spec
from tests.runtime.talking import Talking


class Servers:
    """Servers that say they changed, as the real ones do, with tools taken from a list."""

    def __init__(self, instructions: dict[str, str]) -> None:
        self.instructions = instructions
        self.changed = False

    def list_specs(self) -> list[object]:
        return []

    async def before_turn(self) -> bool:
        return self.changed

    async def before_request(self) -> bool:
        return self.changed

    def get_instructions(self) -> dict[str, str]:
        return self.instructions


@pytest.mark.parametrize(("window", "longest"), [(32_768, 1_000), (8_192, 512)])
async def test_what_servers_say_of_themselves_is_an_entry_within_its_share(
    talking: Talking, window: int, longest: int
) -> None:
    async with talking([]) as talk:
        parts = talk.conversation.parts
        parts.state.model.window = window
        observer = McpObserver(Servers({"long": "x" * 5000, "short": "Use me."}), parts)  # type: ignore[arg-type]

        await observer.before_turn("hello")

        told = {entry.key: entry.content for entry in parts.prompt.entries.get_context_by_source("extension")}
        assert told == {
            "mcp.long": "The MCP server long says: " + "x" * longest,
            "mcp.short": "The MCP server short says: Use me.",
        }


async def test_tools_that_a_server_no_longer_has_are_taken_out(talking: Talking) -> None:
    async with talking([]) as talk:
        parts = talk.conversation.parts
        servers = Servers({})
        observer = McpObserver(servers, parts)  # type: ignore[arg-type]
        observer._registered = {"ls"}
        assert parts.registry.get().get("ls") is not None
        await observer.before_request()
        assert parts.registry.get().get("ls") is not None
        servers.changed = True

        await observer.before_request()

        assert parts.registry.get().get("ls") is None
        assert observer._registered == set()


async def test_tools_that_came_join_before_a_turn_and_before_a_request(talking: Talking) -> None:
    def make(name: str) -> ToolSpec:
        return msgspec.structs.replace(make_find_spec(list), name=name, category=None, description="Reach far.")

    async with talking([]) as talk:
        parts, servers = talk.conversation.parts, Servers({})
        observer = McpObserver(servers, parts)  # type: ignore[arg-type]
        for name, join in (("far_one", lambda: observer.before_turn("hello")), ("far_two", observer.before_request)):
            servers.list_specs = lambda name=name: [make(name)]  # type: ignore[method-assign]
            servers.changed = False
            await join()
            assert parts.registry.get().get(name) is None
            servers.changed = True
            await join()
            assert parts.registry.get().get(name) is not None
            assert name in {tool.name for tool in parts.prompt.tools}
        assert parts.registry.get().get("far_one") is None

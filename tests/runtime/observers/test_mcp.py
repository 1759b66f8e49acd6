"""The tools and instructions of MCP servers join a conversation, turn by turn."""

from ollm.runtime.observers.mcp import MAX_INSTRUCTION_CHARACTERS, McpObserver
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


async def test_what_servers_say_of_themselves_is_an_entry_within_its_share(talking: Talking) -> None:
    async with talking([]) as talk:
        parts = talk.conversation.parts
        observer = McpObserver(Servers({"long": "x" * 5000, "short": "Use me."}), parts)  # type: ignore[arg-type]

        await observer.before_turn("hello")

        told = {entry.key: entry.content for entry in parts.prompt.entries.get_context_by_source("extension")}
        longest = min(MAX_INSTRUCTION_CHARACTERS, parts.state.model.window // 16)
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

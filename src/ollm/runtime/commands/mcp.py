"""`/mcp`: the MCP servers of this conversation, and the prompts they bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.errors import UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import CommandTable, make_usage_error, render_table, split_words
from ollm.runtime.commands.needs import McpNeeds

if TYPE_CHECKING:
    from ollm.extensions.mcp.servers import McpServerState

USAGE = "[SERVER PROMPT [NAME=VALUE...]]"


def register_commands(commands: CommandTable) -> None:
    commands.register("mcp", "List MCP servers, or send one of their prompts.", usage=USAGE)(mcp)


async def mcp(conversation: McpNeeds, arguments: str) -> CommandReply:
    servers = conversation.mcp
    if servers is None:
        return CommandReply(text="No MCP servers configured. Add one with `ollm mcp add`.", data=[])
    if not arguments.strip():
        states = servers.list_states()
        shown = {tool.name for tool in conversation.prompt.tools}
        rows = [(state.server.name, describe_state(state), describe_offers(state, shown)) for state in states]
        return CommandReply(
            text=render_table(("server", "state", "offers"), rows),
            data=[state_to_json(state, shown) for state in states],
        )
    named = split_words(arguments, 3)
    if len(named) < 2:
        raise make_usage_error("mcp", USAGE)
    text = await servers.get_prompt(named[0], named[1], parse_pairs(named[2] if len(named) > 2 else ""))
    return CommandReply(follow_up="send", argument=text)


def parse_pairs(text: str) -> dict[str, str]:
    """`name=value` words, quoted as in a shell."""
    import shlex

    try:
        found = [word.partition("=") for word in shlex.split(text)]
    except ValueError as error:
        raise UsageError(f"The arguments cannot be read: {error}.") from error
    if any(not equals for _, equals, _ in found):
        raise make_usage_error("mcp", USAGE)
    return {name: value for name, _, value in found}


def describe_state(state: McpServerState) -> str:
    if state.failure:
        return state.failure
    return "running" if state.connected else "starts on demand"


def describe_offers(state: McpServerState, shown: set[str]) -> str:
    """Tools the model sees by name; those it has to find are counted."""
    found = state.catalogue
    if found is None:
        return "not connected yet"
    prompts = [f"/mcp {state.server.name} {prompt.name}" for prompt in found.prompts]
    resources = ["resources"] if found.resources else []
    seen = [tool.name for tool in found.tools if tool.name in shown]
    hidden = len(found.tools) - len(seen)
    found_later = [f"{hidden} more by find_tool (no room in the window, or denied)"] if hidden else []
    return ", ".join([*seen, *found_later, *resources, *prompts]) or "nothing"


def state_to_json(state: McpServerState, shown: set[str]) -> dict[str, object]:
    found = state.catalogue
    return {
        "name": state.server.name,
        "connected": state.connected,
        "failure": state.failure or None,
        "tools": [tool.name for tool in found.tools] if found else [],
        "hidden": [tool.name for tool in found.tools if tool.name not in shown] if found else [],
        "prompts": [prompt.name for prompt in found.prompts] if found else [],
        "resources": found.resources if found else False,
    }

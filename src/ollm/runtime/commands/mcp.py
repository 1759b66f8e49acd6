"""`/mcp`, `/resource` and `/SERVER:PROMPT`: the MCP servers of this conversation, their resources and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ollm.domain.errors import UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import WrongUsage, fence_text, render_table, slash_command

if TYPE_CHECKING:
    from ollm.extensions.mcp.catalogue import OfferedPrompt
    from ollm.extensions.mcp.servers import McpServers, McpServerState
    from ollm.runtime.parts import ConversationParts


@slash_command("mcp", usage="[SERVER PROMPT [NAME=VALUE...]]")
async def mcp(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List MCP servers, or send one of their prompts.

    A prompt becomes your next message; `/SERVER:PROMPT` is the same. Add servers with `ollm mcp add`."""
    servers = conversation.mcp
    if servers is None:
        return CommandReply(text="No MCP servers configured. Add one with `ollm mcp add`.", data=[])
    if not arguments.strip():
        states = servers.list_states()
        shown = {tool.name for tool in conversation.prompt.tools}
        now = [state.failure or ("running" if state.connected else "starts on demand") for state in states]
        rows = [(one.server.name, how, describe_offers(one, shown)) for one, how in zip(states, now, strict=True)]
        return CommandReply(
            text=render_table(("server", "state", "offers"), rows),
            data=[render_state(state, shown) for state in states],
        )
    named = arguments.split(None, 2)
    if len(named) < 2:
        raise WrongUsage
    return await send_prompt(servers, named[0], named[1], named[2] if len(named) > 2 else "")


async def send_prompt(servers: McpServers, server: str, prompt: str, arguments: str) -> CommandReply:
    """A prompt of a server as the next message; values without a name are given in the order of its arguments."""
    takes = servers.list_prompt_arguments(server, prompt)
    text = await servers.get_prompt(server, prompt, parse_pairs(arguments, takes))
    return CommandReply(follow_up="send", argument=text)


@slash_command("resource", usage="[SERVER URI]", during_turn=True)
async def resource(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List resources of MCP servers, or show one.

    `@SERVER:URI` in a message attaches a resource to it."""
    servers = conversation.mcp
    if servers is None:
        return CommandReply(text="No MCP servers configured. Add one with `ollm mcp add`.", data=[])
    named = arguments.split(None, 1)
    if not named:
        found = servers.list_resources()
        lines = [f"- @{name}" for name in found]
        text = "\n".join(["Name one in a message to attach it:", "", *lines]) if found else "No resources known yet."
        return CommandReply(text=text, data=found)
    if len(named) < 2:
        raise WrongUsage
    text = await servers.read_resource(*named)
    return CommandReply(text=fence_text(text), data=text)


def describe_prompts(servers: McpServers) -> list[tuple[str, str]]:
    """Every prompt that is known, as a command with its arguments, and what it is for."""
    return [
        (render_prompt_command(state.server.name, prompt), prompt.description or f"a prompt of {state.server.name}")
        for state in servers.list_states()
        if state.catalogue is not None
        for prompt in state.catalogue.prompts
    ]


def render_prompt_command(server: str, prompt: OfferedPrompt) -> str:
    """Render what a person types to send a prompt."""
    arguments = [f"{name}=…" if name in prompt.required else f"[{name}=…]" for name in prompt.arguments]
    return " ".join([f"/{server}:{prompt.name}", *arguments])


def parse_pairs(text: str, takes: Sequence[str] = ()) -> dict[str, str]:
    """`name=value` words, quoted as in a shell; a word without a name is for the next of `takes` that has none."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The arguments cannot be read: {error}.") from error
    named = dict(word.split("=", 1) for word in words if is_named(word, takes))
    free = [name for name in takes if name not in named]
    plain = [word for word in words if not is_named(word, takes)]
    if len(plain) > len(free):
        raise UsageError(
            f"{plain[len(free)]!r} has no argument to go to.",
            action=f"It takes {', '.join(takes) or 'no arguments'}; write them as NAME=VALUE.",
        )
    return {**named, **dict(zip(free, plain, strict=False))}


def is_named(word: str, takes: Sequence[str]) -> bool:
    """Return True if a word is `name=value`; if the names are known, only for one of them."""
    name, equals, _ = word.partition("=")
    return bool(equals) and (name in takes or name.isidentifier())


def describe_offers(state: McpServerState, shown: set[str]) -> str:
    """Tools the model sees by name; those it has to find are counted."""
    found = state.catalogue
    if found is None:
        return "not connected yet"
    prompts = [f"/{state.server.name}:{prompt.name}" for prompt in found.prompts]
    resources = ["resources"] if found.resources else []
    seen = [tool.name for tool in found.tools if tool.name in shown]
    hidden = len(found.tools) - len(seen)
    found_later = [f"{hidden} more by find_tool (no room in the window, or denied)"] if hidden else []
    return ", ".join([*seen, *found_later, *resources, *prompts]) or "nothing"


def render_state(state: McpServerState, shown: set[str]) -> dict[str, object]:
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

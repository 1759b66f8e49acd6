"""One tool run by hand, through the same dispatch, policy and limits as a model's calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.conversation import ConversationScope
from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import NotFoundError

if TYPE_CHECKING:
    from ollm.app.toolbox import Toolbox
    from ollm.domain.events import Event
    from ollm.domain.messages import JsonObject, ToolCall
    from ollm.domain.tools import ToolCallRecord
    from ollm.runtime.base import ConversationOptions
    from ollm.runtime.calls.permission import Asker
    from ollm.tools.framework.base import ToolRegistry, ToolSpec


async def run_tool_call(
    options: ConversationOptions, call: ToolCall, emit: Callable[[Event], None], asker: Asker | None = None
) -> ToolCallRecord:
    """One call as a conversation would run it: the same policy and limits, but nothing is recorded."""
    import msgspec

    from ollm.runtime.calls.dispatch import Dispatch

    process = ProcessScope(workspace=options.workspace, flags=options.flags)
    async with AsyncExitStack() as stack:
        scope = WorkspaceScope(process, options.workspace)
        stack.callback(scope.close)
        toolbox = ConversationScope(scope, options, stack).toolbox
        await discover_mcp_tool(toolbox, call.name)
        services = toolbox.create_call_services()
        services = msgspec.structs.replace(services, record=discard_record, emit=emit, asker=asker or services.asker)
        dispatch = Dispatch(services)
        stack.push_async_callback(dispatch.close)
        (record,) = await dispatch.run([call], 0)
        return record


async def discover_mcp_tool(toolbox: Toolbox, name: str) -> None:
    """Ask MCP servers what they offer when a tool is named that might be one of theirs."""
    if toolbox.mcp and "__" in name and toolbox.registry.get(name) is None and await toolbox.mcp.before_turn():
        for spec in toolbox.mcp.list_specs():
            toolbox.registry.register(spec)
    for state in toolbox.mcp.list_states() if toolbox.mcp else ():
        if state.failure and name.startswith(f"{state.server.name}__"):
            raise NotFoundError(f"Cannot run {name}. {state.failure}")


def create_tool_registry(workspace: Path, process: ProcessScope | None = None) -> ToolRegistry:
    """The tools a conversation in this workspace would have."""
    from ollm.runtime.base import ConversationOptions

    scope = WorkspaceScope(process or ProcessScope(workspace=workspace), workspace)
    return ConversationScope(scope, ConversationOptions(workspace=workspace), AsyncExitStack()).toolbox.registry


async def discard_record(_record: ToolCallRecord) -> None:
    """There is no session to keep it in."""


def serialize_tools(specs: Iterable[ToolSpec]) -> list[JsonObject]:
    """Tools as JSON, with what a person wants to know of them."""
    return [
        {
            "name": spec.name,
            "description": spec.description,
            "risk": spec.risk,
            "readsOnly": spec.reads_only,
            "parameters": spec.parameters,
        }
        for spec in specs
    ]

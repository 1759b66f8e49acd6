"""A server's tools as the registry holds them: under the same policy, limits and cancellation as ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ollm.domain.counting import format_count
from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationDetails, FileChange, Location, Risk, ToolResult, Verdict
from ollm.extensions.mcp.catalogue import READ_RESOURCE, Catalogue, OfferedTool
from ollm.extensions.mcp.settings import McpServer
from ollm.tools.framework.base import ToolContext, ToolSpec, build_confirmation

MAX_SUMMARY_CHARACTERS = 2_000
MAX_SHOWN_CHARACTERS = 20_000

Run = Callable[[JsonObject, Callable[[str], None]], Awaitable[ToolResult]]  # the arguments, and where progress goes

RESOURCE_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "Resource to read; omit to list them."}},
}


class McpInvocation(Data, frozen=True):
    """A call of a server's tool. What it touches is not known: the server decides that."""

    spec_name: str
    params: JsonObject
    work: Run

    def summary(self) -> str:
        """The whole call, as the server would get it: nobody here knows which argument matters."""
        arguments = msgspec.json.encode(self.params).decode()
        left = len(arguments) - MAX_SUMMARY_CHARACTERS
        shown = (
            arguments if left <= 0 else f"{arguments[:MAX_SUMMARY_CHARACTERS]}… {format_count(left, 'more character')}"
        )
        return f"{self.spec_name} {shown}"

    def locations(self) -> list[Location]:
        return []

    def confirmation(self, verdict: Verdict) -> ConfirmationDetails | None:
        return build_confirmation(self.spec_name, self.describe_whole(), self.locations(), verdict)

    def describe_whole(self) -> str:
        """The call with all of its arguments, as far as a screen can take them; what is left out is told."""
        arguments = msgspec.json.format(msgspec.json.encode(self.params), indent=2).decode()
        if len(arguments) <= MAX_SHOWN_CHARACTERS:
            return f"{self.spec_name} {arguments}"
        half, left = MAX_SHOWN_CHARACTERS // 2, len(arguments) - MAX_SHOWN_CHARACTERS
        gap = f"… {left:,} characters are left out here; `ollm sessions view` shows them all …"
        return f"{self.spec_name} {arguments[:half]}\n{gap}\n{arguments[-half:]}"

    async def preview(self, context: ToolContext) -> str:
        return ""

    async def list_changes(self, context: ToolContext) -> tuple[FileChange, ...]:
        return ()

    async def run(self, context: ToolContext) -> ToolResult:
        return await self.work(self.params, context.emit)


def build_specs(server: McpServer, found: Catalogue, call: Callable[[OfferedTool], Run], read: Run) -> list[ToolSpec]:
    """One spec a tool, and one that reads resources where there are any. All of them ask unless a rule says more."""
    specs = [_build_spec(server, tool.name, tool.description, tool.parameters, call(tool)) for tool in found.tools]
    name = f"{server.name}__{READ_RESOURCE}"
    if found.resources and all(spec.name != name for spec in specs):
        description = f"Read a resource of {server.name}, or list them."
        specs.append(_build_spec(server, name, description, RESOURCE_PARAMETERS, read))
    return specs


def _build_spec(server: McpServer, name: str, description: str, parameters: JsonObject, run: Run) -> ToolSpec:
    def parse(arguments: Any) -> McpInvocation:
        return McpInvocation(name, check_arguments(name, arguments, parameters), run)

    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        parse=parse,
        risk=Risk.MEDIUM,
        keep="ends",
        identity=fingerprint_tool(server, name, parameters),
    )


def fingerprint_tool(server: McpServer, name: str, parameters: JsonObject) -> str:
    """What a grant for a tool is bound to: the program or address of its server, and what it takes."""
    from hashlib import sha256

    facts = [server.command, *server.args, server.url, name, parameters]
    return sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:16]


def check_arguments(name: str, arguments: Any, parameters: Mapping[str, Any]) -> JsonObject:
    """The arguments as an object with nothing missing and nothing unknown; the rest is for the server to say."""
    given = arguments if arguments is not None else {}
    if isinstance(given, str):
        with suppress(msgspec.DecodeError, RecursionError):
            given = msgspec.json.decode(given)
    if not isinstance(given, dict):
        raise ToolFailure("ValidationError", f"{name} was not run: the arguments must be a JSON object.")
    properties = parameters.get("properties")
    known = properties if isinstance(properties, dict) else {}
    required = parameters.get("required")
    missing = [key for key in required if key not in given] if isinstance(required, list) else []
    unknown = [key for key in given if key not in known] if parameters.get("additionalProperties") is False else []
    lines = [f"- {key}: is missing." for key in missing]
    lines += [f"- {key}: no such parameter; available: {', '.join(known) or 'none'}." for key in unknown]
    if lines:
        raise ToolFailure("ValidationError", "\n".join([f"{name} was not run: its arguments are wrong.", *lines]))
    return given

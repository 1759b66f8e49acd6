"""A server's offers, cut to a safe size and cached for the next start."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import Clock, format_stamp, now, parse_stamp
from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.text import cut_middle, shorten_line
from ollm.domain.tools import ConfirmationDetails, Risk, ToolResult, Verdict
from ollm.extensions.mcp.results import FAULT_KEY
from ollm.extensions.mcp.settings import McpServer
from ollm.providers.base import parse_arguments
from ollm.system.atomic import read_json, write_private_file
from ollm.tools.framework.base import Invocation, Tool, ToolContext, ToolSpec, build_confirmation
from ollm.tools.framework.output import clean_text

if TYPE_CHECKING:
    from mcp import Client

MAX_TOOLS = 128
MAX_PAGES = 20
MAX_DESCRIPTION_CHARACTERS = 1_000
MAX_NAME_CHARACTERS = 64
FRESH_SECONDS = 3600.0
READ_RESOURCE = "read_resource"
_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


class OfferedTool(Data, frozen=True):
    """A tool of a server. `name` is for models, `remote` for the server."""

    name: str
    remote: str
    description: str
    parameters: dict[str, Any]


class OfferedPrompt(Data, frozen=True):
    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


class Catalogue(Data, frozen=True):
    """A server's offers. `resources`: True if there are any to read; `uris`: the listed ones. `instructions` is the
    server's description of itself. `left_out` are sentences on the rejected offers, with reasons."""

    tools: tuple[OfferedTool, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    resources: bool = False
    uris: tuple[str, ...] = ()
    instructions: str = ""
    left_out: tuple[str, ...] = ()
    timestamp: str = ""
    hung: bool = False  # It did not answer at its last start, and nothing is known of it.


async def fetch_catalogue(client: Client, server: McpServer, clock: Clock = now) -> Catalogue:
    can = client.server_capabilities
    tools, ended = await _fetch_pages(client.list_tools, "tools") if can.tools else ([], "")
    prompts, _ = await _fetch_pages(client.list_prompts, "prompts") if can.prompts else ([], "")
    uris, templates = await fetch_resource_names(client) if can.resources else ((), ())
    taken, left_out = select_tools(server, tools)
    return Catalogue(
        tools=taken,
        prompts=tuple(_build_prompt(prompt) for prompt in prompts[:MAX_TOOLS]),
        resources=bool(uris or templates),
        uris=uris[:MAX_TOOLS],
        instructions=_shorten_line(client.instructions or "", MAX_DESCRIPTION_CHARACTERS),
        left_out=(*left_out, f"The list of tools of the MCP server {server.name} {ended}.") if ended else left_out,
        timestamp=format_stamp(clock()),
    )


async def fetch_resource_names(client: Client) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fetch the URIs of all resources, and the templates of generated ones."""
    listed, _ = await _fetch_pages(client.list_resources, "resources")
    try:
        templates, _ = await _fetch_pages(client.list_resource_templates, "resource_templates")
    except Exception:  # noqa: BLE001 - many servers have resources and do not know this request
        templates = []
    return tuple(str(item.uri) for item in listed), tuple(str(item.uri_template) for item in templates)


async def _fetch_pages(ask: Callable[..., Awaitable[Any]], field: str) -> tuple[list[Any], str]:
    """Fetch all pages; returns the entries, and an error if the list does not end."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor or len(found) > MAX_TOOLS:
            return found, ""
    return found, f"has more than {MAX_PAGES} pages; the rest are skipped"


def select_tools(server: McpServer, tools: list[Any]) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """Select usable tools with unique names; returns them and a sentence for each rejected tool."""
    taken: dict[str, OfferedTool] = {}
    left_out: list[str] = []
    wanted = [tool for tool in tools if server.offers(tool.name)]
    for tool in wanted[:MAX_TOOLS]:
        name = make_tool_name(server.name, tool.name)
        fault = "its name is already taken" if name in taken else tool.input_schema.get(FAULT_KEY)
        if fault:
            left_out.append(f"{_shorten_line(tool.name, 60)} of the MCP server {server.name} was skipped: {fault}.")
            continue
        description = _shorten_line(tool.description or tool.title or tool.name, MAX_DESCRIPTION_CHARACTERS)
        taken[name] = OfferedTool(name=name, remote=tool.name, description=description, parameters=tool.input_schema)
    if len(wanted) > MAX_TOOLS:
        left_out.append(f"The MCP server {server.name} has more than {MAX_TOOLS} tools; the rest are skipped.")
    return tuple(taken.values()), tuple(left_out)


def make_tool_name(server: str, tool: str) -> str:
    """Make `server__tool` from letters every model server accepts. A changed or cut name ends in its hash."""
    name = f"{server}__{_INVALID_NAME_CHARACTERS.sub('_', tool)}"
    if name == f"{server}__{tool}" and len(name) <= MAX_NAME_CHARACTERS and tool:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: MAX_NAME_CHARACTERS - 9]}_{digest}"


def _build_prompt(prompt: Any) -> OfferedPrompt:
    arguments = prompt.arguments or []
    return OfferedPrompt(
        name=prompt.name,
        description=_shorten_line(prompt.description or "", MAX_DESCRIPTION_CHARACTERS),
        arguments=tuple(argument.name for argument in arguments),
        required=tuple(argument.name for argument in arguments if argument.required),
    )


def _shorten_line(text: str, longest: int) -> str:
    return shorten_line(clean_text(text[: longest * 2]), longest)


class CatalogueFile:
    """Latest known offers of servers. May be deleted at any time; the servers are then queried again."""

    def __init__(self, file: Path, clock: Clock = now) -> None:
        self._file = file
        self._clock = clock
        self._catalogues: dict[str, Catalogue] | None = None  # It is read once, because a start asks for every server.

    def get(self, server: McpServer) -> Catalogue | None:
        if self._catalogues is None:
            self._catalogues = self._read_all()
        return self._catalogues.get(_make_key(server))

    def is_fresh(self, found: Catalogue) -> bool:
        try:
            return 0 <= (self._clock() - parse_stamp(found.timestamp)).total_seconds() < FRESH_SECONDS
        except ValueError:
            return False

    def note_hang(self, server: McpServer) -> None:
        """Record that a server did not answer, so that the next start does not wait for it."""
        if (self.get(server) or Catalogue(hung=True)).hung:
            self.put(server, Catalogue(hung=True, timestamp=format_stamp(self._clock())))

    def put(self, server: McpServer, found: Catalogue) -> None:
        others = {key: kept for key, kept in self._read_all().items() if not key.startswith(f"{server.name}:")}
        self._catalogues = None
        write_private_file(self._file, msgspec.json.encode({**others, _make_key(server): found}))

    def _read_all(self) -> dict[str, Catalogue]:
        return read_json(self._file, dict[str, Catalogue], {})


def _make_key(server: McpServer) -> str:
    """Identify a server by its configuration. The digest hides its variables."""
    return f"{server.name}:{hashlib.sha256(msgspec.json.encode(server)).hexdigest()[:16]}"


MAX_SUMMARY_CHARACTERS = 2_000
MAX_SHOWN_CHARACTERS = 20_000

Run = Callable[
    [JsonObject, Callable[[str], None]], Awaitable[ToolResult]
]  # The second argument takes lines about the progress.

RESOURCE_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "Resource to read; omit to list them."}},
}


class McpCall(Tool[Run], frozen=True):
    """A call of a server's tool. Its effects are unknown to ollm."""

    spec_name: str
    arguments: JsonObject

    def list_parameters(self) -> JsonObject:
        return self.arguments

    def summary(self) -> str:
        """The call in one line, with as many arguments as fit, because the important one is unknown."""
        return f"{self.spec_name} {shorten_line(msgspec.json.encode(self.arguments).decode(), MAX_SUMMARY_CHARACTERS)}"

    def confirmation(self, verdict: Verdict) -> ConfirmationDetails | None:
        """Ask about the call with all its arguments, or the beginning and the end of very long ones."""
        text = msgspec.json.format(msgspec.json.encode(self.arguments), indent=2).decode()
        description = f"{self.spec_name} {cut_middle(text, MAX_SHOWN_CHARACTERS)}"
        return build_confirmation(self.spec_name, description, self.locations(), verdict)

    async def run(self, context: ToolContext, needs: Run) -> ToolResult:
        return await needs(self.arguments, context.emit)


def build_specs(server: McpServer, found: Catalogue, call: Callable[[OfferedTool], Run], read: Run) -> list[ToolSpec]:
    """Build a spec for each tool, and one to read resources. All need confirmation unless a rule allows them."""
    specs = [_build_spec(server, tool.name, tool.description, tool.parameters, call(tool)) for tool in found.tools]
    name = f"{server.name}__{READ_RESOURCE}"
    if found.resources and all(spec.name != name for spec in specs):
        description = f"Read a resource of {server.name}, or list them."
        specs.append(_build_spec(server, name, description, RESOURCE_PARAMETERS, read))
    return specs


def _build_spec(server: McpServer, name: str, description: str, parameters: JsonObject, run: Run) -> ToolSpec:
    def parse(arguments: Any) -> Invocation:
        return Invocation(McpCall(spec_name=name, arguments=check_arguments(name, arguments, parameters)), run)

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
    """Return the identity a grant for a tool is bound to: its server's program or address, and its parameters."""
    facts = [server.command, *server.args, server.url, name, parameters]
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:16]


def check_arguments(name: str, arguments: Any, parameters: Mapping[str, Any]) -> JsonObject:
    """Check that the arguments are an object with none missing or unknown. The server checks the rest."""
    given = parse_arguments(arguments) if isinstance(arguments, str | None) else arguments
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

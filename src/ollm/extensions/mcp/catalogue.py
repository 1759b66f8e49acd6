"""What a server offers, cut to a size that does no harm, and kept so that the next start need not ask."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import Clock, format_stamp, now, parse_stamp
from ollm.domain.struct import Data
from ollm.extensions.mcp.schemas import prepare_schema
from ollm.extensions.mcp.settings import McpServer
from ollm.system.small_files import read_small_file
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
    """`name` is what models call it, `remote` what the server does."""

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
    """`resources`: whether there are any to read; `uris`: those that are listed. `instructions` is what the server says
    about itself. `left_out` says in sentences what was not taken, and why."""

    tools: tuple[OfferedTool, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    resources: bool = False
    uris: tuple[str, ...] = ()
    instructions: str = ""
    left_out: tuple[str, ...] = ()
    timestamp: str = ""


async def fetch_catalogue(client: Client, server: McpServer, clock: Clock = now) -> Catalogue:
    """Everything the server says it has."""
    can = client.server_capabilities
    tools, ended = await _fetch_pages(client.list_tools, "tools") if can.tools else ([], "")
    prompts, _ = await _fetch_pages(client.list_prompts, "prompts") if can.prompts else ([], "")
    uris, templates = await fetch_resource_names(client) if can.resources else ((), ())
    taken, left_out = await asyncio.to_thread(select_tools, server, tools)
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
    """The URIs of all resources, and the templates of those that are made when they are asked for."""
    listed, _ = await _fetch_pages(client.list_resources, "resources")
    try:
        templates, _ = await _fetch_pages(client.list_resource_templates, "resource_templates")
    except Exception:  # noqa: BLE001 - many servers have resources and do not know this request
        templates = []
    return tuple(str(item.uri) for item in listed), tuple(str(item.uri_template) for item in templates)


async def _fetch_pages(ask: Callable[..., Awaitable[Any]], field: str) -> tuple[list[Any], str]:
    """The entries of all pages, and what is wrong with the list where it does not come to an end."""
    found: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor or len(found) > MAX_TOOLS:
            return found, ""
        if cursor in seen:
            return found, "starts over instead of ending; each tool is used once"
        seen.add(cursor)
    return found, f"has more than {MAX_PAGES} pages; the rest are skipped"


def select_tools(server: McpServer, tools: list[Any]) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """The tools that can be used under names of their own, and a sentence for each that cannot."""
    taken: dict[str, OfferedTool] = {}
    left_out: list[str] = []
    wanted = [tool for tool in tools if server.offers(tool.name)]
    for tool in wanted[:MAX_TOOLS]:
        name = make_tool_name(server.name, tool.name)
        parameters, fault = prepare_schema(tool.input_schema)
        fault = "its name is already taken" if name in taken else fault
        if fault:
            left_out.append(f"{_shorten_line(tool.name, 60)} of the MCP server {server.name} was skipped: {fault}.")
            continue
        description = _shorten_line(tool.description or tool.title or tool.name, MAX_DESCRIPTION_CHARACTERS)
        taken[name] = OfferedTool(name=name, remote=tool.name, description=description, parameters=parameters)
    if len(wanted) > MAX_TOOLS:
        left_out.append(f"The MCP server {server.name} has more than {MAX_TOOLS} tools; the rest are skipped.")
    return tuple(taken.values()), tuple(left_out)


def make_tool_name(server: str, tool: str) -> str:
    """`server__tool`, in letters every model server takes; one that had to be changed or cut ends in its hash."""
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
    line = " ".join(clean_text(text[: longest * 2]).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class CatalogueFile:
    """What servers offered when they were last asked. May be deleted at any time; each server is then asked again."""

    def __init__(self, file: Path, clock: Clock = now) -> None:
        self._file = file
        self._clock = clock
        self._read: dict[str, Catalogue] | None = None  # what was read first: a start asks for every server

    def get(self, server: McpServer) -> Catalogue | None:
        if self._read is None:
            self._read = self._read_all()
        return self._read.get(_make_key(server))

    def is_fresh(self, found: Catalogue) -> bool:
        try:
            return 0 <= (self._clock() - parse_stamp(found.timestamp)).total_seconds() < FRESH_SECONDS
        except ValueError:
            return False

    def put(self, server: McpServer, found: Catalogue) -> None:
        from ollm.system.atomic import make_private_directory, replace_file

        others = {key: kept for key, kept in self._read_all().items() if not key.startswith(f"{server.name}:")}
        self._read = None
        make_private_directory(self._file.parent)
        replace_file(self._file, msgspec.json.encode({**others, _make_key(server): found}))

    def _read_all(self) -> dict[str, Catalogue]:
        try:
            return msgspec.json.decode(read_small_file(self._file), type=dict[str, Catalogue])
        except (OSError, msgspec.DecodeError, RecursionError):
            return {}


def _make_key(server: McpServer) -> str:
    """A server that is configured otherwise is another one; the digest keeps its variables to itself."""
    return f"{server.name}:{hashlib.sha256(msgspec.json.encode(server)).hexdigest()[:16]}"

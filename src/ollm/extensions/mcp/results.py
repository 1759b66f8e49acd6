"""Validated and size-limited schemas and results of MCP servers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from ollm.domain.messages import PICTURE_TYPES, ImagePart, JsonObject
from ollm.domain.tools import ErrorInfo, ToolResult
from ollm.providers.base import unescape_surrogates
from ollm.tools.framework.output import disarm_template_marks

MAX_IMAGES = 4
MAX_IMAGE_CHARACTERS = 4 * 1024 * 1024
MAX_TEXT_CHARACTERS = 2 * 1024 * 1024


def mend_answer(answer: Any) -> dict[str, Any]:
    """Make an answer to a call readable for the SDK: its parts become texts and images."""
    found = answer if isinstance(answer, dict) else {"content": answer}
    if found.get("resultType") == "input_required":
        return found  # It is a question, which the SDK asks.
    content, structured = found.get("content"), found.get("structuredContent")
    blocks = content if isinstance(content, list) else [content]
    if structured is not None and not any(map(_render_block, blocks)):
        blocks = [structured]
    told = {
        "resultType": "complete",
        "isError": found.get("isError") is True,
    }  # MCP requires `resultType` since 2026-07-28.
    return {**told, "content": [_mend_block(block) for block in blocks]}


def _mend_block(block: Any) -> dict[str, Any]:
    match block:
        case {"type": "image", "data": str(data), "mimeType": str(media)}:
            return {"type": "image", "data": data, "mimeType": media}
    return {"type": "text", "text": _render_block(block)}


def _render_block(block: Any) -> str:
    """Render a part of an answer as text; one that is not text is named."""
    match block:
        case None:
            return ""
        case str(text) | {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(data), **rest}}:
            return f"[{uri}: {rest.get('mimeType') or 'not text'}, about {len(data) * 3 // 4:,} bytes]"
        case {"type": "resource_link", "name": str(name), "uri": str(uri)}:
            return f"[{name}: {uri}]"
        case {"type": "image" | "audio" as kind, "data": str(data), "mimeType": str(media)}:
            return f"[{kind}, {media}, about {len(data) * 3 // 4:,} bytes]"
    return msgspec.json.encode(block).decode()


def build_result(answer: Any) -> ToolResult:
    """Convert an answer to a tool result with its text and images."""
    blocks = dump_models(answer.content)
    text = extract_text(blocks) or "(no output)"
    if answer.is_error:
        error = ErrorInfo(type="McpError", message=text[:1_000])
        return ToolResult(llm_content=f"Error McpError: {text}", return_display=text, error=error)
    return ToolResult(llm_content=text, return_display=text, images=extract_images(blocks))


def dump_models(models: Iterable[Any]) -> list[JsonObject]:
    """Convert objects of the SDK to JSON objects."""
    return [model.model_dump(mode="json", by_alias=True) for model in models]


def extract_text(blocks: Iterable[JsonObject]) -> str:
    """Extract the text of blocks; name blocks of other types."""
    return disarm_template_marks("\n".join(filter(None, map(_render_block, blocks)))[:MAX_TEXT_CHARACTERS])


def extract_images(blocks: Iterable[JsonObject]) -> tuple[ImagePart, ...]:
    pictures = [block for block in blocks if block["type"] == "image" and _can_be_sent(block)]
    return tuple(ImagePart(media_type=one["mimeType"].lower(), data=one["data"]) for one in pictures[:MAX_IMAGES])


def _can_be_sent(block: JsonObject) -> bool:
    import base64
    import binascii

    if len(block["data"]) > MAX_IMAGE_CHARACTERS or block["mimeType"].lower() not in PICTURE_TYPES:
        return False
    try:
        return bool(base64.b64decode(block["data"], validate=True))
    except (binascii.Error, ValueError):
        return False


def find_root_error(error: BaseException) -> BaseException:
    """Find the error inside the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def summarize_error(error: BaseException) -> str:
    """Summarize an error in one line."""
    error = find_root_error(error)
    if type(error).__name__ == "ValidationError" and hasattr(error, "errors"):
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        return f"its answer does not follow MCP ({place}: {fault['msg']})"[:300]
    return " ".join((str(error) or type(error).__name__).split())[:300].rstrip(".")


MAX_SCHEMA_BYTES = 16 * 1024
MAX_DEPTH_LEVELS = 64
MAX_SCHEMA_NODES = 4_000
FAULT_KEY = "x-ollm-fault"
DEFINITION_KEYS = ("$defs", "definitions")
UNSHOWN_KEYS = ("title", "$schema", "$id", "$comment")  # They say nothing to a model.
KEPT_TOOL_KEYS = ("name", "title", "description")


class SchemaFaultError(Exception):
    """A schema cannot be shown to a model, with the reason."""


def mend_tool_list(listed: dict[str, Any]) -> dict[str, Any]:
    """Make every tool of a server's list readable. Note a fault in a tool's schema and drop tools without a name, so
    that one bad tool does not lose the others."""
    tools = listed.get("tools")
    entries = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    named = [tool for tool in entries if isinstance(tool.get("name"), str) and tool["name"]]
    cursor = listed.get("nextCursor")
    more = {"nextCursor": cursor} if isinstance(cursor, str) and cursor else {}
    return {**_mend_cache_hints(listed), **more, "tools": [_mend_tool(tool) for tool in named]}


def _mend_cache_hints(listed: dict[str, Any]) -> dict[str, Any]:
    """Add the cache hints that MCP requires in every list since 2026-07-28: the server's own, or else hints that forbid
    caching. The SDK drops them for older versions."""
    scope, age = listed.get("cacheScope"), listed.get("ttlMs")
    return {
        "resultType": "complete",
        "cacheScope": scope if scope in ("private", "public") else "private",
        "ttlMs": age if type(age) is int and age >= 0 else 0,
    }


def read_message(line: bytes) -> Any:
    """Read a message from its JSON, in which a half of a surrogate pair becomes U+FFFD. Raises ValueError."""
    from mcp_types import jsonrpc_message_adapter as adapter

    try:
        return adapter.validate_json(line, by_name=False)
    except ValueError:
        return adapter.validate_json(unescape_surrogates(line.decode("utf-8", "replace")), by_name=False)


def _mend_tool(tool: dict[str, Any]) -> dict[str, Any]:
    kept = {key: tool[key] for key in KEPT_TOOL_KEYS if isinstance(tool.get(key), str)}
    parameters, fault = prepare_schema(tool.get("inputSchema", {}))
    return {**kept, "inputSchema": {"type": "object", FAULT_KEY: fault} if fault else parameters}


def prepare_schema(schema: Any) -> tuple[dict[str, Any], str]:
    """Return the schema as shown to models and the reason it cannot be shown; one of the two is empty."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return {}, "its parameters are not an object"
    try:
        size = len(msgspec.json.encode(schema))
        if size > MAX_SCHEMA_BYTES:
            most = MAX_SCHEMA_BYTES // 1024
            return {}, f"its parameter schema is {size // 1024} KiB; the limit is {most} KiB"
        return {"type": "object", **expand_references(schema)}, ""
    except SchemaFaultError as fault:
        return {}, str(fault)
    except (TypeError, ValueError, RecursionError):
        return {}, "its parameters cannot be read"


def expand_references(schema: JsonObject) -> JsonObject:
    """Replace references to the schema's own definitions with those definitions. If a definition contains itself, or
    the result would be too large, references and definitions stay unchanged."""
    named = ((key, schema[key]) for key in DEFINITION_KEYS if isinstance(schema.get(key), dict))
    definitions = {
        f"#/{key}/{name}": value for key, listed in named for name, value in listed.items() if isinstance(value, dict)
    }
    with suppress(SchemaFaultError):
        bare = {key: value for key, value in schema.items() if key not in DEFINITION_KEYS}
        found: JsonObject = _SchemaWalk(definitions).copy(bare)
        if len(msgspec.json.encode(found)) <= MAX_SCHEMA_BYTES:
            return found
    return dict(_SchemaWalk({}).copy(schema))


class _SchemaWalk:
    """A walk that copies a schema. It visits a node once for every place that uses it, up to a limit."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        self._nodes = 0

    def copy(self, node: Any, depth: int = 0, inside: tuple[str, ...] = ()) -> Any:
        """Copy a schema, a list of schemas, or a value. `inside` are the definitions that are being filled in."""
        self._nodes += 1
        if depth > MAX_DEPTH_LEVELS:
            raise SchemaFaultError("its parameters are nested too deeply")
        if self._nodes > MAX_SCHEMA_NODES:
            raise SchemaFaultError("its parameters are too many")
        if isinstance(node, list):
            return [self.copy(item, depth + 1, inside) for item in node]
        if not isinstance(node, dict):
            return node
        name = node.get("$ref")
        if isinstance(name, str) and name in self._definitions:
            if name in inside:
                raise SchemaFaultError("a definition holds itself")
            beside = {key: value for key, value in node.items() if key in ("description", "default")}
            return {**self.copy(self._definitions[name], depth + 1, (*inside, name)), **beside}
        shown = ((key, value) for key, value in node.items() if key not in UNSHOWN_KEYS or isinstance(value, dict))
        return {key: self._copy_entry(key, value, depth + 1, inside) for key, value in shown}

    def _copy_entry(self, key: str, value: Any, depth: int, inside: tuple[str, ...]) -> Any:
        if key in ("properties", *DEFINITION_KEYS):
            schemas = value.items() if isinstance(value, dict) else ()
            return {str(name): self.copy(one, depth, inside) if isinstance(one, dict) else {} for name, one in schemas}
        if key == "required":
            return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
        return value if key in ("enum", "const", "default", "examples") else self.copy(value, depth, inside)

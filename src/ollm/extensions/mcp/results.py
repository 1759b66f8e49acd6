"""Validated and size-limited schemas and results of MCP servers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ollm.domain.messages import PICTURE_TYPES, ImagePart
from ollm.domain.tools import ErrorInfo, ToolResult
from ollm.tools.framework.output import disarm_template_marks

MAX_IMAGES = 4
MAX_IMAGE_CHARACTERS = 4 * 1024 * 1024  # characters of base64
MAX_TEXT_CHARACTERS = 2 * 1024 * 1024


BLOCK_KEYS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
}


def mend_answer(answer: Any) -> dict[str, Any]:
    """Make an answer to a call readable for the SDK: unknown parts become text."""
    if not isinstance(answer, dict):
        return {"resultType": "complete", "content": [_make_text_block(answer)]}
    if answer.get("resultType") == "input_required":
        return answer  # a question, not yet an answer: the SDK asks it
    content = answer.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    structured = answer.get("structuredContent")
    kept = {"structuredContent": structured} if isinstance(structured, dict) else {}
    if structured is not None and not kept:
        blocks = [*blocks, structured]
    told = {"resultType": "complete", "isError": answer.get("isError") is True}  # the first: since 2026-07-28
    return {**told, "content": [_mend_block(block) for block in blocks], **kept}


def _mend_block(block: Any) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "resource" and (resource := _mend_resource(block.get("resource"))):
        return {"type": "resource", "resource": resource}
    keys = BLOCK_KEYS.get(kind, ()) if isinstance(kind, str) else ()
    if keys and all(isinstance(block.get(key), str) for key in keys):
        return {"type": kind, **{key: block[key] for key in keys}}
    return _make_text_block(block)


def _mend_resource(resource: Any) -> dict[str, str] | None:
    named = resource if isinstance(resource, dict) else {}
    kept = {key: named[key] for key in ("uri", "mimeType", "text", "blob") if isinstance(named.get(key), str)}
    return kept if "uri" in kept and ("text" in kept or "blob" in kept) else None


def _make_text_block(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    return {"type": "text", "text": text}


def build_result(answer: Any) -> ToolResult:
    """Convert an answer to a tool result with its text and images."""
    text = extract_text(answer.content)
    if not text and answer.structured_content is not None:
        text = disarm_template_marks(msgspec.json.encode(answer.structured_content).decode())
    text = text or "(no output)"
    if answer.is_error:
        error = ErrorInfo(type="McpError", message=text[:1_000])
        return ToolResult(llm_content=f"Error McpError: {text}", return_display=text, error=error)
    return ToolResult(llm_content=text, return_display=text, images=extract_images(answer.content))


def extract_text(blocks: Any) -> str:
    """Extract the text of blocks; name blocks of other types."""
    text = "\n".join(line for block in blocks if (line := _render_block(block)))
    return disarm_template_marks(text[:MAX_TEXT_CHARACTERS])


def extract_images(blocks: Any) -> tuple[ImagePart, ...]:
    pictures = [block for block in blocks if block.type == "image" and _can_be_sent(block)]
    return tuple(ImagePart(media_type=block.mime_type.lower(), data=block.data) for block in pictures[:MAX_IMAGES])


def _can_be_sent(block: Any) -> bool:
    import base64
    import binascii

    if len(block.data) > MAX_IMAGE_CHARACTERS or block.mime_type.lower() not in PICTURE_TYPES:
        return False
    try:
        return bool(base64.b64decode(block.data, validate=True))
    except (binascii.Error, ValueError):
        return False


def _render_block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource":
            return render_contents([block.resource])
        case "resource_link":
            return f"[{block.name}: {block.uri}]"
        case kind:
            return f"[{kind}, {block.mime_type}, about {len(block.data) * 3 // 4:,} bytes]"


def render_contents(contents: Any) -> str:
    """Return the text of a resource, with a placeholder for contents that are not text."""
    text = "\n".join(
        str(item.text)
        if hasattr(item, "text")
        else f"[{item.uri}: {item.mime_type or 'not text'}, about {len(item.blob) * 3 // 4:,} bytes]"
        for item in contents
    )
    return disarm_template_marks(text[:MAX_TEXT_CHARACTERS])


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
UNSHOWN_KEYS = ("title", "$schema", "$id", "$comment")  # they say nothing to a model
KEPT_TOOL_KEYS = {"name": str, "title": str, "description": str, "inputSchema": dict}
SCHEMA_KEY_KINDS = {"properties": dict, "required": list, "$defs": dict, "definitions": dict}

NESTED_TOO_DEEP = "its parameters are nested too deeply"
TOO_MANY_NODES = "its parameters are too many"


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


def read_message(data: str | bytes, **options: Any) -> Any:
    """Read a message from its JSON. One that cannot be read becomes an error of the request it answers, so that the
    request does not wait; raises ValueError if it answers none."""
    from mcp_types import jsonrpc_message_adapter as adapter

    line = data.encode() if isinstance(data, str) else data
    read = type(adapter).validate_json  # the adapter itself may call this function (`mend_reading`)
    try:
        return read(adapter, line, **options)
    except ValueError:
        if not (mended := mend_message(line)):
            raise
        return adapter.validate_python(mended, **options)


def mend_reading() -> None:
    """Let the SDK's own transports read messages with `read_message`."""
    from mcp_types import jsonrpc_message_adapter

    jsonrpc_message_adapter.validate_json = read_message  # type: ignore[method-assign,assignment]


def mend_message(line: bytes) -> dict[str, Any] | None:
    """Make an error of an answer that cannot be read. Returns None if the line is not an answer."""
    identity = re.search(rb'"id"\s*:\s*(\d+)', line[:200]) or re.search(rb'"id"\s*:\s*(\d+)', line[-200:])
    if identity is None or re.search(rb'"method"\s*:', line[:200]):
        return None
    error = {"code": -32700, "message": "its answer cannot be read as JSON"}
    return {"jsonrpc": "2.0", "id": int(identity[1]), "error": error}


def _mend_tool(tool: dict[str, Any]) -> dict[str, Any]:
    kept = {key: tool[key] for key, kind in KEPT_TOOL_KEYS.items() if isinstance(tool.get(key), kind)}
    schema = kept.get("inputSchema", {})
    if not isinstance(tool.get("inputSchema", {}), dict) or schema.get("type", "object") != "object":
        return {**kept, "inputSchema": {"type": "object", FAULT_KEY: "its parameters are not an object"}}
    wrong = {key for key, kind in SCHEMA_KEY_KINDS.items() if not isinstance(schema.get(key, kind()), kind)}
    usable = {key: value for key, value in schema.items() if key not in wrong}
    return {**kept, "inputSchema": {**usable, "type": "object"}}


def prepare_schema(schema: Any) -> tuple[dict[str, Any], str]:
    """Return the schema as shown to models and the reason it cannot be shown; one of the two is empty."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return {}, "its parameters are not an object"
    if fault := schema.get(FAULT_KEY):
        return {}, str(fault)
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


def expand_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace references to the schema's own definitions with those definitions. If a definition contains itself, or
    the result would be too large, references and definitions stay unchanged."""
    definitions = {f"#/{key}/{name}": value for key in DEFINITION_KEYS for name, value in _get_mapping(schema, key)}
    bare = {key: value for key, value in schema.items() if key not in DEFINITION_KEYS}
    if definitions:
        try:
            found = _SchemaWalk(definitions).copy(bare)
            if len(msgspec.json.encode(found)) <= MAX_SCHEMA_BYTES:
                return dict(found)
        except SchemaFaultError:
            pass
    found = _SchemaWalk({}).copy(bare)
    kept = {key: {name: _SchemaWalk({}).copy(v) for name, v in _get_mapping(schema, key)} for key in DEFINITION_KEYS}
    return {**found, **{key: value for key, value in kept.items() if value}}


def _get_mapping(schema: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    found = schema.get(key)
    return [(str(name), value) for name, value in found.items()] if isinstance(found, dict) else []


class _SchemaWalk:
    """A walk that copies a schema. It visits a node once for every place that uses it, up to a limit."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._nodes = 0
        self._open: list[str] = []

    def copy(self, node: Any, depth: int = 0) -> Any:
        """Copy a schema, a list of schemas, or a value."""
        self._nodes += 1
        if depth > MAX_DEPTH_LEVELS:
            raise SchemaFaultError(NESTED_TOO_DEEP)
        if self._nodes > MAX_SCHEMA_NODES:
            raise SchemaFaultError(TOO_MANY_NODES)
        if isinstance(node, list):
            return [self.copy(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        if (name := node.get("$ref")) and isinstance(name, str) and name in self._definitions:
            return self._fill_in(name, node, depth)
        return {key: self._copy_entry(key, value, depth) for key, value in node.items() if key not in UNSHOWN_KEYS} | (
            {"title": self.copy(node["title"], depth + 1)} if isinstance(node.get("title"), dict) else {}
        )

    def _fill_in(self, name: str, node: dict[str, Any], depth: int) -> Any:
        if name in self._open:
            raise SchemaFaultError("a definition holds itself")
        self._open.append(name)
        found = self.copy(self._definitions[name], depth + 1)
        self._open.pop()
        beside = {key: value for key, value in node.items() if key in ("description", "default")}
        return {**found, **beside} if isinstance(found, dict) else found

    def _copy_entry(self, key: str, value: Any, depth: int) -> Any:
        if key == "properties":
            return self._copy_properties(value, depth)
        if key == "required":
            return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
        if key in ("enum", "const", "default", "examples"):
            return value
        return self.copy(value, depth + 1)

    def _copy_properties(self, value: Any, depth: int) -> dict[str, Any]:
        named = value if isinstance(value, dict) else {}
        return {
            str(name): self.copy(schema, depth + 1) if isinstance(schema, dict) else {}
            for name, schema in named.items()
        }

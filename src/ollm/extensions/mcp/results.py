"""What a server answers, as models and people get it."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.messages import ImagePart
from ollm.domain.tools import ErrorInfo, ToolResult

MAX_IMAGES = 4
MAX_IMAGE_CHARACTERS = 4 * 1024 * 1024  # characters of base64
PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")  # what models take; others are only named
MAX_TEXT_CHARACTERS = 2 * 1024 * 1024


BLOCK_KEYS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
}


def mend_answer(answer: Any) -> dict[str, Any]:
    """An answer to a call that the SDK can read: what it does not know in it is given as text instead of losing all."""
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
    """The texts of an answer, its pictures beside them; one that says it failed is a failure."""
    text = extract_text(answer.content)
    if not text and answer.structured_content is not None:
        text = msgspec.json.encode(answer.structured_content).decode()
    text = text or "(no output)"
    if answer.is_error:
        error = ErrorInfo(type="McpError", message=text[:1_000])
        return ToolResult(llm_content=f"Error McpError: {text}", return_display=text, error=error)
    return ToolResult(llm_content=text, return_display=text, images=extract_images(answer.content))


def extract_text(blocks: Any) -> str:
    """All that can be read in these blocks; what cannot is named."""
    return "\n".join(line for block in blocks if (line := _render_block(block)))[:MAX_TEXT_CHARACTERS]


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
    """The text of a resource; one that is no text is named."""
    return "\n".join(
        str(item.text)
        if hasattr(item, "text")
        else f"[{item.uri}: {item.mime_type or 'not text'}, about {len(item.blob) * 3 // 4:,} bytes]"
        for item in contents
    )[:MAX_TEXT_CHARACTERS]


def find_root_error(error: BaseException) -> BaseException:
    """What went wrong, out of the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def summarize_error(error: BaseException) -> str:
    """What went wrong, in one line."""
    error = find_root_error(error)
    if type(error).__name__ == "ValidationError" and hasattr(error, "errors"):
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        return f"its answer does not follow MCP ({place}: {fault['msg']})"[:300]
    return " ".join((str(error) or type(error).__name__).split())[:300].rstrip(".")

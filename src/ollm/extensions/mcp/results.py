"""What a server answers, as models and people get it."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.messages import ImagePart
from ollm.domain.tools import ErrorInfo, ToolResult

MAX_IMAGES = 4
MAX_IMAGE_CHARACTERS = 4 * 1024 * 1024  # characters of base64
MAX_TEXT_CHARACTERS = 2 * 1024 * 1024


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
    pictures = [block for block in blocks if block.type == "image" and len(block.data) <= MAX_IMAGE_CHARACTERS]
    return tuple(ImagePart(media_type=block.mime_type, data=block.data) for block in pictures[:MAX_IMAGES])


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


def summarize_error(error: BaseException) -> str:
    """What went wrong, out of the groups that task groups wrap it in, in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return " ".join((str(error) or type(error).__name__).split())[:300].rstrip(".")

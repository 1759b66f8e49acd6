"""Convert an editor's prompt to text, with files and pictures as attachments."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import field
from msgspec.structs import replace

from ollm.acp.client import EditorBuffers
from ollm.acp.updates import ToolCallViews, render_start
from ollm.domain.errors import UsageError
from ollm.domain.events import ToolStarted
from ollm.domain.messages import PICTURE_TYPES, ImagePart, JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import describe_call, read_result
from ollm.runtime.base import Attachment
from ollm.runtime.mentions import (
    MAX_PICTURE_BYTES,
    attach_file,
    describe_missing_files,
    find_mentions,
    make_text_attachment,
)
from ollm.system.paths import Boundary
from ollm.system.terminal_text import make_printable, strip_controls
from ollm.tools.files.file_change import MAX_ASKED_FILES
from ollm.tools.files.file_text import describe_kind, find_media_type


class TextBlock(Data, frozen=True, tag_field="type", tag="text"):
    text: str


class ImageBlock(Data, frozen=True, tag_field="type", tag="image"):
    data: str
    mime_type: str
    uri: str | None = None


class FileContent(Data, frozen=True):
    uri: str
    text: str | None = None
    blob: str = ""
    mime_type: str | None = None


class FileBlock(Data, frozen=True, tag_field="type", tag="resource"):
    resource: FileContent


class LinkBlock(Data, frozen=True, tag_field="type", tag="resource_link"):
    uri: str


Block = TextBlock | ImageBlock | FileBlock | LinkBlock


class PromptContent(Data, frozen=True):
    """A converted prompt. `text` is the person's text with file names in place; `problems` lists mentions that
    could not be attached; `saved` maps positions in `attachments` to names of files read from disk."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    problems: tuple[str, ...] = ()
    saved: dict[int, str] = field(default_factory=dict)


def read_prompt(blocks: list[JsonObject], boundary: Boundary) -> PromptContent:
    """Convert a prompt's blocks in order. Raises UsageError for content that cannot be sent to a model."""
    reader = PromptReader(boundary)
    try:
        found = msgspec.convert(blocks, list[Block])
    except msgspec.ValidationError as error:
        raise UsageError(f"The prompt cannot be read: {error}.", action="Send text, files or images.") from error
    for block in found:
        reader.add_block(block)
    return reader.finish()


class PromptReader:
    """Incremental reader of one prompt's blocks."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._words: list[str] = []
        self._typed: list[str] = []
        self._editor_names: set[str] = set()
        self._attachments: list[Attachment] = []
        self._saved: dict[int, str] = {}

    def add_block(self, block: Block) -> None:
        if isinstance(block, TextBlock):
            self._words.append(block.text)
            self._typed.append(block.text)
        elif isinstance(block, ImageBlock):
            self._attachments.append(read_image(block.uri or "image", block.mime_type, block.data))
        elif isinstance(block, FileBlock):
            name, attachment = read_resource(block.resource, self._boundary)
            self._mention(name)
            self._attachments.append(attachment)
        else:
            name = name_resource(block.uri, self._boundary)
            self._mention(name)
            if "://" not in name:
                self._attach_file(name)

    def _mention(self, name: str) -> None:
        self._editor_names.add(name)
        self._words.append(f"@{name}")

    def _attach_file(self, name: str) -> None:
        """Attach a named file if the agent may read it without asking. Otherwise the model can request it."""
        for found in attach_file(name, self._boundary):
            if found.image is None:
                self._saved[len(self._attachments)] = name
            self._attachments.append(found)

    def finish(self) -> PromptContent:
        """Return the complete prompt, with the files named in its text attached."""
        text, workspace = join_words(self._words), self._boundary.workspace
        if not text.strip() and not self._attachments:
            raise UsageError("The prompt is empty.")
        named = [name for name in find_mentions("\n".join(self._typed), workspace) if name not in self._editor_names]
        for name in named:
            self._attach_file(name)
        problems = describe_missing_files(named, workspace)
        return PromptContent(
            text=text, attachments=tuple(self._attachments), problems=tuple(problems), saved=self._saved
        )


async def use_buffers(content: PromptContent, boundary: Boundary, editor: EditorBuffers) -> PromptContent:
    """Replace attached text by unsaved editor buffers. Files that the editor did not return become problems."""
    attachments, problems = list(content.attachments), list(content.problems)
    told, editor.report = editor.report, problems.append  # No turn runs yet that could report a problem.
    try:
        for place, name in list(content.saved.items())[:MAX_ASKED_FILES]:
            text = await editor.read(boundary.check(name))
            if text is not None:
                attachments[place] = make_text_attachment(name, text.encode("utf-8", "replace"))
    finally:
        editor.report = told
    return replace(content, attachments=tuple(attachments), problems=tuple(problems))


def join_words(words: list[str]) -> str:
    """Join blocks, with a space where two words would touch."""
    text = ""
    for word in words:
        touching = text and word and not text[-1].isspace() and not word[0].isspace() and word[0] not in ".,;:!?)"
        text += f" {word}" if touching else word
    return text


def read_image(name: str, media_type: str, data: str) -> Attachment:
    if media_type not in PICTURE_TYPES:
        raise UsageError(f"{media_type[:60]} is not a kind of image that models read.", action="Use PNG or JPEG.")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError("The image is not base64.") from error
    if len(content) > MAX_PICTURE_BYTES:
        raise UsageError("The image is larger than 10 MB.")
    found = find_media_type(content)
    if found is None:
        raise UsageError(f"The image is {describe_kind(content)}, not {media_type}.", action="Use PNG or JPEG.")
    return Attachment(name=name, image=ImagePart(media_type=found, data=data))


def read_resource(resource: FileContent, boundary: Boundary) -> tuple[str, Attachment]:
    """Read a file whose content the editor sends, which may be newer than the file on disk."""
    name = name_resource(resource.uri, boundary)
    if resource.text is not None:
        return name, make_text_attachment(name, resource.text.encode("utf-8", "replace"))
    if resource.mime_type in PICTURE_TYPES:
        return name, read_image(name, resource.mime_type or "", resource.blob)
    raise UsageError(f"{name} is neither text nor an image.")


def name_resource(uri: str, boundary: Boundary) -> str:
    """Name a workspace file by its relative path, any other file by its full path, anything else by its URI."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise UsageError(f"{make_printable(uri[:200])} is no address of a file.") from error
    if parts.scheme not in ("", "file"):
        return uri
    path = Path(unquote(parts.path))
    lines = f"#{parts.fragment}" if parts.fragment and not path.exists() else ""
    inside = path.is_relative_to(boundary.workspace)
    return str(path.relative_to(boundary.workspace) if inside else path) + lines


def replay_message(message: dict[str, Any], views: ToolCallViews) -> Iterator[JsonObject]:
    """Render one archived message as updates, with tool results beside their calls."""
    if message["role"] not in ("user", "assistant"):
        return
    for part in message["parts"]:
        if block := read_part(part):
            said = "agent_thought_chunk" if part["type"] == "thinking" else "agent_message_chunk"
            yield {"sessionUpdate": "user_message_chunk" if message["role"] == "user" else said, "content": block}
    for call in message["toolCalls"]:
        yield replay_call(call, views)


def read_part(part: dict[str, Any]) -> JsonObject | None:
    if part["type"] in ("text", "thinking") and part["text"]:
        return {"type": "text", "text": strip_controls(part["text"])}
    if part["type"] == "image":
        return {"type": "image", "data": part["data"], "mimeType": part["mediaType"]}
    return None


def replay_call(call: dict[str, Any], views: ToolCallViews) -> JsonObject:
    summary = describe_call(call["name"], call["args"], call.get("summary"))
    started = ToolStarted(call_id=call["id"], name=call["name"], summary=summary, args=call["args"])
    shown = render_start(started, views.read_call(call["name"], call["args"]))
    status = "completed" if call["status"] == "ok" else "failed"
    return {**shown, "status": status, "content": views.render_result(read_result(call))}

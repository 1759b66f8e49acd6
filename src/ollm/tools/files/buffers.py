"""Files as an editor has them: text that is not saved yet is read, and changed, in place of what is on disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Location
from ollm.tools.files.file_text import detect_encoding, detect_newline
from ollm.tools.framework.base import ToolContext

MAX_ASKED_FILES = 50


async def load_buffers(context: ToolContext, locations: Iterable[Location]) -> ToolContext:
    """The context of one call, with what the editor has of the files it names."""
    if context.editor is None:
        return context
    found: dict[Path, bytes | None] = {}
    for place in list(locations)[:MAX_ASKED_FILES]:
        try:
            path = context.boundary.check(place.target)
            with context.boundary.open_file(place.target) as file:
                saved = file.read(context.settings.read_file.max_bytes + 1)
        except ToolFailure:  # a folder, a pattern, a file that is not there or must not be read
            continue
        if len(saved) <= context.settings.read_file.max_bytes:
            found |= await _load_buffer(context, path, saved)
    return msgspec.structs.replace(context, buffers=found)


async def _load_buffer(context: ToolContext, path: Path, saved: bytes) -> dict[Path, bytes | None]:
    assert context.editor is not None
    encoding = detect_encoding(saved)
    if encoding is None or not encoding.exact:
        return {}
    text = await context.editor.read(path)
    if text is None:
        return {}
    before = encoding.decode(saved)
    if normalize_text(before) == normalize_text(text):
        return {path: None}
    if "\r" not in text and detect_newline(before) == "\r\n":
        text = text.replace("\n", "\r\n")
    text = text.removeprefix("\ufeff")
    try:
        return {path: encoding.encode(text)}
    except UnicodeEncodeError:  # the editor knows the encoding better, or the person typed what it does not have
        return {path: text.encode("utf-8", "replace")}


async def write_buffer(context: ToolContext, path: Path, after: bytes) -> bool:
    """Change a file in the editor that has it open; False when it is to be written to disk. Raises ToolFailure where
    that would leave the editor with another text."""
    if context.editor is None:
        return False
    if context.editor.withholds(path):
        raise ToolFailure("PermissionDenied", f"{path.name} is open in the editor, which does not answer; not written.")
    encoding = detect_encoding(after)
    if path not in context.buffers or encoding is None or not encoding.exact:
        return False
    with context.open_file(str(path)) as file:
        before = file.read()
    if not await context.editor.write(path, encoding.decode(after)):
        return False
    await context.changed_in_editor(path, before, after)
    return True


def refuse_unsaved(context: ToolContext, given: str) -> None:
    """An editor that only reads cannot be given a change, and on disk its unsaved text would stand in for the file's.
    Raises ToolFailure."""
    if context.editor is None or context.editor.writes:
        return
    if context.buffers.get(context.boundary.check(given)) is not None:
        raise ToolFailure(
            "FileChanged",
            f"{given} has unsaved changes in the editor, which lets files only be read; nothing was written. Ask the"
            " user to save it there, then try again.",
        )


def normalize_text(text: str) -> str:
    """Text as editors hold it: without a byte order mark, with plain line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")

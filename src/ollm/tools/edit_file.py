"""Edit a file: replace one or more passages of text (T3.5-3.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.tools import FileChange, Location, Risk, ToolCategory, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.edit_matching import Edit, apply_edits
from ollm.tools.files.file_change import (
    CurrentFile,
    describe_broken_change,
    encode_text,
    make_diff,
    make_result,
    read_current,
    refuse_stale,
    write_change,
)
from ollm.tools.files.file_text import describe_kind
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

_OTHER_NAMES = {
    "oldText": "target",
    "old_text": "target",
    "old_string": "target",
    "oldString": "target",
    "search": "target",
    "old": "target",
    "find": "target",
    "newText": "replacement",
    "new_text": "replacement",
    "new_string": "replacement",
    "newString": "replacement",
    "replace": "replacement",
    "new": "replacement",
    "replace_all": "replaceAll",
}

NO_CHANGE_MESSAGE = (
    "Edit {} changes nothing: target and replacement are equal. To add a line, take the line before it as target, and "
    "that line with the new one as replacement."
)


class Replacement(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """One edit, as a model gives it."""

    target: Annotated[str, Meta(min_length=1, description="Text to replace, exactly as in the file.")]
    replacement: str
    replace_all: bool = False


class EditFile(Tool[EditLedger], frozen=True):
    """Replace texts in a file. Each target must occur exactly once, unless replaceAll; all edits are made or none."""

    name: ClassVar[str] = "edit_file"
    category: ClassVar[ToolCategory] = "write"
    risk: ClassVar[Risk] = Risk.MEDIUM
    aliases: ClassVar[dict[str, str]] = {"file_path": "path", "filePath": "path", "file": "path", "filename": "path"}
    priority: ClassVar[Mapping[ModeName, int]] = {"code": 2, "debug": 4}
    # One edit without a list around it, which the tool takes too.
    small: ClassVar[SmallForm] = SmallForm(
        description="Replace one line of a file, copied exactly, or a part of it.",
        schema={
            "type": "object",
            "properties": {"path": {"type": "string"}, "target": {"type": "string"}, "replacement": {"type": "string"}},
            "required": ["path", "target", "replacement"],
        },
    )

    path: Annotated[str, Meta(min_length=1)]
    edits: Annotated[tuple[Replacement, ...], Meta(min_length=1)]

    @classmethod
    def reshape(cls, arguments: JsonObject) -> JsonObject:
        """One edit written beside the path, and the names other tools have for target and replacement."""
        named = {key: _OTHER_NAMES.get(key, key) for key in arguments}
        if "edits" not in arguments and "target" in named.values():
            edit = {named[key]: value for key, value in arguments.items() if named[key] in _OTHER_NAMES.values()}
            rest = {key: value for key, value in arguments.items() if named[key] not in _OTHER_NAMES.values()}
            return {**rest, "edits": [edit]}
        edits = arguments.get("edits")
        listed = [edits] if isinstance(edits, dict) else edits
        if not isinstance(listed, list):
            return arguments
        return {**arguments, "edits": [_rename_keys(edit) if isinstance(edit, dict) else edit for edit in listed]}

    def summary(self) -> str:
        count = "1 edit" if len(self.edits) == 1 else f"{len(self.edits)} edits"
        return f"Edit {self.path} ({count})"

    def locations(self) -> list[Location]:
        return [Location(target=self.path, access="write")]

    async def preview(self, context: ToolContext, needs: EditLedger) -> str:
        before = self._read_before(context)
        return make_diff(self.path, before.text, self._make_edits(before)[0])

    async def list_changes(self, context: ToolContext, needs: EditLedger) -> tuple[FileChange, ...]:
        before = self._read_before(context)
        return (FileChange(path=self.path, before=before.text, after=self._make_edits(before)[0]),)

    async def run(self, context: ToolContext, needs: EditLedger) -> ToolResult:
        before = self._read_before(context)
        refuse_stale(context, needs, self.path, before)
        text, notes = self._make_edits(before)
        assert before.encoding is not None
        await write_change(context, needs, self.path, before.content, encode_text(self.path, text, before.encoding))
        count = "1 edit" if len(self.edits) == 1 else f"{len(self.edits)} edits"
        remarks = "".join(f" Note: {note}." for note in notes)
        remarks += describe_broken_change(context, self.path, before.text, text)
        return make_result(f"Edited {self.path}: {count} made.{remarks}", make_diff(self.path, before.text, text))

    def _read_before(self, context: ToolContext) -> CurrentFile:
        before = read_current(context, self.path)
        if before is None:
            raise ToolFailure("FileNotFound", f"{self.path} does not exist; create it with write_file.")
        if before.encoding is None:
            raise ToolFailure("BinaryFile", f"{self.path} is not text: it is {describe_kind(before.content)}.")
        if not before.encoding.exact or before.encoding.encode(before.text) != before.content:
            raise ToolFailure(
                "EncodingError",
                f"{self.path} is {before.encoding.label} and could not be written back as it was; it is not touched.",
            )
        return before

    def _make_edits(self, before: CurrentFile) -> tuple[str, list[str]]:
        for number, edit in enumerate(self.edits, 1):
            if edit.target == edit.replacement:
                raise ToolFailure("ValidationError", NO_CHANGE_MESSAGE.format(number))
        edits = tuple(
            Edit(target=edit.target, replacement=edit.replacement, replace_all=edit.replace_all) for edit in self.edits
        )
        text, places = apply_edits(before.text, edits, self.path)
        return text, [place.note for place in places if place.note]


def _rename_keys(edit: JsonObject) -> JsonObject:
    return {_OTHER_NAMES.get(key, key) if _OTHER_NAMES.get(key) not in edit else key: edit[key] for key in edit}

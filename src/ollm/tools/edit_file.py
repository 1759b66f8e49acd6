"""Edit a file: replace one or more passages of text (T3.5-3.8)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.tools.files.file_change import CurrentFile, FileChangingTool, NewContent, encode_text, read_current
from ollm.tools.files.file_text import describe_kind
from ollm.tools.framework.base import SmallForm, ToolContext

NO_CHANGE_MESSAGE = (
    "Edit {} changes nothing: target and replacement are equal. To add a line, take the line before it as target, and "
    "that line with the new one as replacement."
)


class Replacement(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    target: Annotated[str, Meta(min_length=1, description="Text to replace, exactly as in the file.")]
    replacement: str
    replace_all: bool = False


class EditFile(FileChangingTool, frozen=True):
    """Replace texts in a file. Each target must occur exactly once, unless replaceAll; all edits are made or none."""

    name: ClassVar = "edit_file"
    priority: ClassVar = {"code": 2, "debug": 4}
    # One edit without a list around it, which the tool takes too.
    small: ClassVar = SmallForm(
        description="Replace one line of a file, copied exactly, or a part of it.",
        schema={
            "type": "object",
            "properties": {"path": {"type": "string"}, "target": {"type": "string"}, "replacement": {"type": "string"}},
            "required": ["path", "target", "replacement"],
        },
    )

    edits: Annotated[tuple[Replacement, ...], Meta(min_length=1)]

    @classmethod
    def reshape(cls, arguments: JsonObject) -> JsonObject:
        """Accept a single edit beside the path, and other tools' names for target and replacement."""
        if "edits" not in arguments:
            edit = {_name_field(key): value for key, value in arguments.items() if _name_field(key)}
            rest = {key: value for key, value in arguments.items() if not _name_field(key)}
            return {**rest, "edits": [edit]} if "target" in edit else arguments
        edits = arguments["edits"]
        listed = [edits] if isinstance(edits, dict) else edits
        if not isinstance(listed, list):
            return arguments
        return {**arguments, "edits": [_rename_keys(edit) if isinstance(edit, dict) else edit for edit in listed]}

    def summary(self) -> str:
        return f"Edit {self.path} ({format_count(len(self.edits), 'edit')})"

    def read_before(self, context: ToolContext) -> CurrentFile:
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

    def make_content(self, before: CurrentFile | None) -> NewContent:
        assert before is not None
        assert before.encoding is not None
        for number, edit in enumerate(self.edits, 1):
            if edit.target == edit.replacement:
                raise ToolFailure("ValidationError", NO_CHANGE_MESSAGE.format(number))
        text, places = apply_edits(before.text, self.edits, self.path)
        remarks = "".join(f" Note: {place.note}." for place in places if place.note)
        summary = f"Edited {self.path}: {format_count(len(self.edits), 'edit')} made.{remarks}"
        return NewContent(text=text, content=encode_text(self.path, text, before.encoding), summary=summary)


def _name_field(key: str) -> str:
    """Name the field that a key of any tool means (`old_string`, `newText`, `search`), or return ""."""
    word = key.replace("_", "").lower()
    if word == "replaceall":
        return "replaceAll"
    if word.startswith(("target", "old", "search", "find")):
        return "target"
    return "replacement" if word.startswith(("replace", "new")) else ""


def _rename_keys(edit: JsonObject) -> JsonObject:
    return {key if (name := _name_field(key)) in edit else name or key: edit[key] for key in edit}


MAX_SEARCHED_LINES = 50_000
MAX_SHOWN_LINES = 12
SHORT_FILE_CHARS = 1_000  # A file of at most so many characters is shown whole.


def find_closest_text(text: str, target: str) -> str:
    """Describe the closest lines in a sentence, or state that none is similar."""
    from rapidfuzz import fuzz, process

    standing = text.split("\n")[:MAX_SEARCHED_LINES]
    wanted = target.strip("\n").split("\n")
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    near = process.extract(wanted[anchor][:500], standing, scorer=fuzz.ratio, limit=5, score_cutoff=50)
    if not near or not wanted[anchor].strip():
        whole = f"It says:\n{text}" if 0 < len(text) <= SHORT_FILE_CHARS else "Read the file again."
        return f"No similar text. {whole}"
    starts = {max(index - anchor, 0) for _line, _score, index in near}
    block = "\n".join(wanted)[:20_000]
    first = max(
        starts, key=lambda start: (fuzz.ratio("\n".join(standing[start : start + len(wanted)])[:20_000], block), -start)
    )
    found = standing[first : first + len(wanted)]
    shown = "\n".join(found[:MAX_SHOWN_LINES]) + ("\n…" if len(found) > MAX_SHOWN_LINES else "")
    return f"The closest text is at line {first + 1}:\n{shown}"


_NUMBERED = re.compile(r"^\s*\d+\t")
_BESIDE_SIGNS = re.compile(r" ?([^\w\s]) ?")
MAX_LISTED_LINES = 10


class EditMatch(Data, frozen=True):
    """A span of the text and its replacement; `note` explains an inexact match."""

    edit: int
    start: int
    end: int
    replacement: str
    note: str = ""


def apply_edits(text: str, edits: tuple[Replacement, ...], given: str) -> tuple[str, list[EditMatch]]:
    """Apply all edits to the original text. Raises ToolFailure, which names the edit at fault."""
    places = [place for number, edit in enumerate(edits, 1) for place in _find_matches(text, edit, number, given)]
    places.sort(key=lambda place: (place.start, place.end))
    for one, following in pairwise(places):
        if following.start < one.end:
            raise ToolFailure(
                "EditsOverlap",
                f"Edits {one.edit} and {following.edit} change the same text of {given}, at line "
                f"{_count_line(text, following.start)}; nothing changed. Make them one edit.",
            )
    newline = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"  # It is the most common one.
    parts, position = [], 0
    for place in places:
        parts += [text[position : place.start], place.replacement.replace("\n", newline)]
        position = place.end
    return "".join([*parts, text[position:]]), places


def _count_line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _find_matches(text: str, edit: Replacement, number: int, given: str) -> list[EditMatch]:
    target, replacement = edit.target.replace("\r\n", "\n"), edit.replacement.replace("\r\n", "\n")
    spans = [found.span() for found in re.finditer("\r?\n".join(map(re.escape, target.split("\n"))), text)]
    if len(spans) > 1 and not edit.replace_all:
        lines = ", ".join(str(_count_line(text, start)) for start, _ in spans[:MAX_LISTED_LINES])
        more = ", …" if len(spans) > MAX_LISTED_LINES else ""
        raise ToolFailure(
            "EditTargetAmbiguous",
            f"Edit {number}: its target is found {len(spans)} times in {given}, at lines {lines}{more}; nothing was "
            "changed. Include more of the surrounding text in the target, or set replaceAll.",
        )
    if spans:
        return [EditMatch(edit=number, start=start, end=end, replacement=replacement) for start, end in spans]
    tolerant = _find_tolerant_match(text, target, replacement, number)
    if tolerant is not None:
        return [tolerant]
    closest = find_closest_text(text.replace("\r\n", "\n"), target)
    raise ToolFailure("EditTargetNotFound", f"Edit {number}: its target is not in {given}; nothing changed. {closest}")


def _find_tolerant_match(text: str, target: str, replacement: str, number: int) -> EditMatch | None:
    """Find the only place that matches except for whitespace or copied line numbers."""
    lines = target.strip("\n").split("\n")
    if not target.strip():
        return None
    bare = [_NUMBERED.sub("", line) for line in lines]
    ways: list[tuple[list[str], Callable[[str], str], str]] = [
        (lines, str.rstrip, "trailing whitespace was ignored"),
        (lines, _squeeze_whitespace, "whitespace was ignored"),
        (lines, _squeeze_signs, "whitespace was ignored"),
    ]
    if all(_NUMBERED.match(line) for line in lines):
        ways.append((bare, str.rstrip, "the line numbers in the target were removed"))
    standing = text.split("\n")
    for wanted, form, note in ways:
        found = _find_windows(standing, wanted, form)
        if len(found) == 1:
            return _make_match(standing, found[0], wanted, replacement, number, note, keep_end=target.endswith("\n"))
    return None


def _squeeze_whitespace(line: str) -> str:
    return " ".join(line.split())


def _squeeze_signs(line: str) -> str:
    """Remove whitespace beside signs, as in `port=80` for `port = 80`. Between words it matters."""
    return _BESIDE_SIGNS.sub(r"\1", _squeeze_whitespace(line))


def _find_windows(standing: list[str], wanted: list[str], form: Callable[[str], str]) -> list[int]:
    """Find the lines at which the wanted lines begin, compared in this form."""
    have, want = [form(line) for line in standing], [form(line) for line in wanted]
    first = [index for index, line in enumerate(have) if line == want[0]]
    return [index for index in first if have[index : index + len(want)] == want]


def _make_match(
    standing: list[str], first: int, wanted: list[str], replacement: str, number: int, note: str, *, keep_end: bool
) -> EditMatch:
    start = sum(len(line) + 1 for line in standing[:first])
    last = first + len(wanted) - 1
    end = start + len("\n".join(standing[first : last + 1]).removesuffix("\r" if last + 1 < len(standing) else ""))
    text = _reindent_replacement(replacement, _find_indent(wanted), _find_indent(standing[first : first + len(wanted)]))
    if keep_end:
        text = text.removesuffix("\n")
    return EditMatch(edit=number, start=start, end=end, replacement=text, note=f"edit {number}: {note}")


def _find_indent(lines: list[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def _reindent_replacement(replacement: str, given: str, standing: str) -> str:
    """Reindent the replacement to match the text, if the target's indentation differed."""
    if given == standing:
        return replacement
    moved = [
        standing + line.removeprefix(given) if line.strip() and line.startswith(given) else line
        for line in replacement.split("\n")
    ]
    return "\n".join(moved)

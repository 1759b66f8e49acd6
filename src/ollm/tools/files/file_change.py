"""Changing a file (T3): its current content, the diff, and the new content, on disk or in the editor that has the
file open."""

from __future__ import annotations

import asyncio
import difflib
import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data
from ollm.domain.tools import FileChange, Location, Risk, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.services.syntax_check import describe_lost_syntax
from ollm.tools.files.file_text import Encoding, detect_encoding, detect_newline, read_whole
from ollm.tools.framework.base import PATH_ALIASES, CheckEdit, Text, Tool, ToolContext
from ollm.tools.framework.output import show_controls

MAX_SHOWN_CHARS = 4_000
MAX_DIFF_LINES = 4_000
MAX_CHECKED_CHARS = 500_000
_HUNK = compile_late(r"\A@@ -(\d+)(\S*) \+(\d+)")


class CurrentFile(Data, frozen=True):
    """The current state of a file. `encoding` is None if it is not text."""

    content: bytes
    status: os.stat_result
    encoding: Encoding | None

    @property
    def text(self) -> str:
        return self.encoding.decode(self.content) if self.encoding else ""


class NewContent(Data, frozen=True):
    """The new content of a file as text and as bytes, with a sentence about it."""

    text: str
    content: bytes
    summary: str


class FileChangingTool(Tool[EditLedger], frozen=True):
    """Gives one file a new text."""

    category: ClassVar = "write"
    risk: ClassVar = Risk.MEDIUM
    aliases: ClassVar = PATH_ALIASES

    path: Text

    @abstractmethod
    def read_before(self, context: ToolContext) -> CurrentFile | None:
        """Read the current file, or return None for a new one. Raises ToolFailure if it must not be changed."""

    @abstractmethod
    def make_content(self, before: CurrentFile | None) -> NewContent: ...

    def locations(self) -> list[Location]:
        return [Location(target=self.path, access="write")]

    async def list_changes(self, context: ToolContext, needs: EditLedger) -> tuple[FileChange, ...]:
        before = self.read_before(context)
        after = self.make_content(before).text
        return (FileChange(path=self.path, before=before.text if before else None, after=after),)

    async def run(self, context: ToolContext, needs: EditLedger) -> ToolResult:
        before = self.read_before(context)
        if before is not None:
            refuse_stale(context, needs, self.path, before)
        after = self.make_content(before)
        await write_change(context, needs, self.path, before.content if before else None, after.content)
        if context.check_edit is not None:
            after = await run_edit_checks(context, context.check_edit, self.path, after)
        was = before.text if before else None
        summary = after.summary + await describe_broken_change(context, self.path, was, after.text)
        diff = make_diff(self.path, was or "", after.text)
        return ToolResult(llm_content=summary, return_display=f"{summary}\n{diff}" if diff else summary, diff=diff)


def read_current(context: ToolContext, given: str) -> CurrentFile | None:
    refuse_unsaved(context, given)
    try:
        file = context.open_file(given)
    except ToolFailure as failure:
        if failure.kind == "FileNotFound" and not os.path.lexists(context.workspace / given):
            return None
        raise
    with file:
        status = os.fstat(file.fileno())  # An edit after this is noticed as a change.
        content = read_whole(given, file, context.settings.read_file.max_bytes)
        return CurrentFile(content=content, status=status, encoding=detect_encoding(content))


def refuse_stale(context: ToolContext, ledger: EditLedger, given: str, now: CurrentFile) -> None:
    """Refuse to write a file that changed since the model read it. The refusal includes its current text if short."""
    path = context.boundary.check(given, "write")
    if not ledger.is_stale(path, now.status, now.content):
        return
    text = show_controls(now.text)
    if now.encoding is not None and len(text) <= MAX_SHOWN_CHARS:
        ledger.remember_file(path, now.status, now.content)
        reach = f"This is what it says now:\n{text}"
    else:
        reach = "Read it again, then redo the change."
    raise ToolFailure("FileChanged", f"{given} has changed since you read it; nothing was written. {reach}")


async def write_change(
    context: ToolContext, ledger: EditLedger, given: str, before: bytes | None, after: bytes
) -> None:
    """Write the file after saving a copy for undo. A file open in an editor is changed there."""
    path = context.boundary.check(given, "write")
    copy = ledger.save_undo_copy(path, before, after)
    try:
        if not await write_buffer(context, path, after):
            context.boundary.write_file(given, after, overwrite=before is not None)
    except BaseException:
        if copy is not None:
            copy.unlink(missing_ok=True)
        raise
    ledger.remember_file(path, path.stat(), after)


async def run_edit_checks(context: ToolContext, check: CheckEdit, given: str, after: NewContent) -> NewContent:
    """Run the checks for an edit. Return the content as they left it, with what they changed or found."""
    path = context.boundary.check(given, "write")
    failures = await check(path, path in context.buffers)
    if path in context.buffers:
        return after
    now = None
    with suppress(ToolFailure):
        now = read_current(context, given)
    summary = [after.summary]
    if now is None or now.encoding is None:
        summary.append("A check removed the file." if now is None else "A check made it a binary file.")
        return NewContent(text=after.text, content=after.content, summary="\n".join([*summary, failures]).strip())
    if now.text != after.text:
        diff = make_diff(given, after.text, now.text)
        summary.append(
            "A check changed the file" + (f":\n{diff}" if len(diff) <= MAX_SHOWN_CHARS else "; read it again.")
        )
    summary += [failures] if failures else []
    return NewContent(text=now.text, content=now.content, summary="\n".join(summary))


def encode_text(given: str, text: str, encoding: Encoding) -> bytes:
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        missing = text[error.start : error.start + 1].encode("unicode_escape").decode("ascii")
        shown = missing if missing.startswith("\\ud") else text[error.start]
        raise ToolFailure(
            "EncodingError", f"{given} is in {encoding.name}, which has no {shown!r}; nothing was written."
        ) from error


async def describe_broken_change(context: ToolContext, given: str, before: str | None, after: str) -> str:
    """Describe the errors that a change brought: by the file's language server, or if no server answers in time by
    its parser. The text goes after a sentence."""
    if len(after) > MAX_CHECKED_CHARS:
        return ""
    path = context.boundary.check(given, "write")
    if diagnostics := context.find_diagnostics(path):
        try:
            found = await diagnostics.check_change(path, before, after)
        except asyncio.CancelledError:
            return ""  # The file is written, and the result must say so; dispatch ends the turn.
        if found is not None:
            return found and f"\n{found}"
    told = describe_lost_syntax(given, before, after)
    return f" {told}." if told else ""


def make_diff(given: str, before: str, after: str) -> str:
    """Make a unified diff, or count the differing lines if it would be too long to read."""
    old, new = _split_lines(before), _split_lines(after)
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = max(head - 3, 0)
    old_part, new_part = old[start : len(old) - max(tail - 3, 0)], new[start : len(new) - max(tail - 3, 0)]
    if max(len(old_part), len(new_part)) > MAX_DIFF_LINES:
        return f"--- {given}\n+++ {given}\n({len(old_part):,} lines become {len(new_part):,})\n"
    lines = list(difflib.unified_diff(old_part, new_part, f"a/{given}", f"b/{given}"))
    crlf = [detect_newline(text) == "\r\n" for text in (before, after) if "\n" in text]
    if crlf in ([True, False], [False, True]):
        ends = "(line ends: CRLF become LF)\n" if crlf[0] else "(line ends: LF become CRLF)\n"
        lines[:2] = [f"--- a/{given}\n", f"+++ b/{given}\n", ends]
    return "".join(
        _HUNK.sub(lambda hunk: f"@@ -{int(hunk[1]) + start}{hunk[2]} +{int(hunk[3]) + start}", line) for line in lines
    )


def _split_lines(text: str) -> list[str]:
    lines = show_controls(text).split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([f"{last}\n\\ No newline at end of file\n"] if last else [])


MAX_ASKED_FILES = 50


async def load_buffers(context: ToolContext, locations: Iterable[Location]) -> ToolContext:
    """Add the editor's content of the named files to the context of one call."""
    if context.editor is None:
        return context
    found: dict[Path, bytes | None] = {}
    for place in list(locations)[:MAX_ASKED_FILES]:
        try:
            path = context.boundary.check(place.target)
            with context.boundary.open_file(place.target) as file:
                saved = file.read(context.settings.read_file.max_bytes + 1)
        except ToolFailure:  # It may be a folder, a pattern, or a file that is missing or must not be read.
            continue
        if len(saved) <= context.settings.read_file.max_bytes:
            found |= await _load_buffer(context, path, saved)
    return msgspec.structs.replace(context, buffers=found)


async def open_files(context: ToolContext, paths: Sequence[Path]) -> ToolContext:
    """Let these files be reached, as the editor has them."""
    context = msgspec.structs.replace(context, boundary=context.boundary.approve_paths(paths))
    return await load_buffers(context, [Location(target=str(path), access="write") for path in paths])


def read_shown(context: ToolContext, path: Path) -> bytes:
    """Read a file as the editor shows it."""
    with context.open_file(str(path)) as file:
        return file.read()


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
    except UnicodeEncodeError:  # The user may have typed a character that the encoding lacks.
        return {path: text.encode("utf-8", "replace")}


async def write_buffer(context: ToolContext, path: Path, after: bytes) -> bool:
    """Change a file in the editor that has it open. Returns False if it must be written to disk. Raises ToolFailure if
    that would leave the editor with a different text."""
    if context.editor is None:
        return False
    if context.editor.withholds(path):
        raise ToolFailure("PermissionDenied", f"{path.name} is open in the editor, which does not answer; not written.")
    encoding = detect_encoding(after)
    if path not in context.buffers or encoding is None or not encoding.exact:
        return False
    before = read_shown(context, path)
    if not await context.editor.write(path, encoding.decode(after)):
        return False
    await context.changed_in_editor(path, before, after)
    return True


def refuse_unsaved(context: ToolContext, given: str) -> None:
    """Raise ToolFailure if a read-only editor has unsaved changes in the file. The editor cannot take the change, and
    writing to disk would replace the file's text with the unsaved text."""
    if context.editor is None or context.editor.writes:
        return
    if context.buffers.get(context.boundary.check(given)) is not None:
        raise ToolFailure(
            "FileChanged",
            f"{given} has unsaved changes in the editor, which lets files only be read; nothing was written. Ask the"
            " user to save it there, then try again.",
        )


def normalize_text(text: str) -> str:
    """Convert text to the form editors use: no byte order mark, plain line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")

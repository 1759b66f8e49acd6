"""Changing a file (T3): what is there now, the difference, and putting the new content in its place."""

from __future__ import annotations

import difflib
import os
from itertools import takewhile
from pathlib import Path

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.file_text import Encoding, detect_encoding, make_too_large_failure
from ollm.tools.framework.base import ToolContext
from ollm.tools.framework.output import show_controls

MAX_SHOWN_CHARS = 4_000
MAX_DIFF_LINES = 4_000
MAX_CHECKED_CHARS = 500_000


class CurrentFile(Data, frozen=True):
    """A file as it is now. `encoding` is None when it is not text."""

    content: bytes
    status: os.stat_result
    encoding: Encoding | None

    @property
    def text(self) -> str:
        return self.encoding.decode(self.content) if self.encoding else ""


def read_current(context: ToolContext, given: str) -> CurrentFile | None:
    if context.buffers:
        from ollm.tools.files.buffers import refuse_unsaved

        refuse_unsaved(context, given)
    try:
        file = context.open_file(given)
    except ToolFailure as failure:
        if failure.kind == "FileNotFound" and not os.path.lexists(context.workspace / given):
            return None
        raise
    with file:
        status, limit = os.fstat(file.fileno()), context.settings.read_file.max_bytes
        if status.st_size > limit:
            raise make_too_large_failure(given, status.st_size, limit)
        content = file.read()
        return CurrentFile(content=content, status=status, encoding=detect_encoding(content))


def refuse_stale(context: ToolContext, ledger: EditLedger, given: str, now: CurrentFile) -> None:
    """A file changed by others since the model saw it is not written; what it says now comes with the refusal."""
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
    """Write it, keeping a copy to undo with first; a file that an editor has open is changed there."""
    path = context.boundary.check(given, "write")
    copy = ledger.save_undo_copy(path, before, after)
    try:
        if context.editor is None or not await write_in_editor(context, path, after):
            context.boundary.write_file(given, after, overwrite=before is not None)
    except BaseException:
        if copy is not None:
            copy.unlink(missing_ok=True)
        raise
    ledger.remember_file(path, path.stat(), after)


async def write_in_editor(context: ToolContext, path: Path, after: bytes) -> bool:
    from ollm.tools.files.buffers import write_buffer

    return await write_buffer(context, path, after)


def encode_text(given: str, text: str, encoding: Encoding) -> bytes:
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        missing = text[error.start : error.start + 1].encode("unicode_escape").decode("ascii")
        shown = missing if missing.startswith("\\ud") else text[error.start]
        raise ToolFailure(
            "EncodingError", f"{given} is in {encoding.name}, which has no {shown!r}; nothing was written."
        ) from error


def describe_broken_change(context: ToolContext, given: str, before: str | None, after: str) -> str:
    """A sentence when a file that parsed, or a new one, does not parse now; with a blank before it."""
    if len(after) > MAX_CHECKED_CHARS or not context.says_broken():
        return ""
    from ollm.services.syntax_check import describe_lost_syntax

    told = describe_lost_syntax(given, before, after)
    return f" {told}." if told else ""


def make_result(summary: str, diff: str) -> ToolResult:
    """The result of a change: a sentence for the model, the difference for the person."""
    return ToolResult(llm_content=summary, return_display=f"{summary}\n{diff}" if diff else summary, diff=diff)


def make_diff(given: str, before: str, after: str) -> str:
    """A unified diff, or how many lines differ when it would be too long to read."""
    old, new = _split_lines(before), _split_lines(after)
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    rest = min(len(old), len(new)) - head
    tail = 0
    while tail < rest and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = max(head - 3, 0)
    old_part, new_part = old[start : len(old) - max(tail - 3, 0)], new[start : len(new) - max(tail - 3, 0)]
    if max(len(old_part), len(new_part)) > MAX_DIFF_LINES:
        return f"--- {given}\n+++ {given}\n({len(old_part):,} lines become {len(new_part):,})\n"
    lines = list(difflib.unified_diff(old_part, new_part, f"a/{given}", f"b/{given}"))
    return "".join(_shift_hunk_header(line, start) if line.startswith("@@") else line for line in lines)


def _split_lines(text: str) -> list[str]:
    lines = show_controls(text).split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([f"{last}\n"] if last else [])


def _shift_hunk_header(header: str, start: int) -> str:
    """A hunk header, counted from the start of the file and not of the part that was compared."""
    parts = header.split()
    for index in (1, 2):
        first, comma, count = parts[index].partition(",")
        parts[index] = f"{first[0]}{int(first[1:]) + start}{comma}{count}"
    return " ".join(parts) + "\n"

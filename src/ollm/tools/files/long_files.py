"""A file that is too long for one result: its head, where to read on, and the outline of the rest (T9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from ollm.config.settings import OutputSettings
from ollm.domain.struct import Data
from ollm.domain.tools import ToolResult
from ollm.services.code_map.outline import fit_outline, outline_text
from ollm.tools.files.file_text import Excerpt, count_lines
from ollm.tools.framework.output import show_controls, take_head

MIN_DEFINITIONS = 3
NOTE_TOKENS = 60
NOTE_CHARS = 300
NOTE_LINES = 3


class ResultRoom(Data, frozen=True):
    """What a result may take: in tokens of the model that asks, where that is known, in characters and in lines."""

    count: Callable[[str], int]
    outline_tokens: int
    limits: OutputSettings
    max_tokens: int | None = None


async def shorten_long_file(path: str, excerpt: Excerpt, result: ToolResult, room: ResultRoom) -> ToolResult:
    """The result as it is when there is no outline to give in place of the rest."""
    if excerpt.content is None:
        return result
    return await asyncio.to_thread(_replace_rest, path, excerpt.content, result, room)


def _replace_rest(path: str, content: bytes, result: ToolResult, room: ResultRoom) -> ToolResult:
    definitions = outline_text(path, content)
    if len(definitions) < MIN_DEFINITIONS:
        return result
    whole = show_controls(content.decode("utf-8", "replace"))
    budget = room.outline_tokens if room.max_tokens is None else min(room.outline_tokens, room.max_tokens // 2)
    outline = fit_outline(definitions, budget, room.count)
    head = _take_head(whole, "\n".join(outline), room)
    shown, total = head.count("\n"), count_lines(whole)
    rest = [found for found in definitions if found.last > shown]
    if len(rest) < len(definitions):
        outline = fit_outline(rest, budget, room.count)
    note = (
        f"[lines 1 to {shown:,} of {total:,} are shown; read on with startLine {shown + 1}, or name a symbol. "
        "Outline of the rest:]"
    )
    return msgspec.structs.replace(
        result,
        llm_content="\n".join([f"{head}{note}", *outline]),
        return_display=f"{path}: {shown:,} of {total:,} lines and an outline of the rest",
        full_output=whole,
    )


def _take_head(whole: str, outline: str, room: ResultRoom) -> str:
    """Whole lines from the beginning, as many as fit beside the outline."""
    chars = max(room.limits.max_chars - len(outline) - NOTE_CHARS, 1)
    lines = max(room.limits.max_lines - outline.count("\n") - NOTE_LINES, 1)
    head = take_head(whole, chars, lines)
    if room.max_tokens is not None:
        left = max(room.max_tokens - room.count(outline) - NOTE_TOKENS, 0)
        while head and (needed := room.count(head)) > left:
            head = take_head(head, min(int(len(head) * left / needed), len(head) - 1), lines)
    return head[: head.rfind("\n") + 1]

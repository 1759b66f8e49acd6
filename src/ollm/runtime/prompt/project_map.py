"""A map of the project as a context entry: made once for a conversation, so that the prompt's prefix does not
change."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

from ollm.domain.context import ContextEntry
from ollm.domain.files import DiscoveryOptions, FileEntry
from ollm.runtime.prompt.breakdown import PROJECT_MAP_KEY
from ollm.services.code_map import CodeMapService
from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.project_map import render_project_map
from ollm.services.token_counting import estimate_units

PRIORITY = 0.0  # it is last, and is the first to go when there is no space
CHARS_PER_TOKEN = 3
CODE_PERCENT = 60  # of the map, for definitions
MIN_CODE_TOKENS = 80
CODE_SECONDS = 5.0
CODE_INTRODUCTION = "What other files use most, with line numbers:"
INTRODUCTION = "The files there were when this conversation began, names only; look again before you rely on them."


async def build_project_map_entry(
    discovery: FileDiscoveryService, workspace: Path, tokens: int, code_map: CodeMapService | None = None
) -> ContextEntry | None:
    """A map within so many tokens: the files, and in what is left the definitions that others use most; None when there
    is no file or no space. Only for trusted workspaces: whoever names a file writes into the prompt."""
    answer = await discovery.collect_result(DiscoveryOptions(root=str(workspace)))
    if not answer.entries:
        return None
    paths = [entry.relative_path for entry in answer.entries if entry.type == "file"]
    code = await _draw_code(code_map, workspace, paths, tokens * CODE_PERCENT // 100) if code_map else ""
    content = await asyncio.to_thread(_render_within, answer.entries, tokens - math.ceil(estimate_units(code)))
    if not content:
        return None
    content += code
    return ContextEntry(key=PROJECT_MAP_KEY, content=content, timestamp="", priority=PRIORITY, source="system")


async def _draw_code(code_map: CodeMapService, workspace: Path, paths: list[str], tokens: int) -> str:
    """The map of the code behind bars; nothing when there is none, or when a first look takes too long: what was read
    is remembered for the next conversation."""
    if tokens < MIN_CODE_TOKENS:
        return ""
    try:
        async with asyncio.timeout(CODE_SECONDS):
            drawn = await code_map.build_map(workspace, paths, tokens, lambda text: math.ceil(estimate_units(text)))
    except TimeoutError:
        return ""
    lines = [f"| {line}" for line in drawn.text.split("\n")] if drawn.text else []
    while lines and estimate_units("\n".join([CODE_INTRODUCTION, *lines])) > tokens:
        lines.pop()
    return "\n".join(["", "", CODE_INTRODUCTION, "", *lines]) if lines else ""


def _render_within(entries: tuple[FileEntry, ...], tokens: int) -> str:
    """Each line starts with a bar, so that no name passes for a heading."""
    max_chars = tokens * CHARS_PER_TOKEN
    while max_chars > 0:
        lines = render_project_map(entries, max_chars).split("\n")
        content = "\n".join([INTRODUCTION, "", *(f"| {line}" for line in lines)])
        if estimate_units(content) <= tokens:
            return content
        max_chars = max_chars * 4 // 5
    return ""

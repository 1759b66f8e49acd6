"""A map of the project as a context entry: made once for a conversation, so that the prompt's prefix stands."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ollm.domain.context import ContextEntry
from ollm.domain.files import DiscoveryOptions, FileEntry
from ollm.runtime.prompt.breakdown import PROJECT_MAP_KEY
from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.project_map import render_project_map
from ollm.services.token_counting import estimate_units

PRIORITY = 0.0  # it stands last, and is the first to go when there is no space
CHARS_PER_TOKEN = 3
INTRODUCTION = "The files there were when this conversation began, names only; look again before you rely on them."


async def build_project_map_entry(discovery: FileDiscoveryService, workspace: Path, tokens: int) -> ContextEntry | None:
    """A map within so many tokens; None when there is no file or no space. Only for trusted workspaces: whoever names
    a file writes into the prompt."""
    answer = await discovery.collect_result(DiscoveryOptions(root=str(workspace)))
    content = await asyncio.to_thread(_render_within, answer.entries, tokens) if answer.entries else ""
    if not content:
        return None
    return ContextEntry(key=PROJECT_MAP_KEY, content=content, timestamp="", priority=PRIORITY, source="system")


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

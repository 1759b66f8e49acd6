"""Read several files at once (T2.8)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.config.settings import OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count, format_names
from ollm.domain.tools import ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.services.token_counting import estimate_units
from ollm.system.paths import show_name
from ollm.tools.files.file_text import NOTE_CHARS, LineRange, read_text
from ollm.tools.framework.base import Count, SmallForm, Tool, ToolContext
from ollm.tools.framework.output import append_notes, take_head
from ollm.tools.search.scope import describe_skipped, drop_private_files

if TYPE_CHECKING:
    from ollm.tools.catalogue import ToolServices

MIN_PAGE_TOKENS = 10
FAIR_PAGE_TOKENS = 500
MIN_PAGE_LINES = 5
CHARS_PER_TOKEN = 4
MAX_FILES = 200


class ReadManyFiles(Tool["ToolServices"], frozen=True):
    """Read several text files at once, each under its path. Globs such as src/**/*.py are allowed."""

    name: ClassVar = "read_many_files"
    category: ClassVar = "read"
    aliases: ClassVar = {"path": "paths", "files": "paths", "patterns": "paths"}
    priority: ClassVar = {"plan": 8, "assistant": 9}
    small: ClassVar = SmallForm(description="Read several files.")

    paths: Annotated[tuple[str, ...], Meta(min_length=1, description="Files or globs, from the workspace.")]
    max_tokens: Annotated[Count | None, Meta(description="Most tokens to return for all of them.")] = None

    def summary(self) -> str:
        return f"Read {', '.join(self.paths[:5])}{' …' if len(self.paths) > 5 else ''}"

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        if "" in self.paths:
            raise ToolFailure("ValidationError", "paths: expected text that is not empty.")
        wanted, notes = await self._resolve_paths(context, needs)
        pages: list[str] = []
        failures: list[ToolFailure] = []
        limits = context.settings.output
        tokens = min(self.max_tokens or limits.max_chars, (limits.max_chars - NOTE_CHARS) / CHARS_PER_TOKEN)
        lines = limits.max_lines - MIN_PAGE_LINES
        for number, path in enumerate(wanted[:MAX_FILES], 1):
            if pages and (tokens < MIN_PAGE_TOKENS or lines < MIN_PAGE_LINES):
                break
            share = tokens if number == len(wanted) else max(tokens / 2, min(tokens, FAIR_PAGE_TOKENS))
            try:
                text = await self._read_page(context, needs.edits, path, share, lines)
            except ToolFailure as failure:
                failures.append(failure)
                text = f"[{failure.kind}: {failure.message}]"
            pages.append(f"=== {show_name(path)} ===\n{text}")
            tokens -= self._measure(pages[-1])
            lines -= pages[-1].count("\n") + 1
        if failures and len(failures) == len(pages):
            raise ToolFailure(failures[0].kind, " ".join(failure.message for failure in failures[:20]))
        if rest := wanted[len(pages) :]:
            notes.append(f"{format_count(len(rest), 'more file')} not shown (too long): {format_names(rest, 10)}")
        read = format_count(len(pages) - len(failures), "file")
        return ToolResult(llm_content=append_notes("\n".join(pages), notes), return_display="; ".join([read, *notes]))

    async def _resolve_paths(self, context: ToolContext, needs: ToolServices) -> tuple[list[str], list[str]]:
        paths: dict[str, None] = {}
        notes, skipped = [], 0
        for given in self.paths:
            if not set(given) & set("*?[{") or os.path.lexists(context.workspace / given):
                paths[given] = None
                continue
            found = (await needs.discovery.find(context.workspace, given)).paths
            kept = drop_private_files(context, context.workspace, found)
            skipped += len(found) - len(kept)
            paths.update(dict.fromkeys(sorted(kept)))
            if not kept:
                notes.append(f"no file matches {given}")
        if skipped:
            notes.append(describe_skipped(skipped))
        if not paths:
            raise ToolFailure("FileNotFound", f"{'; '.join(notes).capitalize()}.")
        return list(paths), notes

    async def _read_page(self, context: ToolContext, ledger: EditLedger, path: str, tokens: float, lines: int) -> str:
        """Read as much of a file as fits."""
        limits = OutputSettings(max_chars=int(CHARS_PER_TOKEN * tokens) + NOTE_CHARS, max_lines=max(lines, 1))
        settings = msgspec.structs.replace(context.settings, output=limits)
        with context.open_file(path) as file:
            excerpt = await read_text(path, file, LineRange(), settings, ledger)
        text = whole = excerpt.render().removesuffix("\n")
        while (needed := self._measure(text)) > tokens:
            text = take_head(text, int(len(text) * 0.9 * tokens / needed), lines)
        return text if text is whole else f"{text.removesuffix(chr(10))}\n[cut: too long]"

    def _measure(self, text: str) -> float:
        """Estimate the tokens of a text, by its characters alone if no number of tokens was given."""
        return max(estimate_units(text) if self.max_tokens else 0.0, len(text) / CHARS_PER_TOKEN)

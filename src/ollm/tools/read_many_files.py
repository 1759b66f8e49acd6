"""Read several files at once (T2.8)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.config.settings import OutputSettings
from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import Location, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.services.token_counting import estimate_units
from ollm.tools.files.file_text import NOTE_CHARS, LineRange, append_notes, read_text
from ollm.tools.framework.base import Count, SmallForm, Tool, ToolContext
from ollm.tools.framework.output import take_head
from ollm.tools.search.scope import describe_skipped, drop_private_files

if TYPE_CHECKING:
    from ollm.tools.catalogue import ToolServices

MIN_PAGE_CHARS = 200
MIN_PAGE_TOKENS = 10
CHARS_PER_TOKEN = 4
FAIR_PAGE_CHARS = 2_000


class FilePages:
    """The files read so far, and the remaining space."""

    def __init__(self, max_tokens: int | None, limits: OutputSettings) -> None:
        self.texts: list[str] = []
        self.failures: list[ToolFailure] = []
        self.read = 0
        self._tokens = None if max_tokens is None else float(min(max_tokens, limits.max_chars))
        self._chars = limits.max_chars - NOTE_CHARS
        self._lines = limits.max_lines - 5

    @property
    def full(self) -> bool:
        tight = self._tokens is not None and self._tokens < MIN_PAGE_TOKENS
        return bool(self.texts) and (self._chars < MIN_PAGE_CHARS or self._lines < 5 or tight)

    def limit_next(self, files_left: int) -> OutputSettings:
        """Limit the next file to half of the space while others wait, so that one long file does not take it all."""
        chars = self._chars if self._tokens is None else min(self._chars, int(CHARS_PER_TOKEN * self._tokens))
        if files_left > 1:
            chars = max(chars // 2, min(chars, FAIR_PAGE_CHARS))
        return OutputSettings(max_chars=max(chars, 1) + NOTE_CHARS, max_lines=max(self._lines, 1))

    def add(self, path: str, page: str | ToolFailure) -> None:
        """Add a file's text, or the reason it could not be read."""
        if isinstance(page, ToolFailure):
            self.failures.append(page)
            text = f"=== {path} ===\n[{page.kind}: {page.message}]"
        else:
            self.read += 1
            text = self._trim_to_tokens(f"=== {path} ===\n{page.removesuffix(chr(10))}")
        self.texts.append(text)
        self._chars -= len(text) + 1
        self._lines -= text.count("\n") + 1
        if self._tokens is not None:
            self._tokens -= estimate_units(text)

    def describe_left_out(self, paths: list[str]) -> list[str]:
        rest = paths[len(self.texts) :]
        if not rest:
            return []
        named = ", ".join(rest[:10]) + (" …" if len(rest) > 10 else "")
        return [f"{format_count(len(rest), 'more file')} not shown (too long): {named}"]

    def _trim_to_tokens(self, text: str) -> str:
        whole = text
        while self._tokens is not None and (needed := estimate_units(text)) > max(self._tokens, MIN_PAGE_TOKENS):
            text = take_head(text, int(len(text) * 0.9 * self._tokens / needed), len(text))
        return text if text is whole else f"{text.removesuffix(chr(10))}\n[cut: maxTokens]"


MAX_FILES = 200


class ReadManyFiles(Tool["ToolServices"], frozen=True):
    """Read several text files at once, each under its path. Globs such as src/**/*.py are allowed."""

    name: ClassVar = "read_many_files"
    category: ClassVar = "read"
    reads_only: ClassVar = True
    aliases: ClassVar = {"path": "paths", "files": "paths", "patterns": "paths"}
    priority: ClassVar = {"plan": 8, "assistant": 9}
    small: ClassVar = SmallForm(description="Read several files.")

    paths: Annotated[tuple[str, ...], Meta(min_length=1, description="Files or globs, from the workspace.")]
    max_tokens: Annotated[Count | None, Meta(description="Most tokens to return for all of them.")] = None

    def summary(self) -> str:
        return f"Read {', '.join(self.paths[:5])}{' …' if len(self.paths) > 5 else ''}"

    def locations(self) -> list[Location]:
        return [Location(target=path) for path in self.paths]

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        if "" in self.paths:
            raise ToolFailure("ValidationError", "paths: expected text that is not empty.")
        wanted, notes = await self._resolve_paths(context, needs)
        pages = FilePages(self.max_tokens, context.settings.output)
        for number, path in enumerate(wanted[:MAX_FILES]):
            if pages.full:
                break
            limits = pages.limit_next(len(wanted) - number)
            pages.add(path, await self._read_page(context, needs.edits, path, limits))
        if not pages.read and pages.failures:
            raise ToolFailure(pages.failures[0].kind, " ".join(failure.message for failure in pages.failures[:20]))
        notes = [*notes, *pages.describe_left_out(wanted)]
        text = "\n".join([*pages.texts, *(f"[{note}]" for note in notes)])
        return ToolResult(
            llm_content=text, return_display=format_count(pages.read, "file") + "".join(f"; {n}" for n in notes)
        )

    async def _resolve_paths(self, context: ToolContext, needs: ToolServices) -> tuple[list[str], list[str]]:
        paths: dict[str, None] = {}
        notes, skipped = [], 0
        for given in self.paths:
            if not set(given) & set("*?[{") or os.path.lexists(context.workspace / given):
                paths[given] = None
                continue
            found = await _find_files(context, needs, given)
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

    async def _read_page(
        self, context: ToolContext, ledger: EditLedger, path: str, limits: OutputSettings
    ) -> str | ToolFailure:
        settings = msgspec.structs.replace(context.settings, output=limits)
        try:
            with context.open_file(path) as file:
                excerpt = await read_text(path, file, LineRange(), settings)
                ledger.remember_file(context.boundary.check(path), os.fstat(file.fileno()), excerpt.content)
        except ToolFailure as failure:
            return failure
        return append_notes(excerpt)


async def _find_files(context: ToolContext, needs: ToolServices, pattern: str) -> list[str]:
    try:
        return (await needs.discovery.find(context.workspace, pattern)).paths
    except ToolFailure:
        raise
    except (OllmError, ValueError) as error:
        raise ToolFailure("InvalidPattern", f"{pattern} is not a glob: {error}") from error

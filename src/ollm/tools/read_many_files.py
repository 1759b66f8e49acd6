"""Read several files at once (T2.8)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.config.settings import OutputSettings
from ollm.domain.context import ModeName
from ollm.domain.counting import format_count
from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import Location, ToolCategory, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.file_pages import FilePages
from ollm.tools.files.file_text import LineRange, append_notes, read_text
from ollm.tools.files.private_files import describe_skipped, drop_private_files
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

MAX_FILES = 200


class ReadManyFilesNeeds(Data, frozen=True):
    """What reading many takes: the ledger, and how a glob finds files beneath a directory (relative paths)."""

    ledger: EditLedger
    find: Callable[[Path, str], Awaitable[list[str]]]


class ReadManyFiles(Tool[ReadManyFilesNeeds], frozen=True):
    """Read several text files at once, each under its path. Globs such as src/**/*.py are allowed."""

    name: ClassVar[str] = "read_many_files"
    category: ClassVar[ToolCategory] = "read"
    reads_only: ClassVar[bool] = True
    aliases: ClassVar[dict[str, str]] = {"path": "paths", "files": "paths", "patterns": "paths"}
    priority: ClassVar[Mapping[ModeName, int]] = {"plan": 8, "assistant": 9}
    small: ClassVar[SmallForm] = SmallForm(
        description="Read several files.",
    )

    paths: Annotated[tuple[str, ...], Meta(min_length=1, description="Files or globs, from the workspace.")]
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Most tokens to return for all of them.")
    ] = None

    def summary(self) -> str:
        return f"Read {', '.join(self.paths[:5])}{' …' if len(self.paths) > 5 else ''}"

    def locations(self) -> list[Location]:
        return [Location(target=path) for path in self.paths]

    async def run(self, context: ToolContext, needs: ReadManyFilesNeeds) -> ToolResult:
        if "" in self.paths:
            raise ToolFailure("ValidationError", "paths: expected text that is not empty.")
        wanted = await self._resolve_paths(context, needs)
        pages = FilePages(self.max_tokens, context.settings.output)
        for number, path in enumerate(wanted.paths[:MAX_FILES]):
            if pages.full:
                break
            limits = pages.limit_next(len(wanted.paths) - number)
            pages.add(path, await self._read_page(context, needs.ledger, path, limits))
        if not pages.read and pages.failures:
            raise ToolFailure(pages.failures[0].kind, " ".join(failure.message for failure in pages.failures[:20]))
        notes = [*wanted.notes, *pages.describe_left_out(wanted.paths)]
        text = "\n".join([*pages.texts, *(f"[{note}]" for note in notes)])
        return ToolResult(
            llm_content=text, return_display=format_count(pages.read, "file") + "".join(f"; {n}" for n in notes)
        )

    async def _resolve_paths(self, context: ToolContext, needs: ReadManyFilesNeeds) -> _ResolvedPaths:
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
        return _ResolvedPaths(paths=list(paths), notes=notes)

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


class _ResolvedPaths(Data, frozen=True):
    paths: list[str]
    notes: list[str]


async def _find_files(context: ToolContext, needs: ReadManyFilesNeeds, pattern: str) -> list[str]:
    try:
        return await needs.find(context.workspace, pattern)
    except ToolFailure:
        raise
    except (OllmError, ValueError) as error:
        raise ToolFailure("InvalidPattern", f"{pattern} is not a glob: {error}") from error

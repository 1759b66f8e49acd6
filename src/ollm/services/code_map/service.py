"""`CodeMapService`: outlines and maps of a workspace's code for tools and commands."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ollm.config.settings import CodeMapSettings
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.services.code_map.facts import FactsCache, FileFacts
from ollm.services.code_map.languages import find_language
from ollm.services.code_map.project_map import defines_itself, render_code_map
from ollm.services.code_map.syntax_tree import CodeDefinition, is_available, match_symbol

FIRST_LINE_TOKENS = 500  # The first line of any map fits into this.


class CodeMap(Data, frozen=True):
    """A map as text. `files` were read, `left_out` exceeded the file limit. `has_more`: the text is empty because
    nothing fits."""

    text: str
    files: int
    left_out: int = 0
    has_more: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        return (
            f"{format_count(self.left_out, 'more file')} not read (codeMap.maxFiles); name a directory for the rest",
        )


class FoundSymbol(Data, frozen=True):
    path: str
    definition: CodeDefinition


class CodeMapService:
    """Finds the definitions in the files of any root. `folder` holds the cache. Work runs in a thread and stops when
    its caller is cancelled."""

    def __init__(self, settings: CodeMapSettings, folder: Path) -> None:
        self.settings = settings
        self._folder = folder

    async def build_map(
        self,
        root: Path,
        paths: Sequence[str],
        max_tokens: int | None,
        count: Callable[[str], int],
        prefix: str = "",
    ) -> CodeMap:
        """Build a map of these files (paths from the root) within the token budget, by default the configured one.
        `prefix` precedes each path."""
        kept = self._select_files(paths)

        def work(most: int) -> str:
            return render_code_map(facts, most, count, prefix)

        facts = await self._read_facts(root, kept)
        text = await asyncio.to_thread(work, max_tokens or self.settings.max_tokens)
        has_more = not text and bool(await asyncio.to_thread(work, FIRST_LINE_TOKENS))
        wanted = len(list(filter(find_language, paths)))
        return CodeMap(text=text, files=len(kept), left_out=wanted - len(kept), has_more=has_more)

    async def find_symbol(self, root: Path, paths: Sequence[str], symbol: str) -> list[FoundSymbol]:
        """Find the definitions of a symbol, most likely first."""
        facts = await self._read_facts(root, self._select_files(paths))
        return [
            FoundSymbol(path=file.path, definition=found)
            for file in facts
            for found in match_symbol(symbol, file.definitions)
        ]

    async def list_symbols(self, root: Path, paths: Sequence[str]) -> list[str]:
        facts = await self._read_facts(root, self._select_files(paths))
        names = (found.full_name for file in facts for found in file.definitions if defines_itself(found))
        return list(dict.fromkeys(names))

    def _select_files(self, paths: Sequence[str]) -> list[str]:
        """Select the files that can be parsed: those at the top first if there are too many."""
        wanted = list(filter(find_language, paths))
        if len(wanted) > self.settings.max_files:
            wanted.sort(key=lambda path: (path.count("/"), path))
        return wanted[: self.settings.max_files]

    async def _read_facts(self, root: Path, paths: Sequence[str]) -> list[FileFacts]:
        """Read the facts of these files. Returns [] without the extra `[code]`."""
        if not is_available():
            return []
        stop = threading.Event()
        try:
            return await asyncio.to_thread(FactsCache(self._folder, root).read, paths, stop.is_set)
        finally:
            stop.set()

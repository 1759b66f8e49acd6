"""`CodeMapService`: outlines of a workspace's code, and maps within a token budget: definitions ranked by use in other
files."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from ollm.config.settings import CodeMapSettings
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.services.code_map.facts import FactsCache, FileFacts
from ollm.services.code_map.languages import find_language, get_family
from ollm.services.code_map.syntax_tree import CodeDefinition, CountTokens, is_available, match_symbol
from ollm.system.paths import show_name
from ollm.system.terminal_text import make_printable

MAX_MAP_SIGNATURE_CHARS = 100
MAX_FILE_DEFINITIONS = 12
UNRELATED_SHARE = 0.02  # The weight of a use if its file never names the definition's place.
TEST_SHARE = 0.3
PRIVATE_SHARE = 0.2
TESTED_SHARE = 0.1
VENDORED_SHARE = 0.02  # The weight of definitions and uses in third-party code.
VENDOR_FOLDERS = frozenset({"vendor", "third_party", "thirdparty", "_vendor"})
MIN_TELLING_CHARS = 3  # Shorter names are often words, such as In, No and If.
_TEST = re.compile(r"(?<![A-Za-z])[Tt]ests?(?![a-z])|(?<=[a-z])Tests?(?![a-z])")
_get_order = itemgetter(0, 1, 2)
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
        count: CountTokens,
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


def is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path.startswith(("tests/", "test/", "spec/")) or "/tests/" in path or _TEST.search(name) is not None


def score_definitions(files: Sequence[FileFacts]) -> list[list[float]]:
    """Score each definition of each file by the files that use it. Definitions of the same name share the score."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, facts in enumerate(files):
        for inner, found in enumerate(facts.definitions):
            if defines_itself(found):
                places[found.name].append((number, inner))
    weights = [[0.0] * len(facts.definitions) for facts in files]
    families = [get_family(facts.path) for facts in files]
    for user, facts in enumerate(files):
        used = set(facts.references.split())
        share = _weigh_place(facts.path, TEST_SHARE)
        own = {found.name for found in facts.definitions}
        for name in (used & places.keys()) - own:
            for number, inner in places[name]:
                if families[number] != families[user]:
                    continue
                found = files[number].definitions[inner]
                related = 1.0 if _names_place(used, files[number].path, found) else UNRELATED_SHARE
                weights[number][inner] += share * related / len(places[name])
    for number, facts in enumerate(files):
        defined = _weigh_place(facts.path, TESTED_SHARE)
        for inner, found in enumerate(facts.definitions):
            weights[number][inner] *= defined * (PRIVATE_SHARE if found.name.startswith("_") else 1.0)
    return weights


def _weigh_place(path: str, test_share: float) -> float:
    """Weigh a file by its place: tests less, third-party code hardly at all."""
    is_own = VENDOR_FOLDERS.isdisjoint(path.split("/")[:-1])
    return (test_share if is_test(path) else 1.0) * (1.0 if is_own else VENDORED_SHARE)


def defines_itself(found: CodeDefinition) -> bool:
    """Return False for entries that only contain or name definitions: `impl Cart { … }`, `mod cart;`."""
    return found.kind != "impl" and not (found.kind == "module" and found.line == found.last)


def _names_place(used: set[str], path: str, found: CodeDefinition) -> bool:
    """Return True if a file that uses a name also mentions its class or module."""
    if found.scope:
        return found.scope.rpartition(".")[2] in used
    folder, _, name = path.rpartition("/")
    if name.partition(".")[0] in used or folder.rpartition("/")[2] in used:
        return True
    return len(found.name) >= MIN_TELLING_CHARS and found.name[:1].isupper()


def render_code_map(files: Sequence[FileFacts], max_tokens: int, count: CountTokens, prefix: str = "") -> str:
    """Render the definitions most used by other files in at most so many tokens. The output is deterministic. `prefix`
    precedes each path."""
    weights = score_definitions(files)
    if not any(map(any, weights)):  # In this project no file uses another.
        weights = [
            [float(found.depth == 0 and defines_itself(found)) for found in facts.definitions] for facts in files
        ]
    order = sorted(range(len(files)), key=lambda number: (-sum(weights[number]), files[number].path))
    return _render_definitions([(files[number], weights[number]) for number in order], max_tokens, count, prefix)


def _render_definitions(
    ranked: Sequence[tuple[FileFacts, Sequence[float]]], max_tokens: int, count: CountTokens, prefix: str
) -> str:
    """Render the highest-scoring definitions of all files, as many as fit, each below its file."""
    heaviest = []
    for place, (facts, weights) in enumerate(ranked):
        used = [(-weight, place, found.line, found) for weight, found in zip(weights, facts.definitions, strict=True)]
        heaviest += sorted((entry for entry in used if entry[0] < 0), key=_get_order)[:MAX_FILE_DEFINITIONS]
    left, shown = max_tokens, dict[int, list[CodeDefinition]]()
    for _, place, _, found in sorted(heaviest, key=_get_order):
        path = "" if place in shown else f"{prefix}{ranked[place][0].path}\n"
        price = count(f"{_render_line(found)}\n") + (count(path) if path else 0)
        if price <= left:
            left -= price
            shown.setdefault(place, []).append(found)
        elif left < max_tokens // 20:
            break
    lines = [line for place in sorted(shown) for line in _render_file(f"{prefix}{ranked[place][0].path}", shown[place])]
    return "\n".join(lines)


def _render_file(path: str, definitions: Sequence[CodeDefinition]) -> list[str]:
    ordered = sorted(definitions, key=lambda found: found.line)
    return [show_name(path), *map(_render_line, ordered)]


def _render_line(found: CodeDefinition) -> str:
    signature = found.signature.strip()
    if found.scope and not signature.startswith("func ("):
        signature = f"{found.scope}: {signature}"
    if len(signature) > MAX_MAP_SIGNATURE_CHARS:
        signature = f"{signature[: MAX_MAP_SIGNATURE_CHARS - 1]}…"
    return f"  {found.line} {make_printable(signature)}"

"""`FileDiscoveryService` (S6, D): what other parts call."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, ParamSpec, Protocol, TypeVar

import msgspec

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.counting import format_count
from ollm.domain.errors import NotFoundError
from ollm.domain.files import ChangeKind, DirectoryContent, DiscoveryOptions, FileEntry, TreeTooLarge
from ollm.domain.struct import Data
from ollm.services.file_discovery.cache import DiscoveryCache, DiscoveryResult, get_time_ns
from ollm.services.file_discovery.entries import EntryMaker
from ollm.services.file_discovery.explain import Explanation, explain_path
from ollm.services.file_discovery.git import GitFinder
from ollm.services.file_discovery.globs import compile_globs
from ollm.services.file_discovery.parallel_walk import iter_listings
from ollm.services.file_discovery.pattern_list import IgnorePatterns, flatten_rules, is_ignored
from ollm.services.file_discovery.rules import BadIgnoreRule
from ollm.services.file_discovery.tree_scan import TreeScanner
from ollm.services.file_discovery.walk import Walk, WalkOptions, make_walk
from ollm.services.file_discovery.watches import RootWatches

log = logging.getLogger(__name__)
_BATCH_ENTRIES = 500
P = ParamSpec("P")
R = TypeVar("R")


class Disposable(Protocol):
    """Something to be given back."""

    def dispose(self) -> None: ...


class PathMatches(Data, frozen=True):
    """Paths from the root. `anywhere`: the glob had to be looked for at every depth. `too_deep` and `unreadable` count
    directories that were not looked into; `in_part` names those of whose files not all are among the paths, None when
    a glob chose among them. `directories` are all that hold one of the paths, where no glob chose."""

    paths: list[str]
    directories: tuple[str, ...] = ()
    in_part: frozenset[str] | None = None
    anywhere: bool = False
    too_deep: int = 0
    unreadable: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a limit cut and what could not be read, in words."""
        notes = []
        if self.too_deep:
            notes.append(
                f"skipped {format_count(self.too_deep, 'directory', 'directories')} deeper than fileDiscovery.maxDepth"
            )
        if self.unreadable:
            notes.append(f"{format_count(self.unreadable, 'directory', 'directories')} could not be read")
        return tuple(notes)


class FileDiscoveryService:
    """Finds the files of a project. One service serves any number of roots; walks run in a thread.

    `home` is where git keeps a person's own settings, `config_home` what XDG_CONFIG_HOME says if it says something.
    """

    def __init__(self, settings: FileDiscoverySettings, home: Path, config_home: Path | None = None) -> None:
        self._settings = settings
        self._git = GitFinder(str(home), str(config_home or home / ".config"))
        self._cache = DiscoveryCache()
        self._watches = RootWatches(self._make_watch_walk)
        self._walking: dict[str, threading.Lock] = {}
        self._said: set[BadIgnoreRule] = set()
        self._scanners: dict[str, TreeScanner] = {}

    async def discover(self, options: DiscoveryOptions) -> AsyncIterator[FileEntry]:
        """Entries as they are found, the first long before the walk is over. Stop reading and the walk stops."""
        batches = self._iter_batches(self._complete_options(options))
        while batch := await _run_in_thread(_take_batch, batches):
            for entry in batch:
                yield entry

    async def discover_all(self, options: DiscoveryOptions) -> list[FileEntry]:
        """All entries: directory by directory, the files of each by name before what is below it."""
        return list((await self.collect_result(options)).entries)

    async def collect_result(self, options: DiscoveryOptions) -> DiscoveryResult:
        """All entries, with what could not be read and what a limit cut."""
        return await _run_in_thread(self._collect_result, self._complete_options(options))

    def read_paths(self, options: DiscoveryOptions) -> PathMatches:
        """The paths of one walk, in the same order, for a caller that asks once and has no event loop."""
        walk, maker = self._make_walk(self._complete_options(options)), EntryMaker(options)
        paths = [path for listing in iter_listings(walk) for path in maker.list_paths(listing)]
        self._warn(walk)
        return PathMatches(paths=paths, too_deep=len(walk.too_deep), unreadable=len(walk.unreadable))

    def scan_tree(self, root: str, max_files: int) -> list[DirectoryContent]:
        """Every directory as it is now, each before what is below it; links are names like others. Of what is known
        only the names of a directory are used that shows no change. Raises TreeTooLarge."""
        walk = self._make_walk(self._complete_options(DiscoveryOptions(root=root, follow_symlinks=False)))
        found: list[DirectoryContent] = []
        count = 0
        for listing in self._scanners.setdefault(walk.get_path(""), TreeScanner()).iter_listings(walk):
            files, folders, others = listing.files, listing.folders, listing.others
            count += len(files) + len(others)
            if count > max_files:
                raise TreeTooLarge(max_files)
            shown = len(files) + len(folders) + len(others)
            names = listing.names
            hidden = [] if shown == len(names) else sorted(set(names).difference(files, folders, others))
            found.append(DirectoryContent(listing.place.relative, files, folders, others, hidden))
        self._warn(walk)
        return found

    async def find_paths(self, options: DiscoveryOptions, *groups: Sequence[str]) -> PathMatches:
        """The files that match at least one glob of every group."""
        return await _run_in_thread(self._find_paths, self._complete_options(options), groups)

    async def find(self, root: str | Path, pattern: str, *, within: str | None = None) -> PathMatches:
        """Files below the root that match a glob from there, hidden ones too. `*.py` means those right in the root, as
        in a shell; where there are none it is taken as `**/*.py`."""
        options = DiscoveryOptions(root=str(root), within=within)
        anchored = pattern if "/" in pattern else f"/{pattern}"
        found = await self.find_paths(options, (anchored,))
        if found.paths or anchored == pattern:
            return found
        found = await self.find_paths(options, (pattern,))
        return msgspec.structs.replace(found, anywhere=bool(found.paths))

    def watch_changes(self, root: str, callback: Callable[[ChangeKind, str], None]) -> Disposable:
        """Call back for every file that comes, changes or goes, until disposed. Changes made after this returns are
        heard. Called in the running event loop if there is one, else in the watch's own thread."""
        return self._watches.watch(_resolve_directory(root), callback)

    def get_watch_state(self, root: str) -> Literal["events", "polling"] | None:
        """How a root is watched: told by the system, or looking every now and then where that is not possible."""
        return self._watches.get_state(os.path.realpath(root))

    async def load_ignore_patterns(self, root: str) -> list[str]:
        """All rules of the tree as one list of patterns from its root; the last that matches decides."""
        return await _run_in_thread(self._load_patterns, _resolve_directory(root))

    def should_ignore(self, path: str, patterns: Sequence[str]) -> bool:
        """Whether the patterns hide a path from the root. `dir/` is a directory, anything else a file."""
        return is_ignored(path, patterns)

    async def explain(self, root: str, path: str) -> Explanation:
        """Why a path below the root is, or is not, among the files."""
        real = _resolve_directory(root)
        return await _run_in_thread(
            lambda: explain_path(self._make_walk(DiscoveryOptions(root=real)), Path(real), path)
        )

    def list_bad_rules(self) -> list[BadIgnoreRule]:
        """Lines of ignore files that could not be used so far (D624)."""
        return sorted(self._said, key=lambda bad: (bad.source, bad.line))

    def close(self) -> None:
        self._watches.close()

    def _collect_result(self, options: DiscoveryOptions) -> DiscoveryResult:
        """Calls that come side by side wait for one walk, and share its answer."""
        answer = self._get_cached(options)
        if answer is None:
            with self._walking.setdefault(options.root, threading.Lock()):
                answer = self._get_cached(options) or self._read_tree(options)
        return answer

    def _get_cached(self, options: DiscoveryOptions) -> DiscoveryResult | None:
        return None if options.stat else self._cache.get(options, self._watches.get_generation(options.root))

    def _read_tree(self, options: DiscoveryOptions) -> DiscoveryResult:
        generation = self._watches.get_generation(options.root)
        taken, walk, maker = get_time_ns(), self._make_walk(options), EntryMaker(options)
        entries: list[FileEntry] = []
        for listing in iter_listings(walk):
            entries += maker.make_entries(listing)
        self._warn(walk)
        return self._cache.put(options, walk, entries, taken, generation)

    def _find_paths(self, options: DiscoveryOptions, groups: Sequence[Sequence[str]]) -> PathMatches:
        """One walk serves every glob: all paths are kept, and searched at once."""
        searches = [compile_globs(globs) for globs in groups if not {"**", "**/*"} & set(globs)]
        answer = self._collect_result(options)
        paths = answer.paths
        for search in searches:
            if search is not None:
                found = search.find_matches("", paths)
                paths = [path for path in paths if path in found]
        whole = not any(searches)
        return PathMatches(
            paths=list(paths),
            directories=answer.parents if whole else (),
            in_part=answer.in_part if whole else None,
            too_deep=len(answer.too_deep),
            unreadable=len(answer.unreadable),
        )

    def _iter_batches(self, options: DiscoveryOptions) -> Iterator[Sequence[FileEntry]]:
        cached = self._get_cached(options)
        if cached is not None:
            yield cached.entries
            return
        generation = self._watches.get_generation(options.root)
        taken, walk, maker = get_time_ns(), self._make_walk(options), EntryMaker(options)
        entries: list[FileEntry] = []
        for listing in walk:
            batch = maker.make_entries(listing)
            entries += batch
            yield batch
        self._warn(walk)
        self._cache.put(options, walk, entries, taken, generation)

    def _load_patterns(self, root: str) -> list[str]:
        walk = self._make_walk(DiscoveryOptions(root=root))
        for _ in walk:
            pass
        self._warn(walk)
        return IgnorePatterns(flatten_rules(walk.reader.rules, walk.reader.offset), root)

    def _make_watch_walk(self, root: str) -> Walk:
        return self._make_walk(self._complete_options(DiscoveryOptions(root=root)))

    def _make_walk(self, options: DiscoveryOptions) -> Walk:
        within = os.path.realpath(options.within) if options.within else None
        wanted = WalkOptions(
            options.root,
            max_depth=options.max_depth,
            exclude_patterns=options.exclude_patterns,
            follow_symlinks=bool(options.follow_symlinks),
            hidden=options.hidden,
        )
        return make_walk(wanted, self._git, self._settings.builtin_ignores, within)

    def _warn(self, walk: Walk) -> None:
        for bad in walk.reader.bad:
            if bad not in self._said:
                self._said.add(bad)
                log.warning("%s:%d is skipped, %s: %s", bad.source, bad.line, bad.reason, bad.text)
        if walk.unreadable:
            log.warning("%d directories could not be read, such as %s.", len(walk.unreadable), walk.unreadable[0])

    def _complete_options(self, options: DiscoveryOptions) -> DiscoveryOptions:
        """The options with what they leave open filled in, and the root real and absolute."""
        follow, depth = options.follow_symlinks, options.max_depth
        return msgspec.structs.replace(
            options,
            root=_resolve_directory(options.root),
            follow_symlinks=self._settings.follow_symlinks if follow is None else follow,
            max_depth=self._settings.max_depth if depth is None else depth,
        )


async def _run_in_thread(call: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """`asyncio.to_thread`; a command that only lists files does without asyncio."""
    import asyncio

    return await asyncio.to_thread(call, *arguments, **named)


def _resolve_directory(given: str) -> str:
    real = os.path.realpath(given)
    if os.path.isdir(real):  # noqa: PTH112 - entries are made of strings
        return real
    what = "is not a directory" if os.path.exists(real) else "does not exist"  # noqa: PTH110
    raise NotFoundError(f"{given} {what}.", action="Name a directory.")


def _take_batch(batches: Iterator[Sequence[FileEntry]]) -> list[FileEntry]:
    """The next entries, a few hundred at a time once there are that many; empty at the end."""
    taken: list[FileEntry] = []
    for batch in batches:
        taken.extend(batch)
        if len(taken) >= _BATCH_ENTRIES:
            break
    return taken

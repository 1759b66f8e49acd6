"""`FileDiscoveryService` (S6, D): the interface of file discovery. Results are cached until a change."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import msgspec

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.errors import NotFoundError
from ollm.domain.files import ChangeKind, DirectoryContent, DiscoveryOptions, EntryType, FileEntry, TreeTooLarge
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.services.file_discovery.patterns import compile_globs
from ollm.services.file_discovery.rules import (
    BadIgnoreRule,
    GitFinder,
    IgnoreRule,
    Matcher,
    RuleReader,
    Signature,
    parse_ignore_rules,
    read_signature,
)
from ollm.services.file_discovery.walk import Explanation, Walk, explain_path
from ollm.system.folders import CLOCK_STEP_NANOSECONDS, FolderMemory

if TYPE_CHECKING:
    from ollm.services.file_discovery.watch import RootWatch

_MAX_RESULTS = 8


class DiscoveryResult(Data, frozen=True, dict=True):
    """A finished walk: its entries and the signatures of everything it depends on."""

    entries: tuple[FileEntry, ...]
    seen: dict[str, Signature]
    taken: int
    unreadable: tuple[str, ...]
    too_deep: tuple[str, ...]
    in_part: frozenset[str]
    links: tuple[str, ...] = ()

    @cached_property
    def paths(self) -> list[str]:
        return [entry.relative_path for entry in self.entries]

    @cached_property
    def parents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([path.rpartition("/")[0] for path in self.paths]))

    def is_valid(self) -> bool:
        return self._is_settled and all(map(eq, map(read_signature, self.seen), self.seen.values()))

    @cached_property
    def _is_settled(self) -> bool:
        """True if all files are old enough at the time of reading that a later change must alter their timestamps."""
        return all(seen is None or seen[0] < self.taken - CLOCK_STEP_NANOSECONDS for seen in self.seen.values())


class EntryMaker:
    """Selects entries by the include globs, and adds size and time if requested."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._options = options
        self._include = compile_globs(options.include_patterns)

    def make_entries(self, content: DirectoryContent) -> list[FileEntry]:
        prefix, root = content.prefix, self._options.root
        files = self._filter_included(prefix, content.files)
        if not self._options.directories and not self._options.stat:
            return [FileEntry(root, prefix + name) for name in files]
        folders = self._filter_included(prefix, content.folders) if self._options.directories else []
        return [
            *(self._make_entry(prefix + name, "file") for name in files),
            *(self._make_entry(prefix + name, "directory") for name in folders),
        ]

    def _filter_included(self, prefix: str, names: list[str]) -> list[str]:
        return names if self._include is None else self._include.select(prefix, names)

    def _make_entry(self, relative: str, kind: EntryType) -> FileEntry:
        entry = FileEntry(root=self._options.root, relative_path=relative, type=kind)
        if not self._options.stat:
            return entry
        try:
            status = os.stat(entry.path)  # noqa: PTH116 - called for every file of a tree
        except OSError:
            return entry
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        return msgspec.structs.replace(entry, size=status.st_size, modified=modified)


log = logging.getLogger(__name__)
_BATCH_ENTRIES = 500
P = ParamSpec("P")
R = TypeVar("R")


class PathMatches(Data, frozen=True):
    """Paths from the root. `anywhere`: the glob was searched at every depth. `in_part` are the directories with files
    that are not among the paths; `directories` are all that contain one of the paths. With a glob, these are None and
    empty. `links` are the symbolic links among the paths."""

    paths: list[str]
    directories: tuple[str, ...] = ()
    in_part: frozenset[str] | None = None
    anywhere: bool = False
    links: frozenset[str] = frozenset()
    too_deep: int = 0
    unreadable: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
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

    `home` is the home directory of git's user settings, `config_home` the value of XDG_CONFIG_HOME, if set. `folders`
    is shared with other scanners of the same trees.
    """

    def __init__(
        self,
        settings: FileDiscoverySettings,
        home: Path,
        config_home: Path | None = None,
        folders: FolderMemory | None = None,
    ) -> None:
        self._settings = settings
        self._git = GitFinder(str(home), str(config_home or home / ".config"))
        self._answers: OrderedDict[DiscoveryOptions, DiscoveryResult] = OrderedDict()  # The newest answer is last.
        self._watches: list[RootWatch] = []
        self._walking: dict[str, threading.Lock] = {}
        self._said: set[BadIgnoreRule] = set()
        self._folders = FolderMemory() if folders is None else folders

    async def discover(self, options: DiscoveryOptions) -> AsyncIterator[FileEntry]:
        """Iterate over entries as they are found. The walk stops when the caller stops reading."""
        wanted = self._complete_options(options)
        cached = await _run_in_thread(self._get_cached, wanted)
        batches = iter([cached.entries]) if cached is not None else self._iter_walk(wanted)
        while batch := await _run_in_thread(_take_batch, batches):
            for entry in batch:
                yield entry

    async def discover_all(self, options: DiscoveryOptions) -> list[FileEntry]:
        """Return all entries, directory by directory: the files of each by name, then its subdirectories."""
        return list((await self.collect_result(options)).entries)

    async def collect_result(self, options: DiscoveryOptions) -> DiscoveryResult:
        """Return all entries, with unreadable directories and those cut off by a limit."""
        return await _run_in_thread(self._collect_result, self._complete_options(options))

    def read_paths(self, options: DiscoveryOptions, *, links: bool = False) -> PathMatches:
        """Read the paths of one walk, in the same order, for a one-off command without an event loop. `links` adds
        symbolic links."""
        walk, include = self._make_walk(self._complete_options(options)), compile_globs(options.include_patterns)
        paths: list[str] = []
        for content in walk.iter_directories():
            names, prefix = content.files, content.prefix
            if links and content.others:
                names = sorted([*names, *walk.find_links(prefix, content.others)])
            paths += [prefix + name for name in (names if include is None else include.select(prefix, names))]
        self._warn(walk)
        return PathMatches(paths=paths, too_deep=len(walk.too_deep), unreadable=len(walk.unreadable))

    def scan_tree(self, root: str, max_files: int) -> list[DirectoryContent]:
        """Scan all directories, each before its contents: symbolic links are listed but not followed.
        Raises TreeTooLarge."""
        walk = self._make_walk(self._complete_options(DiscoveryOptions(root=root, follow_symlinks=False)))
        found: list[DirectoryContent] = []
        count = 0
        self._folders.look()
        for content in walk.iter_directories(self._folders):
            count += len(content.files) + len(content.others)
            if count > max_files:
                raise TreeTooLarge(max_files)
            found.append(content)
        self._warn(walk)
        return found

    async def find_paths(self, options: DiscoveryOptions, *groups: Sequence[str]) -> PathMatches:
        """Find the files that match at least one glob of every group."""
        return await _run_in_thread(self._find_paths, self._complete_options(options), groups)

    async def find(
        self, root: str | Path, pattern: str, *, within: str | None = None, links: bool = False
    ) -> PathMatches:
        """Find files below the root that match a glob, including hidden ones, and symbolic links if `links`. As in a
        shell, `*.py` matches only in the root; if nothing matches there, it is searched as `**/*.py`."""
        options = self._complete_options(DiscoveryOptions(root=str(root), within=within))
        anchored = pattern if "/" in pattern else f"/{pattern}"
        found = await _run_in_thread(self._find_paths, options, [(anchored,)], links=links)
        if found.paths or anchored == pattern:
            return found
        found = await _run_in_thread(self._find_paths, options, [(pattern,)], links=links)
        return msgspec.structs.replace(found, anywhere=bool(found.paths))

    def watch_changes(self, root: str, callback: Callable[[ChangeKind, str], None]) -> RootWatch:
        """Call back for every file that is created, changed or deleted, until disposed. Covers all changes after this
        returns. Runs in the running event loop, if any, else in the watch's own thread."""
        from ollm.services.file_discovery.watch import RootWatch

        options = self._complete_options(DiscoveryOptions(root=root))
        watch = RootWatch(options.root, lambda: self._make_walk(options), callback)
        watch.start()
        self._watches.append(watch)
        return watch

    async def load_ignore_patterns(self, root: str) -> list[str]:
        """Load all rules of the tree as patterns from the top of its project. The last match decides."""
        return await _run_in_thread(self._load_patterns, _resolve_directory(root))

    def should_ignore(self, path: str, patterns: Sequence[str]) -> bool:
        """Return True if the patterns hide a path from the root, or a directory above it. A path that ends with a slash
        is a directory."""
        directory = path.endswith("/")
        if isinstance(patterns, IgnorePatterns):
            directory = directory or (os.path.isabs(path) and os.path.isdir(path))  # noqa: PTH112, PTH117 - strings
            path = os.path.relpath(os.path.join(patterns.root, path), patterns.top)  # noqa: PTH118
        parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
        matcher = _make_matcher(tuple(patterns))
        return any(
            matcher.hides(b"/".join(parts[:end]), directory=directory or end < len(parts))
            for end in range(1, len(parts) + 1)
        )

    async def explain(self, root: str, path: str) -> Explanation:
        """Explain why a path below the root is, or is not, among the files."""
        real = _resolve_directory(root)
        return await _run_in_thread(
            lambda: explain_path(self._make_walk(DiscoveryOptions(root=real)), Path(real), path)
        )

    def list_bad_rules(self) -> list[BadIgnoreRule]:
        """List the invalid lines found in ignore files so far (D624)."""
        return sorted(self._said, key=lambda bad: (bad.source, bad.line))

    def close(self) -> None:
        for watch in self._watches:
            watch.dispose()

    def _collect_result(self, options: DiscoveryOptions) -> DiscoveryResult:
        """Collect a result. Concurrent calls wait for one walk and share its result."""
        answer = self._get_cached(options)
        if answer is None:
            with self._walking.setdefault(options.root, threading.Lock()):
                answer = self._get_cached(options) or self._read_tree(options)
        return answer

    def _get_cached(self, options: DiscoveryOptions) -> DiscoveryResult | None:
        """Return a cached result that is still valid, or None. Thread-safe, since walks run in threads."""
        answer = self._answers.get(options)
        if options.stat or answer is None or not answer.is_valid():
            return None
        self._keep(options, answer)
        return answer

    def _keep(self, options: DiscoveryOptions, answer: DiscoveryResult) -> None:
        self._answers.pop(options, None)
        self._answers[options] = answer
        while len(self._answers) > _MAX_RESULTS:
            self._answers.popitem(last=False)

    def _read_tree(self, options: DiscoveryOptions) -> DiscoveryResult:
        answers: list[DiscoveryResult] = []
        for _ in self._iter_walk(options, answers.append):
            pass
        return answers[0]

    def _iter_walk(
        self, options: DiscoveryOptions, finish: Callable[[DiscoveryResult], None] = lambda _: None
    ) -> Iterator[Sequence[FileEntry]]:
        """Iterate over the entries, one directory after the other. The complete result is cached at the end."""
        taken, walk, maker = time.time_ns(), self._make_walk(options), EntryMaker(options)
        entries: list[FileEntry] = []
        for content in walk.iter_directories():
            batch = maker.make_entries(content)
            entries += batch
            yield batch
        self._warn(walk)
        answer = DiscoveryResult(
            entries=tuple(entries),
            seen={**walk.directories, **walk.reader.signatures},
            taken=taken,
            unreadable=tuple(walk.unreadable),
            too_deep=tuple(walk.too_deep),
            in_part=frozenset(walk.in_part),
            links=tuple(walk.links),
        )
        self._keep(options, answer)
        finish(answer)

    def _find_paths(
        self, options: DiscoveryOptions, groups: Sequence[Sequence[str]], *, links: bool = False
    ) -> PathMatches:
        """Find matching paths. One cached walk serves all globs."""
        searches = [compile_globs(globs) for globs in groups if not {"**", "**/*"} & set(globs)]
        answer = self._collect_result(options)
        paths = [*answer.paths, *answer.links] if links else answer.paths
        for search in searches:
            if search is not None:
                paths = search.select("", paths)
        whole = not any(searches)
        return PathMatches(
            paths=list(paths),
            links=frozenset(answer.links).intersection(paths) if links else frozenset(),
            directories=answer.parents if whole else (),
            in_part=answer.in_part if whole else None,
            too_deep=len(answer.too_deep),
            unreadable=len(answer.unreadable),
        )

    def _load_patterns(self, root: str) -> list[str]:
        walk = self._make_walk(DiscoveryOptions(root=root))
        for _ in walk.iter_directories():
            pass
        self._warn(walk)
        return IgnorePatterns(map(_flatten_rule, walk.reader.rules), root, walk.reader.top)

    def _make_walk(self, options: DiscoveryOptions) -> Walk:
        within = os.path.realpath(options.within) if options.within else None
        reader = RuleReader(options.root, self._git.find_info(options.root), within)
        return Walk(options, reader, reader.read_top_layers(self._settings.builtin_ignores))

    def _warn(self, walk: Walk) -> None:
        for bad in walk.reader.bad:
            if bad not in self._said:
                self._said.add(bad)
                log.warning("%s:%d is skipped, %s: %s", bad.source, bad.line, bad.reason, bad.text)
        if walk.unreadable:
            log.warning("%d directories could not be read, such as %s.", len(walk.unreadable), walk.unreadable[0])

    def _complete_options(self, options: DiscoveryOptions) -> DiscoveryOptions:
        """Fill in default options, and resolve the root to a real, absolute path."""
        follow, depth = options.follow_symlinks, options.max_depth
        return msgspec.structs.replace(
            options,
            root=_resolve_directory(options.root),
            follow_symlinks=self._settings.follow_symlinks if follow is None else follow,
            max_depth=self._settings.max_depth if depth is None else depth,
        )


async def _run_in_thread(call: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    import asyncio  # A command that only lists files never needs it.

    return await asyncio.to_thread(call, *arguments, **named)


def _resolve_directory(given: str) -> str:
    real = os.path.realpath(given)
    if os.path.isdir(real):  # noqa: PTH112 - entries are made of strings
        return real
    what = "is not a directory" if os.path.exists(real) else "does not exist"  # noqa: PTH110
    raise NotFoundError(f"{given} {what}.", action="Name a directory.")


def _take_batch(batches: Iterator[Sequence[FileEntry]]) -> list[FileEntry]:
    """Take the next entries, about five hundred at a time. Empty at the end."""
    taken: list[FileEntry] = []
    for batch in batches:
        taken.extend(batch)
        if len(taken) >= _BATCH_ENTRIES:
            break
    return taken


class IgnorePatterns(list[str]):
    """Ignore patterns of a directory, from the top of its project. Relative paths count from the directory."""

    def __init__(self, patterns: Iterable[str], root: str, top: str) -> None:
        super().__init__(patterns)
        self.root, self.top = root, top


def _flatten_rule(rule: IgnoreRule) -> str:
    pattern = os.fsencode(rule.text).removeprefix(b"!" if rule.negated else b"")
    start = b"".join((b"/", *(_ESCAPES.get(code, bytes([code])) for code in rule.base), b"/")) if rule.base else b""
    if b"/" in pattern.rstrip(b"/"):
        start, pattern = start or b"/", pattern.removeprefix(b"/")
    elif start:
        start += b"**/"
    return os.fsdecode((b"!" if rule.negated else b"") + start + pattern)


_ESCAPES = {code: b"\\" + bytes([code]) for code in b"*?[\\"}


@lru_cache(maxsize=16)
def _make_matcher(patterns: tuple[str, ...]) -> Matcher:
    return Matcher(parse_ignore_rules([os.fsencode(pattern) for pattern in patterns], b"", "patterns").rules)

"""The walk: directory by directory, pruned by the rules, which look at all names of a directory at once."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator

from ollm.domain.files import EntryType
from ollm.services.file_discovery.layers import (
    GitFinder,
    RuleLayers,
    RuleReader,
    Signature,
    is_below,
    read_signature,
)
from ollm.services.file_discovery.patterns import compile_globs
from ollm.services.file_discovery.rules import Names

Reading = tuple[Signature, str, list[str], list[str], list[str]]
"""Its signature, why it could not be read, its files and directories in order, all other names."""
GONE = "gone"
UNREADABLE = "unreadable"
DirectoryStamp = tuple[int, int, int, int]
CLOCK_STEP_NANOSECONDS = 20_000_000  # a directory's time moves in steps: what is younger than one proves nothing
_COARSE_STEP_NANOSECONDS = 2_000_000_000  # of file systems that keep whole seconds
_NO_LINKS: frozenset[str] = frozenset()


def read_directory(path: str, *, signed: bool = True) -> Reading:
    """The signature is taken first: a change while the names are read shows as one."""
    seen, others = read_signature(path) if signed else None, _EntryList()
    try:
        with os.scandir(path) as entries:
            files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False) or others.add(entry)]
    except FileNotFoundError:
        return seen, GONE, [], [], []
    except OSError:
        return seen, UNREADABLE, [], [], []
    files.sort()
    if not others:
        return seen, "", files, [], []
    folders = [entry.name for entry in others if entry.is_dir(follow_symlinks=False)]
    folders.sort()
    return seen, "", files, folders, [entry.name for entry in others if not entry.is_dir(follow_symlinks=False)]


class _EntryList(list["os.DirEntry[str]"]):
    """The entries that are no files, gathered while the names of those are read: no other entry is kept in memory."""

    def add(self, entry: os.DirEntry[str]) -> bool:
        self.append(entry)
        return False


class WalkOptions:
    """Options of a walk below `root`, a real and absolute path. Files of the root itself are depth 0. Directories are
    `signed` with their times, unless nobody will ask whether they have changed."""

    __slots__ = ("exclude_patterns", "follow_symlinks", "hidden", "max_depth", "root", "signed")

    def __init__(
        self,
        root: str,
        *,
        max_depth: int | None = None,
        exclude_patterns: tuple[str, ...] = (),
        follow_symlinks: bool = False,
        hidden: bool = True,
        signed: bool = True,
    ) -> None:
        self.root, self.max_depth, self.exclude_patterns = root, max_depth, exclude_patterns
        self.follow_symlinks, self.hidden, self.signed = follow_symlinks, hidden, signed


class PendingDirectory:
    """A directory to be read, with the rules in force above it. `linked`: a symbolic link led here or above."""

    __slots__ = ("depth", "layers", "linked", "prefix", "relative")

    def __init__(self, relative: str, prefix: str, depth: int, layers: RuleLayers, linked: bool = False) -> None:
        self.relative, self.prefix, self.depth, self.layers, self.linked = relative, prefix, depth, layers, linked


class DirectoryListing:
    """The names in a directory that no rule hides, in order. `others` are those that are neither file nor directory;
    `names` are all there are, hidden ones too."""

    __slots__ = ("below", "files", "folders", "names", "others", "place")

    def __init__(
        self,
        place: PendingDirectory,
        files: list[str],
        folders: list[str],
        below: list[PendingDirectory],
        others: list[str],
        names: list[str],
    ) -> None:
        self.place, self.files, self.folders = place, files, folders
        self.below, self.others, self.names = below, others, names


class Walk:
    """One walk below `options.root`."""

    def __init__(self, options: WalkOptions, reader: RuleReader, layers: RuleLayers) -> None:
        self._options = options
        self.reader = reader
        self._layers = layers
        self._offset = os.fsdecode(reader.offset) + "/" if reader.offset else ""
        self._exclude = None
        if options.exclude_patterns:
            self._exclude = compile_globs(options.exclude_patterns)
        self._seen_by_link: set[tuple[int, int]] = set()
        self.unreadable: list[str] = []
        self.too_deep: list[str] = []
        self.directories: dict[str, Signature] = {}
        self.in_part: set[str] = set()  # directories with files that are not shown, or shown behind a link
        self.links: list[str] = []  # symbolic links that are shown and not followed

    @property
    def start(self) -> PendingDirectory:
        return PendingDirectory("", "", 0, self._layers)

    @property
    def allows_any_order(self) -> bool:
        """Return True if directories may be read in any order: with links the first way to a directory counts."""
        return not self._options.follow_symlinks

    @property
    def has_troubles(self) -> bool:
        """Return True if there are problems to report."""
        return bool(self.reader.bad or self.unreadable or self.too_deep)

    def __iter__(self) -> Iterator[DirectoryListing]:
        """One directory after the other, each before what is below it."""
        return self.iter_from(self.start)

    def iter_from(self, place: PendingDirectory) -> Iterator[DirectoryListing]:
        """A directory and all that is below it."""
        waiting = [place]
        while waiting:
            listing = self.visit(waiting.pop())
            if listing is not None:
                waiting.extend(reversed(listing.below))
                yield listing

    def visit(self, place: PendingDirectory) -> DirectoryListing | None:
        """Read one directory; None when it is gone or may not be read."""
        return self.apply_rules(place, read_directory(self.get_path(place.relative), signed=self._options.signed))

    def apply_rules(self, place: PendingDirectory, reading: Reading) -> DirectoryListing | None:
        """Filter a directory's names by the rules."""
        relative, prefix, layers = place.relative, place.prefix, place.layers
        seen, failure, files, folders, others = reading
        path = self.get_path(relative)
        self.directories[path] = seen
        if failure:
            if failure == UNREADABLE:
                self.unreadable.append(relative or ".")
            return None
        links = _NO_LINKS
        if others and self._options.follow_symlinks:
            links = self._add_links(path, files, folders, others)
            others = [name for name in others if name not in links]
        names, there, base = files + folders if folders else files, len(files), self._offset + prefix
        if others or _has_dotted(files) or _has_dotted(folders):
            layers = self.reader.read_layers(layers, path, base, names + others)
            files, folders = self._filter_dots(files), self._filter_dots(folders)
        names = names + others if others else names
        others = self._filter_dots(others) if others else others
        if spoken_of := layers.matcher.find_candidates(base, names):
            files = _drop_hidden(layers, base, files, spoken_of)
            folders = _drop_hidden(layers, base, folders, spoken_of, directories=True)
            others = _drop_hidden(layers, base, others, spoken_of)
        if others:
            self._note_links(place, others)
        if self._exclude is not None:
            files, folders = self._filter_excluded(place, files), self._filter_excluded(place, folders)
        if len(files) < there or links:
            self.in_part.add(relative)
        below = self._list_below(place, layers, folders, links) if folders else []
        return DirectoryListing(place, files, folders, below, others, names)

    def _note_links(self, place: PendingDirectory, names: list[str]) -> None:
        wanted = names if self._exclude is None else self._filter_excluded(place, names)
        relative = [place.prefix + name for name in sorted(wanted)]
        self.links += [path for path in relative if os.path.islink(self.get_path(path))]

    def get_path_from_top(self, relative: str) -> str:
        """A path from the root as the rules see it: from the top of the repository."""
        return self._offset + relative

    def get_path(self, relative: str) -> str:
        return f"{self._options.root}/{relative}" if relative else self._options.root

    def _filter_dots(self, names: list[str]) -> list[str]:
        """`.git` is never shown; other names with a dot are unless they are unwanted."""
        if not self._options.hidden:
            return [name for name in names if name[0] != "."]
        return [name for name in names if name != ".git"]

    def _add_links(self, path: str, files: list[str], folders: list[str], others: list[str]) -> frozenset[str]:
        """Adds the links to files and directories to those; gives the names of all links that lead somewhere."""
        behind = {name: self._resolve_link(f"{path}/{name}") for name in others}
        files.extend(name for name, kind in behind.items() if kind == "file")
        folders.extend(name for name, kind in behind.items() if kind == "directory")
        files.sort()
        folders.sort()
        return frozenset(name for name, kind in behind.items() if kind)

    def _resolve_link(self, path: str) -> EntryType | None:
        """Resolve a link that stays below the root."""
        try:
            target, status = os.path.realpath(path, strict=True), os.stat(path)
        except OSError:
            return None
        if target == path or not is_below(target, self._options.root):
            return None
        if stat.S_ISREG(status.st_mode):
            return "file"
        return "directory" if stat.S_ISDIR(status.st_mode) else None

    def _filter_excluded(self, place: PendingDirectory, names: list[str]) -> list[str]:
        assert self._exclude is not None
        excluded = self._exclude.find_matches(place.prefix, names)
        return [name for name in names if name not in excluded] if excluded else names

    def _list_below(
        self, place: PendingDirectory, layers: RuleLayers, folders: list[str], links: frozenset[str]
    ) -> list[PendingDirectory]:
        limit = self._options.max_depth
        if limit is not None and place.depth >= limit:
            self.too_deep.extend(place.prefix + name for name in folders)
            return []
        below = []
        for name in folders:
            relative = place.prefix + name
            linked = place.linked or name in links
            if not linked or self._mark_visited(self.get_path(relative)):
                below.append(PendingDirectory(relative, f"{relative}/", place.depth + 1, layers, linked))
        return below

    def _mark_visited(self, path: str) -> bool:
        """Mark a directory as visited; False if a link has led to it before, which ends circles."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        identity = status.st_dev, status.st_ino
        if identity in self._seen_by_link:
            return False
        self._seen_by_link.add(identity)
        return True


def make_walk(options: WalkOptions, git: GitFinder, builtin_ignores: Iterable[str], within: str | None = None) -> Walk:
    """A walk with the rules in force at its root; `within` is the project the root is a part of."""
    reader = RuleReader(options.root, git.find_info(options.root), within)
    return Walk(options, reader, reader.read_top_layers(builtin_ignores))


def _has_dotted(names: list[str]) -> bool:
    """Return True if one of the sorted names starts with a dot: those come before all but a few odd ones."""
    return bool(names) and names[0] < "/"


def _drop_hidden(
    layers: RuleLayers, base: str, names: list[str], spoken_of: Names, *, directories: bool = False
) -> list[str]:
    """The names of a directory that no rule hides. Only those in `spoken_of` may be hidden."""
    hides = layers.matcher.hides
    hidden = {name for name in spoken_of.intersection(names) if hides(os.fsencode(base + name), directory=directories)}
    return [name for name in names if name not in hidden] if hidden else names


class TreeScanner:
    """Walk one tree repeatedly; a directory whose names did not change is not read again. Rules are applied each time:
    they may have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[DirectoryStamp, Reading]] = {}

    def iter_listings(self, walk: Walk) -> Iterator[DirectoryListing]:
        """One directory after the other, each before what is below it."""
        known, self._known = self._known, {}
        waiting = [walk.start]
        while waiting:
            listing = self._visit(walk, waiting.pop(), known)
            if listing is not None:
                waiting.extend(reversed(listing.below))
                yield listing

    def _visit(
        self, walk: Walk, place: PendingDirectory, known: dict[str, tuple[DirectoryStamp, Reading]]
    ) -> DirectoryListing | None:
        path = walk.get_path(place.relative)
        began = time.time_ns()
        try:
            status = os.lstat(path)
        except OSError:
            return walk.visit(place)
        stamp = status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode
        found = known.get(path)
        reading = found[1] if found is not None and found[0] == stamp else read_directory(path)
        if not reading[1] and _is_settled(stamp, began):
            self._known[path] = stamp, reading
        return walk.apply_rules(place, reading)


def _is_settled(stamp: DirectoryStamp, began: int) -> bool:
    """Return True if a name that comes or goes later must show in the directory's times."""
    modified, changed, _, _ = stamp
    coarse = not modified % 1_000_000_000 and not changed % 1_000_000_000
    return max(modified, changed) < began - (_COARSE_STEP_NANOSECONDS if coarse else CLOCK_STEP_NANOSECONDS)

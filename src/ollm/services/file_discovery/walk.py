"""The walk: directory by directory, pruned by the rules, one look at them for all names of a directory."""

from __future__ import annotations

import os
import stat

from ollm.services.file_discovery.layers import RuleLayers, RuleReader, is_below
from ollm.services.file_discovery.reading import UNREADABLE, Reading, Signature, read_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ollm.domain.files import EntryType
    from ollm.services.file_discovery.git import GitFinder

_NO_LINKS: frozenset[str] = frozenset()


class WalkOptions:
    """What a walk below `root`, a real and absolute path, looks at. Files of the root itself are depth 0."""

    __slots__ = ("exclude_patterns", "follow_symlinks", "hidden", "max_depth", "root")

    def __init__(
        self,
        root: str,
        *,
        max_depth: int | None = None,
        exclude_patterns: tuple[str, ...] = (),
        follow_symlinks: bool = False,
        hidden: bool = True,
    ) -> None:
        self.root, self.max_depth, self.exclude_patterns = root, max_depth, exclude_patterns
        self.follow_symlinks, self.hidden = follow_symlinks, hidden


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
            from ollm.services.file_discovery.globs import compile_globs

            self._exclude = compile_globs(options.exclude_patterns)
        self._seen_by_link: set[tuple[int, int]] = set()
        self.unreadable: list[str] = []
        self.too_deep: list[str] = []
        self.directories: dict[str, Signature] = {}
        self.in_part: set[str] = set()  # directories with files that are not shown, or shown behind a link

    @property
    def start(self) -> PendingDirectory:
        return PendingDirectory("", "", 0, self._layers)

    @property
    def allows_any_order(self) -> bool:
        """Whether directories may be read in any order: with links the first way to a directory counts."""
        return not self._options.follow_symlinks

    @property
    def has_troubles(self) -> bool:
        """Whether there is something to say about what was read so far."""
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
        return self.apply_rules(place, read_directory(self.get_path(place.relative)))

    def apply_rules(self, place: PendingDirectory, reading: Reading) -> DirectoryListing | None:
        """What the rules leave of a directory's names."""
        relative, prefix, layers = place.relative, place.prefix, place.layers
        seen, failure, files, folders, others = reading
        path = self.get_path(relative)
        self.directories[path] = seen
        if failure:
            if failure == UNREADABLE:
                self.unreadable.append(relative or ".")
            return None
        links = self._add_links(path, files, folders, others) if others and self._options.follow_symlinks else _NO_LINKS
        names, there, base = files + folders if folders else files, len(files), self._offset + prefix
        if others or _has_dotted(files) or _has_dotted(folders):
            layers = self.reader.read_layers(layers, path, base, names + others)
            files, folders = self._filter_dots(files), self._filter_dots(folders)
        names = names + others if others else names
        others = self._filter_dots(others) if others else others
        if spoken_of := layers.matcher.find_candidates(base, names):
            shown = _NameFilter(layers, base, spoken_of)
            files = [name for name in files if shown.shows_file(name)]
            folders = [name for name in folders if shown.shows_folder(name)]
            others = [name for name in others if shown.shows_file(name)]
        if self._exclude is not None:
            files, folders = self._filter_excluded(place, files), self._filter_excluded(place, folders)
        if len(files) < there or links:
            self.in_part.add(relative)
        below = self._list_below(place, layers, folders, links) if folders else []
        return DirectoryListing(place, files, folders, below, others, names)

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
        """What a link leads to, if it is one and stays below the root."""
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
        """Whether no link has led to this directory yet: circles end here, and knots of links stay small."""
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
    """Whether one of the names, which are in order, starts with a dot: those come before all but a few odd ones."""
    return bool(names) and names[0] < "/"


class _NameFilter:
    """The rules' verdict on names of one directory."""

    def __init__(self, layers: RuleLayers, base: str, spoken_of: frozenset[str] | set[str]) -> None:
        self.layers, self.base, self.spoken_of = layers, base, spoken_of

    def shows_file(self, name: str) -> bool:
        return name not in self.spoken_of or not self._hides(name, directory=False)

    def shows_folder(self, name: str) -> bool:
        return name not in self.spoken_of or not self._hides(name, directory=True)

    def _hides(self, name: str, *, directory: bool) -> bool:
        return self.layers.matcher.hides(os.fsencode(self.base + name), directory=directory)

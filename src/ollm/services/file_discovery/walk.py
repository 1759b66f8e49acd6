"""The walk: directory by directory, pruned by the rules, which check all names of a directory at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath

from ollm.domain.files import DirectoryContent, DiscoveryOptions, EntryType
from ollm.domain.struct import Data
from ollm.services.file_discovery.patterns import compile_globs
from ollm.services.file_discovery.rules import (
    IgnoreRule,
    RuleLayers,
    RuleReader,
    Signature,
    find_rule_names,
    read_signature,
)
from ollm.system.folders import FolderMemory, FolderNames, read_names
from ollm.system.path_names import is_inside


class PendingDirectory(Data, frozen=True, kw_only=False, gc=False):
    """A directory to read, with the rules in force above it. `prefix` is its path from the root, empty or ending with a
    slash. `linked`: it was reached through a symbolic link."""

    prefix: str
    depth: int
    layers: RuleLayers
    linked: bool = False

    @property
    def relative(self) -> str:
        return self.prefix[:-1]


class Walk:
    """One walk below `options.root`, a real and absolute path. It records the timestamps of directories, to detect
    changes later."""

    def __init__(self, options: DiscoveryOptions, reader: RuleReader, layers: RuleLayers) -> None:
        self._options = options
        self.reader = reader
        self.start = PendingDirectory("", 0, layers)
        self._offset = os.fsdecode(reader.offset) + "/" if reader.offset else ""
        self._exclude = compile_globs(options.exclude_patterns)
        self._seen_by_link: set[tuple[int, int]] = set()
        self.unreadable: list[str] = []
        self.too_deep: list[str] = []
        self.directories: dict[str, Signature] = {}
        self.in_part: set[str] = set()  # Directories with hidden files or with links.
        self.links: list[str] = []  # Symbolic links are shown but not followed.

    def iter_directories(self, memory: FolderMemory | None = None) -> Iterator[DirectoryContent]:
        """Iterate over directories, each before its contents; with a memory, as last scanned."""
        waiting = [self.start]
        while waiting:
            place = waiting.pop()
            path = self.get_path(place.relative)
            if memory is None:  # The signature is read first, so that a change while the names are read is detected.
                self.directories[path] = read_signature(path)
            if found := self._apply_rules(place, path, read_names(path) if memory is None else memory.read(path)):
                content, below = found
                waiting.extend(reversed(below))
                yield content

    def _apply_rules(
        self, place: PendingDirectory, path: str, reading: FolderNames
    ) -> tuple[DirectoryContent, list[PendingDirectory]] | None:
        """Filter the names in the directory at `path` by the rules. Returns None if it is missing or unreadable."""
        files, folders, others, failure = reading
        prefix, layers = place.prefix, place.layers
        base = self._offset + prefix
        if failure is not None:
            if not isinstance(failure, FileNotFoundError):
                self.unreadable.append(place.relative or ".")
            return None
        links = frozenset[str]()
        if others and self._options.follow_symlinks:
            files, folders, others, links = self._follow_links(path, reading)
        count, names = len(files), [*files, *folders, *others] if folders or others else files
        if others or _has_dotted(files) or _has_dotted(folders):
            layers = self.reader.read_layers(layers, path, base, names)
            files, folders, others = self._filter_dots(files), self._filter_dots(folders), self._filter_dots(others)
        if candidates := layers.matcher.find_candidates(base, names):
            files = _drop_hidden(layers, base, files, candidates)
            folders = _drop_hidden(layers, base, folders, candidates, directories=True)
            others = _drop_hidden(layers, base, others, candidates)
        if self._exclude is not None:
            files, folders = self._drop_excluded(prefix, files), self._drop_excluded(prefix, folders)
        if others:
            self.links += [prefix + name for name in self.find_links(prefix, others)]
        if len(files) < count or links:
            self.in_part.add(place.relative)
        below = self._list_below(place, layers, folders, links) if folders else []
        return DirectoryContent(prefix, files, folders, others, names), below

    def get_path_from_top(self, relative: str) -> str:
        """Convert a path from the root to one from the top of the repository, as the rules use it."""
        return self._offset + relative

    def get_path(self, relative: str) -> str:
        return f"{self._options.root}/{relative}" if relative else self._options.root

    def find_links(self, prefix: str, names: list[str]) -> list[str]:
        wanted = self._drop_excluded(prefix, names)
        return [name for name in wanted if os.path.islink(self.get_path(prefix + name))]

    def _filter_dots(self, names: list[str]) -> list[str]:
        """Drop `.git`, and other dot names if hidden files are excluded."""
        if not self._options.hidden:
            return [name for name in names if name[0] != "."]
        return [name for name in names if name != ".git"]

    def _follow_links(self, path: str, reading: FolderNames) -> tuple[list[str], list[str], list[str], frozenset[str]]:
        """Add links to the files and directories they lead to. Also returns the names of all resolved links."""
        kinds = {name: self._resolve_link(f"{path}/{name}") for name in reading.others}
        files = sorted([*reading.files, *(name for name, kind in kinds.items() if kind == "file")])
        folders = sorted([*reading.folders, *(name for name, kind in kinds.items() if kind == "directory")])
        others = [name for name, kind in kinds.items() if not kind]
        return files, folders, others, frozenset(kinds).difference(others)

    def _resolve_link(self, path: str) -> EntryType | None:
        """Return the kind of a link that stays below the root, or None."""
        try:
            target, mode = os.path.realpath(path, strict=True), os.stat(path).st_mode
        except OSError:
            return None
        if target == path or not is_inside(target, self._options.root):
            return None
        return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else None

    def _drop_excluded(self, prefix: str, names: list[str]) -> list[str]:
        excluded = self._exclude.find_matches(prefix, names) if self._exclude else None
        return [name for name in names if name not in excluded] if excluded else names

    def _list_below(
        self, place: PendingDirectory, layers: RuleLayers, folders: list[str], links: frozenset[str]
    ) -> list[PendingDirectory]:
        limit, prefix, depth = self._options.max_depth, place.prefix, place.depth + 1
        if limit is not None and place.depth >= limit:
            self.too_deep.extend(prefix + name for name in folders)
            return []
        if not links and not place.linked:
            return [PendingDirectory(f"{prefix}{name}/", depth, layers) for name in folders]
        linked = {name: place.linked or name in links for name in folders}
        return [
            PendingDirectory(f"{prefix}{name}/", depth, layers, linked[name])
            for name in folders
            if not linked[name] or self._mark_visited(self.get_path(prefix + name))
        ]

    def _mark_visited(self, path: str) -> bool:
        """Mark a directory as visited. Returns False if a link led to it before, which breaks cycles."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        identity = status.st_dev, status.st_ino
        seen = identity in self._seen_by_link
        self._seen_by_link.add(identity)
        return not seen


def _has_dotted(names: list[str]) -> bool:
    """Return True if one of the sorted names may start with a dot: few other characters sort before it."""
    return bool(names) and names[0] < "/"


def _drop_hidden(
    layers: RuleLayers, base: str, names: list[str], candidates: frozenset[str], *, directories: bool = False
) -> list[str]:
    """Drop the hidden names of a directory. Only the candidates may be hidden."""
    hides = layers.matcher.hides
    hidden = {name for name in candidates.intersection(names) if hides(os.fsencode(base + name), directory=directories)}
    return [name for name in names if name not in hidden] if hidden else names


class Explanation(Data, frozen=True):
    """Visibility of a path, with the reason. `decided_at` is the part of the path that the rule matches."""

    path: str
    shown: bool
    reason: str
    decided_at: str = ""
    rule: str | None = None
    source: str | None = None
    line: int | None = None


def explain_path(walk: Walk, root: Path, path: str) -> Explanation:
    relative = _resolve_relative(root, path)
    if relative is None:
        return Explanation(path=path, shown=False, reason=f"it is outside {root}")
    layers, at, kept_by = walk.start.layers, root, None
    for depth, name in enumerate(relative.parts):
        prefix = f"{PurePath(*relative.parts[:depth])}/" if depth else ""
        layers = walk.reader.read_layers(layers, str(at), walk.get_path_from_top(prefix), find_rule_names(str(at)))
        at = at / name
        here = str(PurePath(*relative.parts[: depth + 1]))
        plain = _find_plain_reason(at, last=depth + 1 == len(relative.parts))
        if plain:
            return Explanation(path=path, shown=False, reason=plain, decided_at=here)
        directory = at.is_dir() and not at.is_symlink()
        rule = layers.matcher.find_deciding_rule(os.fsencode(walk.get_path_from_top(here)), directory=directory)
        if rule is not None and not rule.negated:
            return _explain_rule(path, here, rule, shown=False)
        kept_by = (here, rule) if rule is not None else kept_by
    if kept_by is not None:
        return _explain_rule(path, kept_by[0], kept_by[1], shown=True)
    return Explanation(path=path, shown=True, reason="no rule hides it")


def _resolve_relative(root: Path, path: str) -> PurePath | None:
    """Resolve a path relative to the root. Links in its parent directories are resolved, its last part is not."""
    given = root / path
    real = Path(os.path.realpath(given.parent)) / given.name
    return real.relative_to(root) if real.is_relative_to(root) and real != root else None


def _find_plain_reason(path: Path, *, last: bool) -> str | None:
    """Return the reason a path is left out without any rule, or None."""
    if path.name == ".git":
        return ".git is never shown"
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "it does not exist"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if stat.S_ISLNK(mode) and not last:
        return "part of the path is a symbolic link, and those are not followed"
    if stat.S_ISDIR(mode) or (last and (stat.S_ISREG(mode) or stat.S_ISLNK(mode))):
        return None
    return "it is not a regular file" if last else "part of the path is a file"


def _explain_rule(path: str, here: str, rule: IgnoreRule, *, shown: bool) -> Explanation:
    verb = "includes it" if shown else "hides it" if here == path else f"hides {here}"
    return Explanation(
        path=path,
        shown=shown,
        reason=f"{rule.source}:{rule.line} {verb}: {rule.text}",
        decided_at=here,
        rule=rule.text,
        source=rule.source,
        line=rule.line,
    )

"""Ignore rules, read and applied as in git: the last rule that matches a path decides.

Invalid lines are reported (D624).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import Any, Literal

from ollm.domain.struct import Data
from ollm.services.file_discovery.patterns import (
    BadPattern,
    NameSearch,
    compile_bytes,
    compile_set,
    escape_literal,
    expand_sets,
    measure_literal,
    translate_name,
    translate_pattern,
)
from ollm.system.atomic import read_small_file
from ollm.system.path_names import follow_dot_git, is_inside

_MAX_FILE_BYTES = 4 << 20
_MAX_PATTERN_BYTES = 4096
_MAX_GROUP_RULES = 500
_ANYWHERE = rb"(?:[^\x00]*/)?"
Shape = Literal["name", "beginning", "ending"]


class IgnoreRule(Data, frozen=True, gc=False):
    """One line of an ignore file. `expression` matches paths from the top, `caseless` if it ignores case; `base`
    is the directory of the file. If the rule is simple, a matching path has one of the `names`, or a name that begins
    or ends with one. Then most names can be checked without the expression."""

    expression: bytes
    caseless: bytes
    negated: bool
    only_directories: bool
    text: str
    base: bytes
    source: str
    line: int
    anywhere: bool
    shape: Shape | None = None
    names: tuple[str, ...] = ()


class BadIgnoreRule(Data, frozen=True):
    """A skipped line, with its location and the reason."""

    text: str
    source: str
    line: int
    reason: str


class IgnoreFile(Data, frozen=True):
    rules: tuple[IgnoreRule, ...] = ()
    bad: tuple[BadIgnoreRule, ...] = ()


def read_ignore_file(path: str, base: bytes, source: str | None = None) -> IgnoreFile:
    """Read the rules of an ignore file in the directory `base`, a path from the top (b"" for the top itself).
    A missing, unreadable, special or huge file has none."""
    try:
        content = read_small_file(path, _MAX_FILE_BYTES)
    except (OSError, ValueError):
        content = b""
    return parse_ignore_rules(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), base, source or path)


def parse_ignore_rules(lines: Iterable[bytes], base: bytes, source: str) -> IgnoreFile:
    rules: list[IgnoreRule] = []
    bad: list[BadIgnoreRule] = []
    for number, raw in enumerate(lines, 1):
        line = _strip_trailing_spaces(raw.removesuffix(b"\r"))
        if not line or line.startswith(b"#") or b"\0" in line:
            continue
        text = os.fsdecode(line[:_MAX_PATTERN_BYTES])
        try:
            rules.append(_parse_rule(line, base, text, source, number))
        except BadPattern as error:
            bad.append(BadIgnoreRule(text=text, source=source, line=number, reason=str(error)))
    return IgnoreFile(rules=tuple(rules), bad=tuple(bad))


def _parse_rule(line: bytes, base: bytes, text: str, source: str, number: int) -> IgnoreRule:
    pattern = line.removeprefix(b"!")
    only_directories = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_directories else pattern
    if not pattern:
        raise BadPattern("it matches nothing")
    if len(pattern) > _MAX_PATTERN_BYTES:
        raise BadPattern("it is longer than a path can be")
    anywhere = b"/" not in pattern
    start = (escape_literal(base) + b"/" if base else b"") + (_ANYWHERE if anywhere else b"")
    translate = translate_name if anywhere else translate_pattern
    shape, names = _find_shape(pattern)
    return IgnoreRule(
        expression=start + translate(pattern.removeprefix(b"/")),
        caseless=start + translate(pattern.removeprefix(b"/"), ignore_case=True) if b"[" in pattern else b"",
        negated=line.startswith(b"!"),
        only_directories=only_directories,
        text=text,
        base=base,
        source=source,
        line=number,
        anywhere=anywhere,
        shape=shape,
        names=names,
    )


def _find_shape(pattern: bytes) -> tuple[Shape | None, tuple[str, ...]]:
    """Find the literal name, beginning or ending that all matches of a pattern share."""
    above, _, last = pattern.rpartition(b"/")
    if b"[" in above or last in (b"", b"*"):  # The slash may be part of a set.
        return None, ()
    names = expand_sets(last)
    for shape, cut in _CUTS.items():
        parts = [cut(name) for name in names]
        if all(measure_literal(part) == len(part) for part in parts):
            return shape, tuple(map(os.fsdecode, parts))
    return None, ()


_CUTS: dict[Shape, Callable[[bytes], bytes]] = {
    "name": lambda name: name,
    "ending": lambda name: name.removeprefix(b"*"),
    "beginning": lambda name: name.removesuffix(b"*"),
}


def _strip_trailing_spaces(line: bytes) -> bytes:
    """Strip trailing spaces as git does. Spaces escaped with a backslash stay."""
    stripped = line.rstrip(b" ")
    escapes = len(stripped) - len(stripped.rstrip(b"\\"))
    return line[: len(stripped) + 1] if escapes % 2 else stripped


class Matcher:
    """Rules in order, weakest first. Paths are bytes, from the top.

    Most rules are a name, a prefix or a suffix and need no search. Most directories contain no match for the other
    rules, which one search shows.
    """

    def __init__(self, rules: Sequence[IgnoreRule], *, ignore_case: bool = False) -> None:
        self.rules = tuple(rules)
        self._ignore_case = ignore_case
        self._by_shape: dict[Shape, dict[str, list[int]]] = {"name": {}, "beginning": {}, "ending": {}}
        self._others: list[int] = []
        for number, rule in enumerate(self.rules):
            if rule.shape is None or ignore_case:
                self._others.append(number)
                continue
            for name in rule.names:
                self._by_shape[rule.shape].setdefault(name, []).append(number)
        self._names = frozenset(self._by_shape["name"])
        self._beginnings, self._endings = tuple(self._by_shape["beginning"]), tuple(self._by_shape["ending"])
        self._marks = [f"\0{start}" for start in self._beginnings] + [f"{end}\0" for end in self._endings]

    def find_candidates(self, base: str, names: Sequence[str]) -> frozenset[str]:
        """Find the names in a directory that a rule may match. May include false positives."""
        found = self._names.intersection(names)
        together = "\0" + "\0".join(names) + "\0"
        if any([mark in together for mark in self._marks]):  # noqa: C419 - a list is faster for so few
            found |= {name for name in names if name.endswith(self._endings) or name.startswith(self._beginnings)}
        for search in self._searches:
            found |= search.find_matches(base, names)
        return found

    def find_deciding_rule(self, path: bytes, *, directory: bool) -> IgnoreRule | None:
        """Find the last rule that matches this path itself. The caller checks its parents."""
        for number in sorted(self._find_matching(path), reverse=True):
            rule = self.rules[number]
            if directory or not rule.only_directories:
                return rule
        return None

    def hides(self, path: bytes, *, directory: bool) -> bool:
        rule = self.find_deciding_rule(path, directory=directory)
        return rule is not None and not rule.negated

    def _find_matching(self, path: bytes) -> list[int]:
        name, shapes = os.fsdecode(path.rpartition(b"/")[2]), self._by_shape
        likely = list(shapes["name"].get(name, ()))
        for ending in self._endings:
            if name.endswith(ending):
                likely += shapes["ending"][ending]
        for beginning in self._beginnings:
            if name.startswith(beginning):
                likely += shapes["beginning"][beginning]
        found = [number for number in likely if _matches(self.rules[number], path)]
        for start, together in enumerate(self._sets):
            found += [self._others[start * _MAX_GROUP_RULES + place] for place in together.Match(path) or ()]
        return found

    @cached_property
    def _groups(self) -> list[list[bytes]]:
        """The expressions of rules that need a search, in groups, so that even fifty thousand work."""
        rules = [self.rules[number] for number in self._others]
        expressions = [(self._ignore_case and rule.caseless) or rule.expression for rule in rules]
        starts = range(0, len(expressions), _MAX_GROUP_RULES)
        return [expressions[start : start + _MAX_GROUP_RULES] for start in starts]

    @cached_property
    def _searches(self) -> list[NameSearch]:
        return [NameSearch(group, ignore_case=self._ignore_case) for group in self._groups]

    @cached_property
    def _sets(self) -> list[Any]:
        return [compile_set(group, ignore_case=self._ignore_case) for group in self._groups]


def _matches(rule: IgnoreRule, path: bytes) -> bool:
    if rule.anywhere:
        return not rule.base or path.startswith(rule.base + b"/")
    return compile_bytes(rule.expression).fullmatch(path) is not None


GIT_IGNORE = ".gitignore"
OLLM_IGNORE = ".ollmignore"
Signature = tuple[int, int, int] | None


def read_signature(path: str) -> Signature:
    """Return a value that changes with the file or directory, or None if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class GitInfo(Data, frozen=True):
    """Git's facts about a directory. `repository` is None outside of one; `settings` maps the config files to their
    signatures at the time they were read."""

    repository: str | None
    excludes_file: str
    settings: dict[str, Signature]
    ignore_case: bool


class GitFinder:
    """Reads git's settings for directories, and reads them again only if a config file has changed."""

    def __init__(self, home: str, config_home: str) -> None:
        self._home = home
        self._config_home = config_home
        self._answers: dict[tuple[object, ...], tuple[str, bool]] = {}

    def find_info(self, root: str) -> GitInfo:
        repository = next(filter(is_repository, iter_upwards(root)), None)
        files = ["/etc/gitconfig", f"{self._home}/.gitconfig", f"{self._config_home}/git/config"]
        if repository is not None:
            files.append(os.path.join(repository, ".git", "config"))
        settings = {path: read_signature(path) for path in files}
        seen = tuple((path, found) for path, found in settings.items() if found is not None)
        key = (root, *seen) if seen else ()
        if key not in self._answers:
            usual = f"{self._config_home}/git/ignore", False
            asks = _needs_git(repository, [path for path, _ in seen])
            self._answers[key] = _read_config(repository or root, self._home, self._config_home) if asks else usual
        excludes_file, ignore_case = self._answers[key]
        return GitInfo(repository=repository, excludes_file=excludes_file, settings=settings, ignore_case=ignore_case)


def iter_upwards(path: str) -> Iterator[str]:
    """Iterate over an absolute path and all directories above it, nearest first."""
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _needs_git(repository: str | None, settings: Sequence[str]) -> bool:
    """Return True if git must be run, because its settings may be elsewhere or may set ignore options."""
    elsewhere = sys.platform != "linux" or any(name.startswith("GIT_CONFIG") for name in os.environ)
    in_worktree = repository is not None and os.path.isfile(os.path.join(repository, ".git"))
    return elsewhere or in_worktree or any(map(_may_say, settings))


def _may_say(file: str) -> bool:
    """Return True if a config file may set an ignore file or case sensitivity, itself or by an include. Most do not, so
    git need not be started."""
    try:
        text = read_small_file(file).lower()
    except OSError:
        return True
    return any(word in text for word in (b"excludesfile", b"ignorecase", b"include", b"worktreeconfig", b"\\"))


def is_repository(folder: str) -> bool:
    """Return True if there is a valid `.git` directory, or the `.git` file of a worktree or submodule."""
    dot_git = os.path.join(folder, ".git")
    return os.path.isfile(dot_git) or os.path.isfile(f"{dot_git}/HEAD")


def _read_config(root: str, home: str, config_home: str) -> tuple[str, bool]:
    """Read core.excludesFile and core.ignoreCase with git. Without git, return the default path."""
    from ollm.system.sandbox.git_settings import read_git_settings

    said = dict(read_git_settings(home, directory=root) or ())
    named = said.get("core.excludesfile")
    named = os.path.join(home, named[2:]) if named and named.startswith("~/") else named
    excludes_file = os.path.join(root, named) if named else f"{config_home}/git/ignore"
    return excludes_file, said.get("core.ignorecase", "") in ("true", "yes", "1")


class RuleLayers:
    """The rules in force in one directory. Immutable: `enter_directory` returns the rules of a subdirectory."""

    def __init__(
        self,
        everywhere: tuple[IgnoreRule, ...],
        git: tuple[IgnoreRule, ...] = (),
        ollm: tuple[IgnoreRule, ...] = (),
        *,
        ignore_case: bool = False,
    ) -> None:
        self._everywhere, self._git, self._ollm, self._ignore_case = everywhere, git, ollm, ignore_case
        self.matcher = Matcher(everywhere + git + ollm, ignore_case=ignore_case)

    def enter_directory(
        self, git: tuple[IgnoreRule, ...], ollm: tuple[IgnoreRule, ...], *, repository: bool
    ) -> RuleLayers:
        """Add a directory's own rules on top. A nested repository does not inherit git rules from above."""
        if not git and not ollm and not repository:
            return self
        above = () if repository else self._git
        return RuleLayers(self._everywhere, above + git, self._ollm + ollm, ignore_case=self._ignore_case)


class RuleReader:
    """Reads the rule files on a walk, and records their signatures and invalid lines.

    Rules apply to paths from `top`: the highest of the repository's root, the project's root (`within`) and the walk's
    root.
    """

    def __init__(self, root: str, places: GitInfo, within: str | None = None) -> None:
        self._places = places
        self._root = root
        above = [folder for folder in (places.repository, within) if folder and is_inside(root, folder)]
        self.top = min([root, *above], key=len)
        self.offset = os.fsencode(_cut_folder(root, self.top))
        self.bad: list[BadIgnoreRule] = []
        self._git: dict[str, tuple[IgnoreRule, ...]] = {}
        self._ollm: dict[str, tuple[IgnoreRule, ...]] = {}
        self.signatures: dict[str, Signature] = dict(places.settings)

    def read_top_layers(self, built_in: Iterable[str]) -> RuleLayers:
        """Read the rules in force above the root: built-in rules, git's global ones, and those of the directories
        between the top and the root."""
        named = self._keep_bad_rules(
            parse_ignore_rules([os.fsencode(name) for name in built_in], self.offset, "built-in rules")
        )
        everywhere = named + self._read_file(self._places.excludes_file, b"")
        self._git[""] = everywhere
        layers = RuleLayers(everywhere, ignore_case=self._places.ignore_case)
        _, *above = iter_upwards(self._root)
        for folder in reversed(above):
            if is_inside(folder, self.top):
                prefix = "" if folder == self.top else f"{_cut_folder(folder, self.top)}/"
                layers = self.read_layers(layers, folder, prefix, find_rule_names(folder))
        return layers

    def read_layers(self, layers: RuleLayers, path: str, prefix: str, names: Sequence[str]) -> RuleLayers:
        """Read the rules in force in a directory with these names. `prefix` is its path from the top, empty or ending
        with a slash."""
        repository = ".git" in names and is_repository(path)
        has_git, has_ollm = GIT_IGNORE in names, OLLM_IGNORE in names
        if not (repository or has_git or has_ollm):
            return layers
        base = os.fsencode(prefix[:-1])
        git = self._read_file(os.path.join(path, GIT_IGNORE), base, linked=False) if has_git else ()
        if repository:
            git = (
                self._read_file(os.path.join(follow_dot_git(os.path.join(path, ".git"))[1], "info", "exclude"), base)
                + git
            )
        ollm = self._read_file(os.path.join(path, OLLM_IGNORE), base, linked=False) if has_ollm else ()
        self._git[path], self._ollm[path] = git, ollm
        return layers.enter_directory(git, ollm, repository=repository)

    @property
    def rules(self) -> list[IgnoreRule]:
        """All rules read so far, weakest first."""
        return [rule for group in (self._git, self._ollm) for rules in group.values() for rule in rules]

    def _read_file(self, path: str, base: bytes, *, linked: bool = True) -> tuple[IgnoreRule, ...]:
        """Read a rule file. Unless `linked`, skip symbolic links, as git does: they would expose other files."""
        if not linked and os.path.islink(path):
            return ()
        self.signatures[path] = read_signature(path)
        source = _cut_folder(path, self._root) if is_inside(path, self._root) else path
        return self._keep_bad_rules(read_ignore_file(path, base, source))

    def _keep_bad_rules(self, file: IgnoreFile) -> tuple[IgnoreRule, ...]:
        self.bad.extend(file.bad)
        return file.rules


def _cut_folder(path: str, folder: str) -> str:
    """Return the path relative to a folder, or "" for the folder itself."""
    return path[len(folder) :].lstrip("/")


def find_rule_names(folder: str) -> list[str]:
    """Find the names in a directory that affect ignore rules."""
    return [name for name in (".git", GIT_IGNORE, OLLM_IGNORE) if os.path.lexists(os.path.join(folder, name))]


class HiddenPaths:
    """Matcher of paths that `.ollmignore` hides, for what leaves the machine. Each file is read once. Nothing is hidden
    without a workspace."""

    def __init__(self, workspace: str | None) -> None:
        self._root = PurePath(workspace) if workspace else None
        self._read_rules = cache(self._read_rules_of)

    def is_hidden(self, path: str) -> bool:
        if self._root is None or "\0" in path:
            return False
        normal = PurePath(os.path.normpath(self._root / path))
        parts = normal.relative_to(self._root).parts if normal.is_relative_to(self._root) else ()
        return any(self._hides(parts[:end], directory=end < len(parts)) for end in range(1, len(parts) + 1))

    def _hides(self, parts: tuple[str, ...], *, directory: bool) -> bool:
        rules = [rule for depth in range(len(parts)) for rule in self._read_rules(parts[:depth])]
        if not rules:
            return False
        is_directory = directory or Path(str(self._root), *parts).is_dir()
        return Matcher(rules).hides(os.fsencode("/".join(parts)), directory=is_directory)

    def _read_rules_of(self, parts: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
        path = Path(str(self._root), *parts, OLLM_IGNORE)
        if path.is_symlink() or not path.is_file():
            return ()
        return read_ignore_file(str(path), os.fsencode("/".join(parts))).rules

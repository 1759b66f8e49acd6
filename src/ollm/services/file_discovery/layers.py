"""Rules in their order: built-in < git's own < `.gitignore`s from the top down < `.ollmignore`s."""

from __future__ import annotations

import os

from ollm.services.file_discovery.git import GitInfo, find_exclude_file, is_repository, iter_upwards
from ollm.services.file_discovery.matcher import Matcher
from ollm.services.file_discovery.reading import Signature, read_signature
from ollm.services.file_discovery.rules import (
    BadIgnoreRule,
    IgnoreFile,
    IgnoreRule,
    parse_ignore_rules,
    read_ignore_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GIT_IGNORE = ".gitignore"
OLLM_IGNORE = ".ollmignore"


class RuleLayers:
    """The rules in force in one directory. `entering` gives those of a directory below; nothing is changed."""

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
        self, git: Sequence[IgnoreRule], ollm: Sequence[IgnoreRule], *, repository: bool = False
    ) -> RuleLayers:
        """With a directory's own rules on top. A repository of its own does not hear git's rules from above."""
        if not git and not ollm and not repository:
            return self
        above = () if repository else self._git
        return RuleLayers(self._everywhere, above + tuple(git), self._ollm + tuple(ollm), ignore_case=self._ignore_case)


class RuleReader:
    """Reads the rule files a walk comes by, and remembers which they were and which lines were no good.

    Rules are about paths from `top`: the repository's root, or the project's (`within`) where that is higher or there
    is no repository, or the walk's own.
    """

    def __init__(self, root: str, places: GitInfo, within: str | None = None) -> None:
        self._places = places
        self._root = root
        above = [folder for folder in (places.repository, within) if folder and is_below(root, folder)]
        self.top = min([root, *above], key=len)
        self.offset = os.fsencode(_cut_folder(root, self.top))
        self.bad: list[BadIgnoreRule] = []
        self._git: dict[str, tuple[IgnoreRule, ...]] = {}
        self._ollm: dict[str, tuple[IgnoreRule, ...]] = {}
        self.signatures: dict[str, Signature] = dict(places.settings)

    def read_top_layers(self, built_in: Iterable[str]) -> RuleLayers:
        """The rules in force above the root: the built-in ones, git's own, and those of the directories between the
        top and the root."""
        named = self._keep_bad_rules(
            parse_ignore_rules([os.fsencode(name) for name in built_in], self.offset, "built-in rules")
        )
        everywhere = named + self._read_file(self._places.excludes_file, b"")
        self._git[""] = everywhere
        layers = RuleLayers(everywhere, ignore_case=self._places.ignore_case)
        _, *above = iter_upwards(self._root)
        for folder in reversed(above):
            if is_below(folder, self.top):
                prefix = "" if folder == self.top else f"{_cut_folder(folder, self.top)}/"
                layers = self.read_layers(layers, folder, prefix, find_rule_names(folder))
        return layers

    def read_layers(self, layers: RuleLayers, path: str, prefix: str, names: Sequence[str]) -> RuleLayers:
        """The rules in force in a directory of which the names are known. `prefix` is its path from the top, empty or
        ending with a slash."""
        repository = ".git" in names and is_repository(path)
        has_git, has_ollm = GIT_IGNORE in names, OLLM_IGNORE in names
        if not (repository or has_git or has_ollm):
            return layers
        base = os.fsencode(prefix[:-1])
        git = self._read_file(os.path.join(path, GIT_IGNORE), base, linked=False) if has_git else ()
        if repository:
            git = self._read_file(find_exclude_file(os.path.join(path, ".git")), base) + git
        ollm = self._read_file(os.path.join(path, OLLM_IGNORE), base, linked=False) if has_ollm else ()
        self._git[path], self._ollm[path] = git, ollm
        return layers.enter_directory(git, ollm, repository=repository)

    @property
    def rules(self) -> list[IgnoreRule]:
        """All that were read, weakest first."""
        return [rule for group in (self._git, self._ollm) for rules in group.values() for rule in rules]

    def _read_file(self, path: str | None, base: bytes, *, linked: bool = True) -> tuple[IgnoreRule, ...]:
        """Not `linked`: a symbolic link is no rule file, as in git; it would show lines of a file elsewhere."""
        if path is None or (not linked and os.path.islink(path)):
            return ()
        self.signatures[path] = read_signature(path)
        source = _cut_folder(path, self._root) if is_below(path, self._root) else path
        return self._keep_bad_rules(read_ignore_file(path, base, source))

    def _keep_bad_rules(self, file: IgnoreFile) -> tuple[IgnoreRule, ...]:
        self.bad.extend(file.bad)
        return file.rules


def is_below(path: str, folder: str) -> bool:
    """Whether a path is this folder or lies in it, by the words alone."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def _cut_folder(path: str, folder: str) -> str:
    """The way from a folder to a path in it; nothing for the folder itself."""
    return path[len(folder) :].lstrip("/")


def find_rule_names(folder: str) -> list[str]:
    """Those names in a directory that say something about rules."""
    return [name for name in (".git", GIT_IGNORE, OLLM_IGNORE) if os.path.lexists(os.path.join(folder, name))]

"""Rule files in their order: built-in < git's own < `.gitignore`s from the top down < `.ollmignore`s."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ollm.domain.struct import Data
from ollm.services.file_discovery.rules import (
    BadIgnoreRule,
    IgnoreFile,
    IgnoreRule,
    Matcher,
    parse_ignore_rules,
    read_ignore_file,
)
from ollm.system.small_files import read_small_file

if TYPE_CHECKING:
    import subprocess

GIT_IGNORE = ".gitignore"
OLLM_IGNORE = ".ollmignore"
Signature = tuple[int, int, int] | None
_GIT_TIMEOUT_SECONDS = 5
_CONFIG_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def read_signature(path: str) -> Signature:
    """A value that changes when a file or directory does; None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class GitInfo(Data, frozen=True):
    """Git's facts about a directory. `repository` is None outside of one; `settings` are the files that say so, each
    with what it was when they were read."""

    repository: str | None
    excludes_file: str
    settings: dict[str, Signature]
    ignore_case: bool


class GitFinder:
    """Asks git about directories, and asks again only when one of the files that hold its settings has changed."""

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
            self._answers[key] = _read_config(root, self._home, self._config_home) if asks else usual
        excludes_file, ignore_case = self._answers[key]
        return GitInfo(repository=repository, excludes_file=excludes_file, settings=settings, ignore_case=ignore_case)


def iter_upwards(path: str) -> Iterator[str]:
    """An absolute path and all directories above it, the nearest first."""
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _needs_git(repository: str | None, settings: Sequence[str]) -> bool:
    """Return True if only git can tell, because its settings may be elsewhere or mention it."""
    elsewhere = sys.platform != "linux" or any(name in os.environ for name in _CONFIG_VARIABLES)
    in_worktree = repository is not None and os.path.isfile(os.path.join(repository, ".git"))
    return elsewhere or in_worktree or any(map(_may_say, settings))


def _may_say(file: str) -> bool:
    """Return True if a settings file may set an ignore file or the case of names, itself or by an include. Most do not,
    and git need not be started."""
    try:
        text = read_small_file(file).lower()
    except OSError:
        return True
    return any(word in text for word in (b"excludesfile", b"ignorecase", b"include", b"worktreeconfig", b"\\"))


def is_repository(folder: str) -> bool:
    """A `.git` directory that is one, or the file that a worktree or submodule has in its place."""
    dot_git = os.path.join(folder, ".git")
    return os.path.isfile(dot_git) or os.path.isfile(f"{dot_git}/HEAD")


def find_exclude_file(dot_git: str) -> str | None:
    """`info/exclude` of a repository; a worktree shares it with the repository it belongs to."""
    directory = _read_reference(dot_git, "gitdir: ") if os.path.isfile(dot_git) else dot_git
    if directory is None:
        return None
    common = _read_reference(os.path.join(directory, "commondir"), "")
    return os.path.join(common or directory, "info", "exclude")


def _read_reference(file: str, prefix: str) -> str | None:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            line = opened.readline(4096).rstrip("\n")
    except OSError:
        return None
    if not line.startswith(prefix) or "\0" in line:
        return None
    return os.path.join(os.path.dirname(file), line.removeprefix(prefix))


def _read_config(root: str, home: str, config_home: str) -> tuple[str, bool]:
    """core.excludesFile and core.ignoreCase as git itself finds them. Without git: where the file usually is."""
    import subprocess

    from ollm.system.sandbox.box import find_git_directories
    from ollm.system.sandbox.confined import start_confined

    usual = f"{config_home}/git/ignore"
    try:
        asked = start_confined(lambda: _run_git_config(root), [root, *find_git_directories(root)], home)
    except (OSError, subprocess.SubprocessError):
        return usual, False
    said = dict(
        item.partition("\n")[::2] for item in asked.stdout.decode("utf-8", "surrogateescape").split("\0") if item
    )
    named = said.get("core.excludesfile")
    ignore_case = said.get("core.ignorecase", "") in ("true", "yes", "1")
    return (_expand_home(named, root, home) if named else usual), ignore_case


def _run_git_config(root: str) -> subprocess.CompletedProcess[bytes]:
    import subprocess

    from ollm.system.sandbox.confined import make_helper_environment
    from ollm.system.sandbox.sandbox import make_git_environment

    own = {name: os.environ[name] for name in _CONFIG_VARIABLES if name in os.environ}
    return subprocess.run(
        ["git", "config", "--null", "--get-regexp", r"^core\.(excludesfile|ignorecase)$"],
        cwd=root,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=_GIT_TIMEOUT_SECONDS,
        check=False,
        env={**make_helper_environment(os.environ), **own, **make_git_environment()},
    )


def _expand_home(named: str, root: str, home: str) -> str:
    return os.path.join(home, named[2:]) if named.startswith("~/") else os.path.join(root, named)


class RuleLayers:
    """The rules in force in one directory. `enter_directory` gives those of a directory below; nothing is changed."""

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
        """Put a directory's own rules on top. A repository of its own does not hear git's rules from above."""
        if not git and not ollm and not repository:
            return self
        above = () if repository else self._git
        return RuleLayers(self._everywhere, above + git, self._ollm + ollm, ignore_case=self._ignore_case)


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
    """Return True if a path is this folder or inside it, by the names alone."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def _cut_folder(path: str, folder: str) -> str:
    """The way from a folder to a path in it; nothing for the folder itself."""
    return path[len(folder) :].lstrip("/")


def find_rule_names(folder: str) -> list[str]:
    """Those names in a directory that say something about rules."""
    return [name for name in (".git", GIT_IGNORE, OLLM_IGNORE) if os.path.lexists(os.path.join(folder, name))]

"""Where git keeps the rules that stand in no `.gitignore`: `info/exclude` and core.excludesFile."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.struct import Data
from ollm.services.file_discovery.reading import read_signature
from ollm.system.sandbox.confined import make_helper_environment, start_confined
from ollm.system.small_files import read_small_file

if TYPE_CHECKING:
    import subprocess

_GIT_TIMEOUT_SECONDS = 5
_CONFIG_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class GitInfo(Data, frozen=True):
    """What git says about a directory. `repository` is None outside of one; `settings` are the files that say so."""

    repository: Path | None = None
    excludes_file: Path | None = None
    ignore_case: bool = False
    settings: tuple[Path, ...] = ()


class GitFinder:
    """Asks git about directories, and asks again only when one of the files that hold its settings has changed."""

    def __init__(self, home: Path, config_home: Path) -> None:
        self._home = home
        self._config_home = config_home
        self._answers: dict[tuple[object, ...], tuple[Path | None, bool]] = {}

    def find_info(self, root: Path) -> GitInfo:
        repository = next((folder for folder in (root, *root.parents) if is_repository(folder)), None)
        settings: tuple[Path, ...] = (
            Path("/etc/gitconfig"),
            self._home / ".gitconfig",
            self._config_home / "git" / "config",
        )
        settings += (repository / ".git" / "config",) if repository else ()
        seen = tuple((path, found) for path in settings if (found := read_signature(str(path))) is not None)
        key = (root, *seen) if seen else ()
        if key not in self._answers:
            usual = self._config_home / "git" / "ignore", False
            asks = _needs_git(repository, [path for path, _ in seen])
            self._answers[key] = _read_config(root, self._home, self._config_home) if asks else usual
        excludes_file, ignore_case = self._answers[key]
        return GitInfo(repository=repository, excludes_file=excludes_file, ignore_case=ignore_case, settings=settings)


def _needs_git(repository: Path | None, settings: Sequence[Path]) -> bool:
    """Whether only git can tell, for its settings may stand elsewhere or say something about it."""
    elsewhere = sys.platform != "linux" or any(name in os.environ for name in _CONFIG_VARIABLES)
    in_worktree = repository is not None and (repository / ".git").is_file()
    return elsewhere or in_worktree or any(map(_may_say, settings))


def _may_say(file: Path) -> bool:
    """Whether a settings file may name an ignore file or the case of names, itself or by one that it includes. Most do
    not, and then git need not be started."""
    try:
        text = read_small_file(file).lower()
    except OSError:
        return True
    return any(word in text for word in (b"excludesfile", b"ignorecase", b"include", b"worktreeconfig", b"\\"))


def is_repository(folder: Path) -> bool:
    """A `.git` directory that is one, or the file that a worktree or submodule has in its place."""
    dot_git = folder / ".git"
    try:
        return dot_git.is_file() or (dot_git / "HEAD").is_file()
    except OSError:
        return False


def find_exclude_file(dot_git: Path) -> Path | None:
    """`info/exclude` of a repository; a worktree shares it with the repository it belongs to."""
    directory = _read_reference(dot_git, "gitdir: ") if dot_git.is_file() else dot_git
    if directory is None:
        return None
    common = _read_reference(directory / "commondir", "")
    return (common or directory) / "info" / "exclude"


def _read_reference(file: Path, prefix: str) -> Path | None:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as opened:
            line = opened.readline(4096).rstrip("\n")
    except OSError:
        return None
    return file.parent / line.removeprefix(prefix) if line.startswith(prefix) and "\0" not in line else None


def _read_config(root: Path, home: Path, config_home: Path) -> tuple[Path | None, bool]:
    """core.excludesFile and core.ignoreCase as git itself finds them. Without git: where the file usually stands."""
    import subprocess

    usual = config_home / "git" / "ignore"
    try:
        asked = start_confined(lambda: _run_git_config(root), home=str(home))
    except (OSError, subprocess.SubprocessError):
        return usual, False
    said = dict(
        item.partition("\n")[::2] for item in asked.stdout.decode("utf-8", "surrogateescape").split("\0") if item
    )
    named = said.get("core.excludesfile")
    return (_expand_home(named, root, home) if named else usual), said.get("core.ignorecase", "") in (
        "true",
        "yes",
        "1",
    )


def _run_git_config(root: Path) -> subprocess.CompletedProcess[bytes]:
    import subprocess

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


def _expand_home(named: str, root: Path, home: Path) -> Path:
    return home / named[2:] if named.startswith("~/") else root / named

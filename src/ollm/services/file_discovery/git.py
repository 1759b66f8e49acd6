"""Where git keeps the rules that are in no `.gitignore`: `info/exclude` and core.excludesFile."""

from __future__ import annotations

import os
import sys

from ollm.services.file_discovery.reading import Signature, read_signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

_GIT_TIMEOUT_SECONDS = 5
_CONFIG_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class GitInfo:
    """What git says about a directory. `repository` is None outside of one; `settings` are the files that say so, each
    with what it was when they were read."""

    def __init__(
        self, repository: str | None, excludes_file: str, settings: dict[str, Signature], *, ignore_case: bool
    ) -> None:
        self.repository, self.excludes_file = repository, excludes_file
        self.settings, self.ignore_case = settings, ignore_case


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
        return GitInfo(repository, excludes_file, settings, ignore_case=ignore_case)


def iter_upwards(path: str) -> Iterator[str]:
    """An absolute path and all directories above it, the nearest first."""
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _needs_git(repository: str | None, settings: Sequence[str]) -> bool:
    """Whether only git can tell, for its settings may be elsewhere or say something about it."""
    elsewhere = sys.platform != "linux" or any(name in os.environ for name in _CONFIG_VARIABLES)
    in_worktree = repository is not None and os.path.isfile(os.path.join(repository, ".git"))
    return elsewhere or in_worktree or any(map(_may_say, settings))


def _may_say(file: str) -> bool:
    """Whether a settings file may name an ignore file or the case of names, itself or by one that it includes. Most do
    not, and then git need not be started."""
    from ollm.system.small_files import read_small_file

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

    from ollm.system.sandbox.confined import start_confined

    usual = f"{config_home}/git/ignore"
    try:
        asked = start_confined(lambda: _run_git_config(root), home=home)
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

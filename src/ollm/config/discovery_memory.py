"""What the settings say about finding files, remembered from the last time that all of them were read.

Reading every setting takes longer than walking a project. What is remembered counts as long as the files and variables
it came from are the same, and only settings with which nothing was wrong are remembered: whatever else there is to say
is said by reading them again. Nothing but the interpreter's own modules is imported here.
"""

from __future__ import annotations

import os

from ollm.system.small_files import read_small_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

BUILTIN_IGNORES = ("node_modules", ".git", "dist", "build", ".next", ".cache")
_MAX_SOURCE_BYTES = 1 << 20
_FORMAT_VERSION = 1
_NO_SETTINGS = frozenset({"OLLM_HOME", "OLLM_LOG_LEVEL", "OLLM_PLAIN"})
_SECRETS = frozenset({"OLLM_API_KEY"})  # of these only that they are set is remembered


class WalkSettings:
    """How files are found: see `FileDiscoverySettings`, which these are a part of."""

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        follow_symlinks: bool = False,
        builtin_ignores: tuple[str, ...] = BUILTIN_IGNORES,
    ) -> None:
        self.max_depth, self.follow_symlinks, self.builtin_ignores = max_depth, follow_symlinks, builtin_ignores


class SettingSources:
    """Where the settings of one run come from: variables, home, workspace, and the version that reads them."""

    def __init__(self, environment: Mapping[str, str], home: str, workspace: str, version: str) -> None:
        self.home = home
        self.memory = f"{home}/cache/walk-settings"
        found = None if os.path.lexists(f"{workspace}/.ollm/config.yaml") else _describe_files(home)
        self.known = found is not None  # not where a workspace has settings of its own, which count when it is trusted
        self._described = [*_describe_variables(environment), *(found or ())]
        self._version = version

    @property
    def empty(self) -> bool:
        return self.known and not self._described

    def __str__(self) -> str:
        return " ".join((str(_FORMAT_VERSION), self._version, *self._described))


def recall_walk_settings(sources: SettingSources) -> WalkSettings | None:
    """The settings, where they can be told without reading them; None where they have to be read."""
    if sources.empty:
        return WalkSettings()
    if not sources.known:
        return None
    try:
        head, *lines = read_small_file(sources.memory).decode("utf-8", "surrogateescape").split("\n")
    except OSError:
        return None
    if head != str(sources) or len(lines) < 3 or lines[-1] != "end":
        return None
    depth, follow, *ignores = lines[:-1]
    return WalkSettings(int(depth) if depth else None, follow_symlinks=follow == "yes", builtin_ignores=tuple(ignores))


def remember_walk_settings(sources: SettingSources, settings: WalkSettings) -> None:
    """Keep settings that were read without a word to say about them. A home that does not exist is not made."""
    if sources.empty or not sources.known or not os.path.isdir(sources.home):
        return
    if any("\n" in name for name in settings.builtin_ignores):
        return
    from pathlib import Path

    from ollm.system.atomic import make_private_directory, replace_file

    depth = "" if settings.max_depth is None else str(settings.max_depth)
    lines = (str(sources), depth, "yes" if settings.follow_symlinks else "no", *settings.builtin_ignores, "end")
    memory, data = Path(sources.memory), "\n".join(lines).encode("utf-8", "surrogateescape")
    try:
        if _holds(sources.memory, data):
            return
        make_private_directory(memory.parent)
        replace_file(memory, data, durable=False)
    except OSError:
        return


def _holds(file: str, data: bytes) -> bool:
    try:
        return read_small_file(file) == data
    except OSError:
        return False


def _describe_variables(environment: Mapping[str, str]) -> list[str]:
    """One word for each of our variables that is set."""
    ours = [name for name in environment if name.startswith("OLLM_") or name == "OLLAMA_HOST"]
    return [
        f"{os.fsencode(name).hex()}:{_compute_check(b'' if name in _SECRETS else os.fsencode(environment[name]))}"
        for name in sorted(ours)
        if name not in _NO_SETTINGS
    ]


def _describe_files(home: str) -> list[str] | None:
    """One word for each file that is there; None where one cannot be read."""
    found = []
    for name in ("config.yaml", "trust.json"):
        try:
            found.append(f"{name}:{_compute_check(read_small_file(f'{home}/{name}', _MAX_SOURCE_BYTES))}")
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return found


def _compute_check(data: bytes) -> str:
    import zlib

    return f"{len(data)}:{zlib.crc32(data):08x}:{zlib.adler32(data):08x}"

"""Files that are asked about every time, whatever rules and grants say: the one list of them.

Names are compared without case, without invisible characters and without the trailing dots some file systems drop.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ollm.domain.struct import Data
from ollm.system.file_names import SHELL_START_UP_FILES, is_environment_file, normalize_name
from ollm.system.sandbox.names import HOME_SECRETS, find_steering_name

_SECRETS = frozenset(secret.casefold() for secret in HOME_SECRETS) - {".ollm"}
PROTECTED_DIRECTORIES = frozenset({".git", ".ollm", ".vscode", ".idea"})


class KnownDirectories(Data, frozen=True):
    """The directories that protections name, all resolved. A root that lies strictly inside the agent's own
    directory is taken as a workspace, not as configuration."""

    user_home: Path | None = None
    ollm_home: Path | None = None
    roots: tuple[Path, ...] = ()
    executed: frozenset[Path] = frozenset()  # files that hooks and MCP servers run


def explain_write_protection(path: Path, places: KnownDirectories) -> str | None:
    """Why writing to this absolute path needs a person's answer, or None. Ask for the path as given and as resolved."""
    for part in path.parts:
        plain = normalize_name(part)
        if plain in PROTECTED_DIRECTORIES:
            return f"{part} is protected"
        if plain.startswith(".env"):
            return f"{part} may contain secrets"
        if plain in SHELL_START_UP_FILES or _is_fish_snippet(plain, path):
            return f"{part} runs when a shell starts"
    if (steering := find_steering_name(str(path))) is not None:
        return f"{steering} steers tools or agents"
    if path in places.executed:
        return f"{path.name} is run by a hook or an MCP server"
    return _explain_private_directory(path, places)


def explain_read_protection(path: Path, places: KnownDirectories) -> str | None:
    """Why reading this absolute path needs a person's answer, or None. Ask for the path as given and as resolved."""
    if not _is_without(".env", str(path)):
        for part in path.parts:
            if is_environment_file(part):
                return f"{part} may contain secrets"
    return _explain_private_directory(path, places)


def _is_without(text: str, path: str) -> bool:
    """Whether `text` is nowhere in a path, for certain: most paths need no look at their parts."""
    return path.isascii() and text not in path.lower()


def _is_fish_snippet(plain: str, path: Path) -> bool:
    return plain == "conf.d" and any(normalize_name(part) == "fish" for part in path.parts)


def _explain_private_directory(path: Path, places: KnownDirectories) -> str | None:
    parts = tuple(map(normalize_name, path.parts))
    if secret := _find_home_secret(parts, places.user_home):
        return f"~/{secret} contains keys or secrets"
    keys, own = _list_private_directories(places.user_home, places.ollm_home)
    if any(parts[: len(above)] == above for above in keys):
        return "~/.ssh contains keys"
    for directory, above in own:
        if parts[: len(above)] == above and not _is_in_own_root(path, directory, places):
            return "it belongs to ollm's settings and records"
    return None


def _find_home_secret(parts: tuple[str, ...], user_home: Path | None) -> str | None:
    """Which of the places where a home keeps its secrets a path lies in."""
    if user_home is None:
        return None
    home = _normalize_home(user_home)
    if parts[: len(home)] != home:
        return None
    below = parts[len(home) :]
    return next((one for depth in (1, 2, 3) if (one := "/".join(below[:depth])) in _SECRETS and below[:depth]), None)


@lru_cache(maxsize=8)
def _normalize_home(user_home: Path) -> tuple[str, ...]:
    return _normalize_parts(user_home)


Parts = tuple[str, ...]


@lru_cache(maxsize=64)
def _list_private_directories(
    user_home: Path | None, ollm_home: Path | None
) -> tuple[tuple[Parts, ...], tuple[tuple[Path, Parts], ...]]:
    """Where keys are and what is the agent's own, taken apart once: every path is compared with these."""
    keys = () if user_home is None else (_normalize_parts(user_home / ".ssh"),)
    own = [] if user_home is None else [user_home / ".ollm"]
    own += [] if ollm_home is None else [ollm_home]
    return keys, tuple((directory, _normalize_parts(directory)) for directory in own)


def _normalize_parts(directory: Path) -> Parts:
    return tuple(map(normalize_name, directory.parts))


def _is_in_own_root(path: Path, directory: Path, places: KnownDirectories) -> bool:
    return any(
        root != directory and root.is_relative_to(directory) and path.is_relative_to(root) for root in places.roots
    )

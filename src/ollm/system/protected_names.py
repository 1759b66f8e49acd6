"""Files that are asked about every time, whatever rules and grants say: the one list of them.

Names are compared without case, without invisible characters and without the trailing dots some file systems drop.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ollm.domain.struct import Data
from ollm.system.file_names import SHELL_START_UP_FILES, is_environment_file, normalize_name
from ollm.system.sandbox.box import CACHES, TOOLCHAINS
from ollm.system.sandbox.names import find_steering_name

_SHARED_FOLDERS = (".config", ".local", ".cache")  # of many programs
_PROGRAMS = tuple(f"{name.casefold()}/" for name in (*TOOLCHAINS, *CACHES, ".pyenv/versions", ".rbenv/versions"))
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
    """Return True if `text` is certainly nowhere in a path: most paths need no look at their parts."""
    return path.isascii() and text not in path.lower()


def _is_fish_snippet(plain: str, path: Path) -> bool:
    return plain == "conf.d" and any(normalize_name(part) == "fish" for part in path.parts)


def _explain_private_directory(path: Path, places: KnownDirectories) -> str | None:
    parts = tuple(map(normalize_name, path.parts))
    if secret := _find_private_folder(path, parts, places):
        return f"~/{secret} may contain keys or secrets"
    keys, own = _list_private_directories(places.user_home, places.ollm_home)
    if any(parts[: len(above)] == above for above in keys):
        return "~/.ssh contains keys"
    for directory, above in own:
        if parts[: len(above)] == above and not _is_in_own_root(path, directory, places):
            return "it belongs to ollm's settings and records"
    return None


def _find_private_folder(path: Path, parts: tuple[str, ...], places: KnownDirectories) -> str | None:
    """The hidden folder or file of the home that a path lies in, unless it belongs to a root or a toolchain: programs
    keep logins in such folders, and no list of them is complete."""
    if places.user_home is None:
        return None
    home = _normalize_home(places.user_home)
    below = parts[len(home) :]
    if parts[: len(home)] != home or not below or not below[0].startswith(".") or below[0] == ".ollm":
        return None
    if "/".join((*below, "")).startswith(_PROGRAMS) or any(path.is_relative_to(root) for root in places.roots):
        return None
    return "/".join(below[:2] if below[0] in _SHARED_FOLDERS else below[:1])


@lru_cache(maxsize=8)
def _normalize_home(user_home: Path) -> tuple[str, ...]:
    return _normalize_parts(user_home)


Parts = tuple[str, ...]


@lru_cache(maxsize=64)
def _list_private_directories(
    user_home: Path | None, ollm_home: Path | None
) -> tuple[tuple[Parts, ...], tuple[tuple[Path, Parts], ...]]:
    """List the folders of keys and of ollm itself, split once: every path is compared with these."""
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

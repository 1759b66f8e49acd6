"""The boundary for every path a tool uses (T3.8): resolves it, checks access and opens it safely.

A tool passes the path as the model gave it to a `Boundary` and gets an open file, a directory or a replaced file back;
it never opens a path itself. Each call resolves the path again (following links, also for the part that does not exist
yet), compares it by components with the workspace and the allowed roots, and checks the protected names. Then it opens
exactly the path that was checked, component by component and without following links. If a link is swapped in between,
the check is repeated. Links that stay inside work. `~` and `$VAR` are plain characters.

Paths that a person approved are passed in with `approve_paths`: only that lets a tool read outside or touch a protected
file. Writing outside is never possible. Failures are `ToolFailure`s that name the path as given.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import BinaryIO, Self, TypeVar

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data
from ollm.domain.tools import Access
from ollm.system import beneath
from ollm.system.atomic import read_small_file
from ollm.system.path_names import (
    SHELL_START_UP_FILES,
    find_own_place,
    is_environment_file,
    list_home_places,
    normalize_name,
    writable_roots,
)

T = TypeVar("T")
_MAX_ATTEMPTS = 16
_ERRNO_FAILURES = {
    errno.ENOENT: ("FileNotFound", "does not exist"),
    errno.ENOTDIR: ("FileNotFound", "has a parent that is not a directory"),
    errno.ELOOP: ("FileNotFound", "is a circular link"),
    errno.EEXIST: ("FileExists", "already exists"),
    errno.EISDIR: ("IsDirectory", "is a directory"),
    errno.ENAMETOOLONG: ("ValidationError", "is longer than a path can be"),
    errno.EACCES: ("PermissionDenied", "cannot be accessed: permission denied"),
    errno.EPERM: ("PermissionDenied", "cannot be accessed: operation not permitted"),
    errno.EROFS: ("PermissionDenied", "is on a read-only file system"),
    errno.ENXIO: ("NotARegularFile", "is not a regular file"),
}
_SHARED_FOLDERS = (".config", ".local", ".cache")
PROTECTED_DIRECTORIES = frozenset({".git", ".ollm"})
_GIT_SETTINGS = ("config", "config.worktree")
_LOGIN = compile_late(rb"(?i)extraheader|https?://[^/\s\"]*@|://[^/\s\"@]*:[^/\s\"]*@")
Parts = tuple[str, ...]


class Judgement(Data, frozen=True):
    """Objections to one path, before anything is opened. `named` is the path as given, without `.` and `..`. A
    protected name counts in either path. A reason is None if there is nothing to ask."""

    resolved: Path
    inside: bool
    named: Path
    places: KnownDirectories

    @property
    def read_protection(self) -> str | None:
        return self._find_protection(explain_read_protection)

    @property
    def write_protection(self) -> str | None:
        return self._find_protection(explain_write_protection)

    def _find_protection(self, rule: Callable[[Path, KnownDirectories], str | None]) -> str | None:
        reason = rule(self.resolved, self.places)
        return reason if reason or self.named is self.resolved else rule(self.named, self.places)


def resolve_path(given: str, base: Path) -> Path:
    """Resolve a path, following links also for the part that does not exist. Opens nothing."""
    return _follow_links(join_path(given, base), given)


def join_path(given: str, base: Path) -> str:
    """Return the path in a folder. Raises ToolFailure for text that cannot be one."""
    if not given:
        raise ToolFailure("ValidationError", "The path is empty.")
    if "\0" in given:
        raise ToolFailure("ValidationError", f"The path {given!r} contains a NUL character.")
    try:
        os.fsencode(given)
    except UnicodeEncodeError as error:
        raise ToolFailure("ValidationError", f"The path {given!r} is not valid text.") from error
    path = os.path.join(base, given)  # noqa: PTH118 - asked about for every call
    if "\\x" in given and not os.path.lexists(path):
        meant = re.sub(r"\\\\|(?:\\x[0-9a-fA-F]{2})+", _parse_escape, given)
        shown = os.path.join(base, meant)  # noqa: PTH118
        return shown if os.path.lexists(shown) else path
    return path


def show_name(name: str) -> str:
    """Return a file name in one line of text: bytes that are not UTF-8, line ends and hidden characters as `\\xNN`. The
    tools take it back in that form."""
    if name.isprintable():
        return name
    shown = (one if one.isprintable() else "".join(map(r"\x{:02x}".format, os.fsencode(one))) for one in name)
    return "".join(r"\\" if one == "\\" else one for one in shown)


def _parse_escape(found: re.Match[str]) -> str:
    """Return what an escape of `show_name` stands for. It makes no escape of printable text, such as a dot."""
    if found[0] == r"\\":
        return "\\"
    text = os.fsdecode(bytes.fromhex(found[0].replace(r"\x", "")))
    return found[0] if any(map(str.isprintable, text)) else text


def _follow_links(path: str, given: str, *, strict: bool = False) -> Path:
    for _ in range(_MAX_ATTEMPTS):
        try:
            return Path(os.path.realpath(path, strict=strict))
        except OSError as error:
            if error.errno != errno.EINVAL:  # The link may have been replaced before it was read.
                raise make_tool_failure(error, given) from error
    raise ToolFailure("FileChanged", f"{given} keeps changing.")


def make_tool_failure(error: OSError, given: str) -> ToolFailure:
    """Convert a file system error for the model: the path it gave, and the reason (T12.2)."""
    kind, text = _ERRNO_FAILURES.get(
        error.errno or 0, ("PermissionDenied", f"cannot be used: {error.strerror or error}")
    )
    return ToolFailure(kind, f"{given} {text}.")


class Boundary(Data, frozen=True):
    """The workspace and other accessible directories. Build it with `around`, which resolves the directories."""

    workspace: Path
    places: KnownDirectories
    approved: frozenset[Path] = frozenset()
    readable: tuple[Path, ...] = ()  # The user's texts for the agent, anywhere; never writable.

    @classmethod
    def around(
        cls,
        workspace: Path,
        allowed_roots: Iterable[Path] = (),
        *,
        user_home: Path | None = None,
        ollm_home: Path | None = None,
        records: Iterable[str] = (),
        executed: Iterable[Path] = (),
        readable: Iterable[Path] = (),
    ) -> Self:
        real = Path(os.path.realpath(workspace))
        places = KnownDirectories(
            user_home=user_home and Path(os.path.realpath(user_home)),
            ollm_home=ollm_home and Path(os.path.realpath(ollm_home)),
            records=frozenset(map(normalize_name, records)),
            roots=(real,),
            executed=frozenset(one for path in executed for one in (path, Path(os.path.realpath(path)))),
        )
        boundary = cls(
            workspace=real,
            places=places,
            readable=tuple(one for path in readable for one in (path, Path(os.path.realpath(path)))),
        )
        writable_roots.add(str(real))
        for root in allowed_roots:
            boundary.add_root(root)
        return boundary

    def explain_refused_root(self, folder: Path) -> str | None:
        """Return why a person cannot add a directory: commands could use the protected places in it."""
        if any(home and home.is_relative_to(folder) for home in (self.places.user_home, self.places.ollm_home)):
            return "your home or ollm's own folder lies in it"
        return _explain_private_directory(folder, self.places)

    def add_root(self, root: Path) -> None:
        """Let tools read and write in another directory. All copies of this boundary share its places, and so this."""
        real = os.path.realpath(self.workspace / root)
        msgspec.structs.force_setattr(self.places, "roots", (*self.places.roots, Path(real)))
        writable_roots.add(real)

    def approve_paths(self, resolved: Iterable[Path]) -> Self:
        """Return this boundary for one call whose protected or outside paths a person has just approved. Pass the
        resolved paths that were checked before the question, so that the approval covers nothing else."""
        return msgspec.structs.replace(self, approved=self.approved | frozenset(resolved))

    def judge(self, given: str) -> Judgement:
        """Return everything policy needs about a path."""
        path = join_path(given, self.workspace)
        resolved, named = _follow_links(path, given), os.path.normpath(path)
        return Judgement(
            resolved=resolved,
            inside=self._find_root(resolved) is not None,
            named=resolved if named == str(resolved) else Path(named),
            places=self.places,
        )

    def check(self, given: str, access: Access = "read") -> Path:
        """Return the resolved path if this access is allowed. Raises ToolFailure (OutsideWorkspace, Denied)."""
        judged = self.judge(given)
        reason = judged.read_protection if access == "read" else judged.write_protection if access == "write" else None
        if judged.inside and not reason:
            return judged.resolved
        approved = not self.approved.isdisjoint((judged.resolved, *judged.resolved.parents)) or (
            access == "read" and self.is_readable(judged)
        )
        if not judged.inside and not (access == "read" and approved):
            raise ToolFailure("OutsideWorkspace", f"{given} is outside the workspace {self.workspace}.")
        if reason and not approved:
            raise ToolFailure("Denied", f"{given} needs the user's confirmation: {reason}.")
        return judged.resolved

    def open_file(self, given: str) -> BinaryIO:
        """Open a regular file for reading. Its `name` is the resolved path. The caller closes it."""

        def open_named(root: Path, path: Path) -> BinaryIO:
            return open(path, "rb", opener=lambda *_: beneath.open_regular(root, path))

        return self._act_on_path(given, "read", open_named)

    @contextmanager
    def open_directory(self, given: str, access: Access = "read") -> Iterator[int]:
        """Open a directory, for `os.scandir(fd)`, `dir_fd=`, or to run a command in (`access="run"`)."""
        descriptor = self._act_on_path(given, access, beneath.open_directory)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def write_file(self, given: str, content: bytes, *, overwrite: bool = True) -> Path:
        """Write a file atomically, creating parents and keeping mode and owner of an old file. Return its path."""

        def replace(root: Path, path: Path) -> Path:
            beneath.replace_file(root, path, content, overwrite=overwrite)
            return path

        return self._act_on_path(given, "write", replace)

    def remove_file(self, given: str) -> None:
        """Remove a regular file; a link is followed to its target, as everywhere here."""
        self._act_on_path(given, "write", beneath.remove_file)

    def _act_on_path(self, given: str, access: Access, action: Callable[[Path, Path], T]) -> T:
        for _ in range(_MAX_ATTEMPTS):
            path = self.check(given, access)
            try:
                return action(self._find_root(path) or Path(path.anchor), path)
            except beneath.LinkFound:
                continue
            except OSError as error:
                raise make_tool_failure(error, given) from error
        _follow_links(str(path), given, strict=True)  # It says that a link is circular.
        raise ToolFailure("FileChanged", f"{given} keeps changing.")

    def is_readable(self, judged: Judgement) -> bool:
        """Return True if a path, as named and as resolved, is among those that are always readable."""
        return all(
            any(path.is_relative_to(one) for one in self.readable) and not is_environment_file(path.name)
            for path in (judged.named, judged.resolved)
        )

    def _find_root(self, path: Path) -> Path | None:
        parts = path.parts
        return next((root for root in self.places.roots if parts[: len(root.parts)] == root.parts), None)


class KnownDirectories(Data, frozen=True):
    """The directories that protections refer to, all resolved. A root strictly inside the agent's own directory is a
    workspace, but not one in its `records`, which hold sessions and keys wherever a session runs."""

    user_home: Path | None = None
    ollm_home: Path | None = None
    records: frozenset[str] = frozenset()
    roots: tuple[Path, ...] = ()
    executed: frozenset[Path] = frozenset()


def explain_write_protection(path: Path, places: KnownDirectories) -> str | None:
    """Return why writing to an absolute path needs approval, or None. Check the path as given and as resolved."""
    for count, part in enumerate(path.parts, 1):
        if reason := _explain_name(part, path, count):
            return reason
    if path in places.executed:
        return f"{path.name} is run by a hook or an MCP server"
    if own := find_own_place(str(path), map(str, places.roots)):
        return f"ollm runs from {own}; install it outside the project (pipx or uv tool)"
    return _explain_private_directory(path, places)


def _explain_name(part: str, path: Path, count: int) -> str | None:
    """Explain the protection of a path by one of its parts, with its number. A new `.env` is an ordinary file."""
    plain = normalize_name(part)
    if plain in PROTECTED_DIRECTORIES:
        return f"{part} is protected"
    if plain.startswith(".env") and os.path.lexists(Path(*path.parts[:count])):
        return f"{part} may contain secrets"
    is_fish = plain == "conf.d" and any(normalize_name(one) == "fish" for one in path.parts)
    start_up = is_fish or plain in SHELL_START_UP_FILES
    return f"{part} runs when a shell starts" if start_up else None


def explain_read_protection(path: Path, places: KnownDirectories) -> str | None:
    """Return why reading an absolute path needs approval, or None. Check the path as given and as resolved."""
    name = str(path)
    if not name.isascii() or ".env" in name.lower():
        for part in path.parts:
            if is_environment_file(part):
                return f"{part} may contain secrets"
    return explain_login(name) or _explain_private_directory(path, places)


def explain_login(path: str) -> str | None:
    """Return why reading a file shows a login of git, or None."""
    above, name = os.path.split(path)
    if normalize_name(name) in _GIT_SETTINGS and os.path.lexists(os.path.join(above, "HEAD")) and has_login(path):  # noqa: PTH118
        return f"{name} contains a login for git"
    return None


def has_login(file: str) -> bool:
    """Return True for settings of git with a login in an address, or a header that may be one."""
    try:
        return _LOGIN.search(read_small_file(file)) is not None
    except OSError:
        return False


def _explain_private_directory(path: Path, places: KnownDirectories) -> str | None:
    parts = tuple(map(normalize_name, path.parts))
    if secret := _find_private_folder(path, parts, places):
        return f"~/{secret} may contain keys or secrets"
    for directory, above in _list_own_directories(places.user_home, places.ollm_home):
        if parts[: len(above)] == above and not _is_in_own_root(path, directory, places):
            return "it belongs to ollm's settings and records"
    return None


def _find_private_folder(path: Path, parts: tuple[str, ...], places: KnownDirectories) -> str | None:
    """The hidden folder or file of the home that a path lies in, unless it belongs to a toolchain or, for all but keys
    of ssh, to a root below the home: programs keep logins in such folders, and no list of them is complete."""
    if places.user_home is None:
        return None
    home = _normalize_parts(places.user_home)
    below = parts[len(home) :]
    if parts[: len(home)] != home or not below or not below[0].startswith(".") or below[0] == ".ollm":
        return None
    if "/".join((*below, "")).startswith(_list_program_folders()):
        return None
    roots = places.roots if below[0] != ".ssh" else ()
    if any(path.is_relative_to(root) and not places.user_home.is_relative_to(root) for root in roots):
        return None
    return "/".join(below[:2] if below[0] in _SHARED_FOLDERS else below[:1])


@cache
def _list_program_folders() -> Parts:
    return tuple(f"{name.casefold().rstrip('*')}/" for names in list_home_places() for name in names)


@lru_cache(maxsize=64)
def _list_own_directories(user_home: Path | None, ollm_home: Path | None) -> tuple[tuple[Path, Parts], ...]:
    """List the folders of ollm itself, split in advance because every path is compared with them."""
    own = (user_home and user_home / ".ollm", ollm_home)
    return tuple((directory, _normalize_parts(directory)) for directory in own if directory)


@lru_cache(maxsize=64)
def _normalize_parts(directory: Path) -> Parts:
    return tuple(map(normalize_name, directory.parts))


def _is_in_own_root(path: Path, directory: Path, places: KnownDirectories) -> bool:
    for root in places.roots:
        if root != directory and root.is_relative_to(directory) and path.is_relative_to(root):
            return normalize_name(root.relative_to(directory).parts[0]) not in places.records
    return False

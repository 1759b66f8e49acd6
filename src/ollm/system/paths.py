"""The boundary every tool's path goes through (T3.8): where it leads, whether it may, and opening it safely.

A tool hands the path as the model gave it to a `Boundary` and gets an open file, a directory or a replaced file back;
it never opens a path by itself. Each call resolves the path again (links followed, also for the part that does not
exist yet), compares it by components with the workspace and the allowed roots, looks at the protected names, and then
opens exactly what was judged, part by part and without following links: a link swapped in between is noticed, and the
judging starts over. Links that stay inside work. `~` and `$VAR` are plain characters.

What a person approved is handed in with `approve_paths`: only that lets a tool read outside or touch a protected file.
Writing outside is never possible. Failures are `ToolFailure`s that name the path as it was given.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self, TypeVar

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import Access
from ollm.system import beneath
from ollm.system.file_names import is_environment_file
from ollm.system.protected_names import (
    KnownDirectories,
    explain_read_protection,
    explain_write_protection,
)

__all__ = [
    "Boundary",
    "Judgement",
    "KnownDirectories",
    "explain_read_protection",
    "explain_write_protection",
    "is_environment_file",
    "resolve_path",
]

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


class Judgement(Data, frozen=True):
    """Objections to one path, before anything is opened. `named` is the path as given, without `.` and `..`. A
    protected name counts in either. Reasons are None where there is nothing to ask."""

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
    """Resolve a path: follow links, also for the part that does not exist. Opens nothing."""
    return _follow_links(_join_path(given, base), given)


def _join_path(given: str, base: Path) -> str:
    if not given:
        raise ToolFailure("ValidationError", "The path is empty.")
    if "\0" in given:
        raise ToolFailure("ValidationError", f"The path {given!r} contains a NUL character.")
    return os.path.join(base, given)  # noqa: PTH118 - asked about for every call


def _follow_links(path: str, given: str) -> Path:
    for _ in range(_MAX_ATTEMPTS):
        try:
            return Path(os.path.realpath(path))
        except UnicodeEncodeError as error:
            raise ToolFailure("ValidationError", f"The path {given!r} is not valid text.") from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # a link that was none any more when it was read
                raise make_tool_failure(error, given) from error
    raise ToolFailure("FileChanged", f"{given} keeps changing.")


def make_tool_failure(error: OSError, given: str) -> ToolFailure:
    """A file system error as the model reads it: the path it gave, and the reason (T12.2)."""
    kind, text = _ERRNO_FAILURES.get(
        error.errno or 0, ("PermissionDenied", f"cannot be used: {error.strerror or error}")
    )
    return ToolFailure(kind, f"{given} {text}.")


def _make_changing_failure(given: str, path: Path) -> ToolFailure:
    try:
        os.path.realpath(path, strict=True)
    except OSError as error:
        return make_tool_failure(error, given)
    return ToolFailure("FileChanged", f"{given} keeps changing.")


class Boundary(Data, frozen=True):
    """The workspace and what else may be touched. Build it with `around`, which resolves the directories."""

    workspace: Path
    places: KnownDirectories
    approved: frozenset[Path] = frozenset()
    readable: tuple[Path, ...] = ()  # the person's own texts for the agent, wherever they are: to read, never to write

    @classmethod
    def around(
        cls,
        workspace: Path,
        allowed_roots: Iterable[Path] = (),
        *,
        user_home: Path | None = None,
        ollm_home: Path | None = None,
        executed: Iterable[Path] = (),
        readable: Iterable[Path] = (),
    ) -> Self:
        real = Path(os.path.realpath(workspace))
        places = KnownDirectories(
            user_home=user_home and Path(os.path.realpath(user_home)),
            ollm_home=ollm_home and Path(os.path.realpath(ollm_home)),
            roots=(real, *(Path(os.path.realpath(real / root)) for root in allowed_roots)),
            executed=frozenset(one for path in executed for one in (path, Path(os.path.realpath(path)))),
        )
        return cls(
            workspace=real,
            places=places,
            readable=tuple(one for path in readable for one in (path, Path(os.path.realpath(path)))),
        )

    def approve_paths(self, resolved: Iterable[Path]) -> Self:
        """The same boundary for one call whose protected or outside paths a person has just approved.
        Pass the resolved paths that were judged before the question, so that the answer cannot be stretched."""
        return msgspec.structs.replace(self, approved=self.approved | frozenset(resolved))

    def judge(self, given: str) -> Judgement:
        """Everything policy asks about a path."""
        path = _join_path(given, self.workspace)
        resolved, named = _follow_links(path, given), os.path.normpath(path)
        return Judgement(
            resolved=resolved,
            inside=self._find_root(resolved) is not None,
            named=resolved if named == str(resolved) else Path(named),
            places=self.places,
        )

    def check(self, given: str, access: Access = "read") -> Path:
        """The resolved path if it may be used in this way, or a ToolFailure (OutsideWorkspace, Denied)."""
        judged = self.judge(given)
        reason = judged.read_protection if access == "read" else judged.write_protection if access == "write" else None
        if judged.inside and not reason:
            return judged.resolved
        approved = self._is_approved(judged.resolved) or (access == "read" and self.is_readable(judged))
        if not judged.inside and not (access == "read" and approved):
            raise ToolFailure("OutsideWorkspace", f"{given} is outside the workspace {self.workspace}.")
        if reason and not approved:
            raise ToolFailure("Denied", f"{given} needs the user's confirmation: {reason}.")
        return judged.resolved

    def open_file(self, given: str) -> BinaryIO:
        """A regular file, open for reading. Close it."""
        return os.fdopen(self._act_on_path(given, "read", beneath.open_regular), "rb")

    @contextmanager
    def open_directory(self, given: str, access: Access = "read") -> Iterator[int]:
        """The descriptor of a directory, for `os.scandir(fd)`, `dir_fd=`, or to run a command in (`access="run"`)."""
        descriptor = self._act_on_path(given, access, beneath.open_directory)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def write_file(self, given: str, content: bytes, *, overwrite: bool = True) -> Path:
        """Replace or create a file atomically, parents too; mode and owner of an old one are kept. Says where."""

        def replace(root: Path, path: Path) -> Path:
            beneath.replace_file(root, path, content, overwrite=overwrite)
            return path

        return self._act_on_path(given, "write", replace)

    def remove_file(self, given: str) -> None:
        """Remove a regular file (a link leads to the file it names, as everywhere here)."""
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
        raise _make_changing_failure(given, path)

    def is_readable(self, judged: Judgement) -> bool:
        """Return True if a path, as named and as resolved, is among those that may be read anyway."""
        return all(
            any(path.is_relative_to(one) for one in self.readable) and not is_environment_file(path.name)
            for path in (judged.named, judged.resolved)
        )

    def _find_root(self, path: Path) -> Path | None:
        parts = path.parts
        return next((root for root in self.places.roots if parts[: len(root.parts)] == root.parts), None)

    def _is_approved(self, path: Path) -> bool:
        return any(path == one or one in path.parents for one in self.approved)

"""Separates the files in writable folders from their names outside: a command could change those through its own name.

`uv` and `pnpm` link installed packages to their caches, `git clone` links objects, and a person may have linked any
file. No mount or Landlock rule tells such a file from another, so each one is replaced by a copy before the first
command of a session. All files are looked at then: a new name elsewhere shows only in the file itself. Those in folders
of packages are looked at again if their folder has changed.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, suppress
from itertools import groupby
from pathlib import Path

from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import compile_late
from ollm.system.beneath import LinkFound, copy_beside, open_parent_directory
from ollm.system.folders import FolderStamp, is_settled, list_changed, read_stamp
from ollm.system.locks import is_process_alive
from ollm.system.sandbox.names import PACKAGE_FOLDERS, find_repositories, is_inside

MAX_COPY_BYTES = 1024**3
MAX_PROTECTED_FILES = 100  # more of them in a folder of packages, and the folder is protected
SLOW_FILES, SLOW_BYTES = 2000, 256 * 1024**2  # take about a second
UNSETTLED = (0, 0, 0, 0)  # no folder has this stamp: it is looked at again
LEFT_OVER_SECONDS = 3600
TEMPORARY_NAME = compile_late(r"\.ollm-[0-9a-f]{16}(?:-(\d+))?\.tmp")  # of a copy; ends with the process that made it


class HardLinks:
    """The files below roots that have other names. `kept` are folders to leave out, which no command can change."""

    def __init__(
        self,
        roots: Iterable[str],
        kept: Container[str] = (),
        *,
        unlock: Callable[[str, int], None],
        report: Callable[[str], None],
    ) -> None:
        self._roots = tuple(roots)
        self._kept = kept
        self._unlock = unlock
        self._report = report
        self._packages: dict[str, FolderStamp] = {}  # all their folders
        self._repositories: dict[str, list[str]] = {}  # in these
        self._complete = self._pending = False
        self._linked: dict[str, dict[str, os.stat_result]] = {}  # folder: files with other names, in it or elsewhere
        self._shared: set[str] = set()  # could not be copied

    def separate(self, packages: Iterable[str]) -> tuple[int, list[str]]:
        """Copy files that have names outside, in these folders of `packages` too. Return how many, and the paths to
        protect because they could not be copied."""
        if not self._complete:
            self._complete = True
            self._scan(self._roots)
        self.look(packages)
        before = len(self._shared)
        found = self._find_shared() if self._pending else {}
        self._pending = False
        copied = self._copy(found)
        if copied or len(self._shared) > before:
            self._tell(copied)
        return copied, self._list_protected()

    def look(self, packages: Iterable[str]) -> bool:
        """Read the folders of packages that are new or have changed. Return True if there are any."""
        tops = [*self._forget_changed(), *(folder for folder in packages if folder not in self._packages)]
        if tops:
            self._scan(tops)
        return bool(tops)

    @property
    def repositories(self) -> list[str]:
        """The repositories in folders of packages, which nobody else searches, as of the last look."""
        return [git for some in self._repositories.values() for git in some]

    def _forget_changed(self) -> list[str]:
        changed = list_changed(self._packages)
        for folder in changed:
            del self._packages[folder]
            self._linked.pop(folder, None)
            self._repositories.pop(folder, None)
        return changed

    def _scan(self, tops: Iterable[str]) -> None:
        """Read folders and those below that are not known."""
        waiting = [
            (folder, not PACKAGE_FOLDERS.isdisjoint(folder.split("/"))) for folder in sorted({*tops}, reverse=True)
        ]
        known = {*self._packages, *tops}
        while waiting:
            folder, in_packages = waiting.pop()
            self._unlock(folder, 0o500)
            began, stamp = time.time_ns(), read_stamp(folder)
            folders, linked, names = self._read_folder(folder)
            self._pending = self._pending or bool(linked)
            self._linked[folder] = linked
            if in_packages and (stamp or names):
                if "/.git/" not in f"{folder}/" and (gits := find_repositories(folder, names)):
                    self._repositories[folder] = gits
                self._packages[folder] = stamp if stamp and is_settled(stamp, began) else UNSETTLED
            for name in folders:
                path = os.path.join(folder, name)
                if path not in known and path not in self._kept:
                    known.add(path)
                    waiting.append((path, in_packages or name in PACKAGE_FOLDERS))

    def _read_folder(self, folder: str) -> tuple[list[str], dict[str, os.stat_result], list[str]]:
        """Return the folders in a folder, its files with other names, and all names."""
        folders, linked, names = [], {}, []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                names.append(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif not entry.is_symlink():
                    about = entry.stat(follow_symlinks=False)
                    if about.st_nlink > 1:
                        linked[entry.path] = about
                    if entry.name.startswith(".ollm-"):
                        _remove_left_over(entry, about)
        return folders, linked, names

    def _find_shared(self) -> dict[str, os.stat_result]:
        """Return the files that have more names than were found."""
        every = {path: about for linked in self._linked.values() for path, about in linked.items()}
        counts = Counter((about.st_dev, about.st_ino) for about in every.values())
        return {path: about for path, about in every.items() if counts[about.st_dev, about.st_ino] < about.st_nlink}

    def _copy(self, files: dict[str, os.stat_result]) -> int:
        wanted = {path: about.st_size for path, about in files.items() if path not in self._shared}
        size = sum(size for size in wanted.values() if size <= MAX_COPY_BYTES)
        if len(wanted) > SLOW_FILES or size > SLOW_BYTES:
            self._report(f"Copying {len(wanted):,} files of the workspace that have another name outside …")
        failed = self.copy_files(wanted) if size < _get_free_bytes(self._roots) // 2 else [*wanted]
        self._shared.update(failed)
        for path in wanted.keys() - self._shared:
            self._linked[os.path.dirname(path)].pop(path, None)
        return len(wanted) - len(failed)

    def copy_files(self, paths: Iterable[str]) -> list[str]:
        """Replace files by copies of their own. Return those that could not be. Packages can be installed again; copies
        of other files are on the disk, all at once, before they take the place of the files."""
        failed: list[str] = []
        made: dict[str, dict[str, str]] = {}
        for folder, some in groupby(sorted(paths, key=os.path.dirname), os.path.dirname):
            copies = self._copy_in_folder(folder, [*some], failed)
            if PACKAGE_FOLDERS.isdisjoint(folder.split("/")):
                made[folder] = copies
            else:
                failed += self._rename(folder, copies)
        if made:
            self._sync()
        return [*failed, *(path for folder, copies in made.items() for path in self._rename(folder, copies))]

    def _copy_in_folder(self, folder: str, paths: list[str], failed: list[str]) -> dict[str, str]:
        copies: dict[str, str] = {}
        self._unlock(folder, 0o700)
        with suppress(OSError, LinkFound), self._open(folder) as parent:
            for path in paths:
                with suppress(OSError, ToolFailure, LinkFound):
                    copies[path] = copy_beside(parent, os.path.basename(path), MAX_COPY_BYTES)
        failed += [path for path in paths if path not in copies]
        return copies

    def _rename(self, folder: str, copies: dict[str, str]) -> list[str]:
        """Let copies take the place of files that nobody has written to since. Return the files left."""
        left = dict(copies)
        with suppress(OSError, LinkFound), self._open(folder) as parent:
            for path, copy in copies.items():
                name = os.path.basename(path)
                with suppress(OSError):
                    if _read_version(name, parent) == _read_version(copy, parent):
                        os.rename(copy, name, src_dir_fd=parent, dst_dir_fd=parent)
                        del left[path]
            for copy in left.values():
                os.unlink(copy, dir_fd=parent)
        return [*left]

    def _open(self, folder: str) -> AbstractContextManager[int]:
        root = next(root for root in self._roots if is_inside(folder, root))
        return open_parent_directory(Path(root), Path(folder, "_"))

    def _sync(self) -> None:
        if sys.platform != "linux":
            os.sync()
            return
        from ollm.system.sandbox.kernel import call

        for root in filter(os.path.isdir, self._roots):
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                call("syncfs", descriptor)
            finally:
                os.close(descriptor)

    def _tell(self, copied: int) -> None:
        text = f"Files of the workspace that have another name outside (hard links): copied {copied:,}"
        left = f"; {len(self._shared):,} could not be copied, and commands cannot change them" if self._shared else ""
        self._report(f"{text}{left}.")

    def _list_protected(self) -> list[str]:
        """Return the files that could not be copied or, if they are many, the folders of packages that they are in."""
        found = [path for path in self._shared if os.path.lexists(path)]
        if len(found) <= MAX_PROTECTED_FILES:
            return found
        return [*{_find_package_folder(path) for path in found}]


def _read_version(name: str, parent: int) -> tuple[int, int]:
    about = os.stat(name, dir_fd=parent, follow_symlinks=False)
    return about.st_size, about.st_mtime_ns


def _remove_left_over(entry: os.DirEntry[str], about: os.stat_result) -> None:
    """Remove a copy that a kill interrupted."""
    named = TEMPORARY_NAME.fullmatch(entry.name)
    gone = named is not None and named[1] and not is_process_alive(int(named[1]))
    if named and (gone or about.st_ctime < time.time() - LEFT_OVER_SECONDS):
        with suppress(OSError):
            os.unlink(entry.path)


def _find_package_folder(path: str) -> str:
    parts = path.split("/")
    first = next((count for count, part in enumerate(parts) if part in PACKAGE_FOLDERS), len(parts))
    return "/".join(parts[: first + 1])


def _get_free_bytes(folders: Iterable[str]) -> int:
    states = map(os.statvfs, filter(os.path.exists, folders))
    return min((state.f_bavail * state.f_frsize for state in states), default=0)

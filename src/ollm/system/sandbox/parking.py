"""Keeps git's operations in progress (rebase, bisect, cherry-pick …) for the commands of the sandbox.

Git outside runs programs that such files name. So what a command made or changed of them moves to a folder of ours when
it has ended, and is put back before the next sandboxed command in the same folder. An operation that no command changed
stays where it is: the user began it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ollm.system.atomic import make_private_directory
from ollm.system.beneath import LinkFound, open_parent_directory
from ollm.system.sandbox import kernel
from ollm.system.sandbox.names import is_git_operation, is_inside, list_names
from ollm.system.sandbox.taken import PARKED, TakenFile, describe_taken, make_batch, move_aside

MAX_READ_BYTES = 16 * 1024**2


class Parking:
    """The operations in git directories below roots, each kept in a folder for its git directory. `find_folder` returns
    the session's folder for taken files; `unlock` adds permissions to a folder."""

    def __init__(
        self, roots: Iterable[str], find_folder: Callable[[], Path], unlock: Callable[[str, int], None]
    ) -> None:
        self._roots = tuple(roots)
        self._find_folder = find_folder
        self._unlock = unlock
        self._given: dict[str, str] = {}  # put back for the running commands: a digest

    def _find_place(self, git: str) -> str:
        """Return the folder for a git directory, wherever it is moved. Another one under its path has its own."""
        import hashlib

        name = hashlib.sha256(kernel.read_birth(git).encode()).hexdigest()[:16]
        return str(self._find_folder().parent / PARKED / name)

    def read(self, paths: Iterable[str]) -> dict[str, str]:
        """Return digests of operations. An empty file says nothing to git."""
        return {path: _make_digest(path) for path in paths if not _is_empty_file(path)}

    def put_back(self, gits: Iterable[str]) -> list[TakenFile]:
        """Give operations back to git. One whose name is in use again becomes a taken file, which is returned."""
        self._given, taken = {}, []
        for path, root, kept in [*self._list_kept(gits)]:
            digest = _make_digest(kept)
            self._unlock(os.path.dirname(path), 0o700)
            if _move_back(path, root, kept):
                self._given[path] = digest
            elif os.path.lexists(kept):
                batch = make_batch(self._find_folder())
                os.makedirs(os.path.dirname(target := os.path.join(batch, os.path.relpath(path, root))))
                os.rename(kept, target)
                taken.append(TakenFile(path, root, batch))
        return taken

    def park(self, paths: Iterable[str], before: Mapping[str, str]) -> tuple[list[TakenFile], list[str]]:
        """Move operations that are not as `before` to their place. Return those to report, and those that could not be
        moved because another one is there."""
        parked, left = [], []
        for path, digest in self.read(paths).items():
            if before.get(path) == digest:
                continue
            root, place, name = self._find_root(path), self._find_place(os.path.dirname(path)), os.path.basename(path)
            make_private_directory(Path(place))
            self._unlock(os.path.dirname(path), 0o700)
            if os.path.lexists(os.path.join(place, name)) or not move_aside(path, root, place, place=name):
                left.append(path)
            elif self._given.get(path) != digest:
                parked.append(TakenFile(path, root, place, kind="parked"))
        return parked, left

    def describe(self, gits: Iterable[str]) -> str:
        """Describe the operations that are kept, or return "" if there are none."""
        kept = self._list_kept(gits)
        return describe_taken(
            TakenFile(path, root, os.path.dirname(place), kind="parked") for path, root, place in kept
        )

    def _list_kept(self, gits: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """List the operations that are kept: the path of each, its root, and where it is now."""
        for git in gits if (self._find_folder().parent / PARKED).is_dir() else ():
            root = self._find_root(git)
            place = self._find_place(git)
            for name in sorted(filter(is_git_operation, list_names(place))):
                yield os.path.join(git, name), root, os.path.join(place, name)

    def _find_root(self, path: str) -> str:
        return next(root for root in self._roots if is_inside(path, root))


def _move_back(path: str, root: str, kept: str) -> bool:
    """Put an operation back where git looks for it, if nothing has taken its place."""
    name, hidden = os.path.basename(path), f".parked-{os.getpid()}-{time.monotonic_ns()}"
    try:
        with open_parent_directory(Path(root), Path(path)) as above:
            if os.path.lexists(path):
                return False
            try:
                os.rename(kept, name, dst_dir_fd=above)
            except OSError:  # on another file system
                import shutil

                shutil.move(kept, os.path.join(f"/proc/self/fd/{above}", hidden))
                os.rename(hidden, name, src_dir_fd=above, dst_dir_fd=above)
    except (OSError, LinkFound):
        return False
    with suppress(OSError):
        os.removedirs(os.path.dirname(kept))
    return True


def _is_empty_file(path: str) -> bool:
    try:
        about = os.lstat(path)
    except OSError:
        return True
    return stat.S_ISREG(about.st_mode) and not about.st_size


def _make_digest(path: str) -> str:
    """Return a digest of a file, or of all names and contents in a folder. Very large files count by their state."""
    import hashlib

    digest = hashlib.sha256()
    waiting = [path]
    for one in waiting:  # grows
        try:
            about = os.lstat(one)
            said = os.fsencode(os.path.relpath(one, path)) + b"\0%o\0" % stat.S_IFMT(about.st_mode)
            if stat.S_ISDIR(about.st_mode):
                waiting += sorted(os.path.join(one, name) for name in os.listdir(one))
            elif stat.S_ISLNK(about.st_mode):
                said += os.fsencode(os.readlink(one))
            elif stat.S_ISREG(about.st_mode) and about.st_size <= MAX_READ_BYTES:
                said += hashlib.sha256(Path(one).read_bytes()).digest()
            else:
                said += b"%d %d %d" % (about.st_ino, about.st_size, about.st_ctime_ns)
        except OSError as error:
            said = os.fsencode(f"{one} {error.errno}")
        digest.update(b"%d " % len(said) + said)
    return digest.hexdigest()

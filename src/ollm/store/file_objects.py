"""Contents of a workspace's files by digest, and the lists of checkpoints that refer to them.

Each workspace has one folder: `objects/` by digest, `sessions/{id}.jsonl` with one line per checkpoint, `state.json`
with the total size, and `index` with known facts about the files. Objects are not synced, but checked when they are
read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ollm.domain.errors import BusyError, StorageError
from ollm.domain.struct import Data
from ollm.system.atomic import FILE_MODE, AppendFile, make_private_directory, read_json, replace_file, sync, write_all

LOCK_TIMEOUT_SECONDS = 30.0
MIN_FREE_BYTES = 32 << 20  # Sessions need the last free space more than checkpoints.
_LOCK_POLL_SECONDS = 0.05
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_DIGEST_DIGITS = 64


class ObjectsState(Data, frozen=True):
    """State of the objects. `generation` counts removals: after a change, cached knowledge of objects is invalid."""

    generation: int = 0
    bytes: int = 0


class FileObjects:
    """The folder of one workspace. Hold the lock to write or remove anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = folder / "sessions"
        self.index = folder / "index"
        self.journal = folder / "restore.journal"
        self._objects = folder / "objects"
        self._state = folder / "state.json"
        self._parts: set[str] = set()
        self.added_bytes = 0
        self._added: list[str] = []

    @contextmanager
    def put_together(self) -> Iterator[None]:
        """Group writes. A failure removes them, so that half a state does not fill up the disk."""
        make_private_directory(self.folder)
        disk = os.statvfs(self.folder)
        if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
            raise StorageError(f"A checkpoint was not saved: under {MIN_FREE_BYTES >> 20} MiB are free on the disk.")
        self._added, before = [], self.added_bytes
        try:
            yield
        except BaseException:
            for path in self._added:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108
            self.added_bytes = before
            raise
        finally:
            self._added = []

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock as the only writer. Raises BusyError if another process holds it for too long."""
        make_private_directory(self.folder)
        descriptor = self.open_lock(os.O_RDWR | os.O_CREAT)
        try:
            yield
        finally:
            os.close(descriptor)

    def open_lock(self, flags: int) -> int:
        """Take the lock and return its descriptor, which holds it until closed."""
        import fcntl

        descriptor = os.open(self.folder / "lock", flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    raise BusyError("Another session is busy with the checkpoints of this workspace.") from error
                time.sleep(_LOCK_POLL_SECONDS)
            else:
                return descriptor

    def put(self, content: bytes) -> bytes:
        """Store a content and return its digest."""
        digest = hashlib.sha256(content).digest()
        path = self._find_path(digest)
        try:
            self._write_new(path, content)
        except FileExistsError:
            if os.stat(path).st_size != len(content):  # noqa: PTH116 - half-written by a process that was killed
                self._write_anew(path, content)
        return digest

    put_tree = put

    def has(self, digest: bytes) -> bool:
        return os.path.exists(self._find_path(digest))  # noqa: PTH110

    def read(self, digest: bytes) -> bytes:
        """Read and check a content. Raises StorageError if it is missing or damaged."""
        try:
            with open(self._find_path(digest), "rb") as file:  # noqa: PTH123
                content = file.read()
        except OSError as error:
            raise StorageError(f"The saved content {digest.hex()[:12]} is gone.") from error
        if hashlib.sha256(content).digest() != digest:
            raise StorageError(f"The saved content {digest.hex()[:12]} is damaged.")
        return content

    def sync_object(self, digest: bytes) -> None:
        """Sync one object to disk, before changing files that can be restored only from it."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._find_path(digest), os.O_RDONLY | os.O_CLOEXEC)
            try:
                sync(descriptor)
            finally:
                os.close(descriptor)

    def load_state(self) -> ObjectsState:
        return read_json(self._state, ObjectsState, ObjectsState())

    def save_growth(self) -> ObjectsState:
        """Add the size of the objects stored since the last call to the saved state."""
        state = self.load_state()
        if self.added_bytes:
            state = ObjectsState(generation=state.generation, bytes=state.bytes + self.added_bytes)
            self.added_bytes = 0
            replace_file(self._state, msgspec.json.encode(state), durable=False)
        return state

    def remove_others(self, live: set[bytes]) -> ObjectsState:
        """Remove every object that is not in `live`."""
        kept = 0
        for path in self._iter_files():
            name = path.parent.name + path.name
            if len(name) == _DIGEST_DIGITS and bytes.fromhex(name) in live:
                kept += path.stat().st_size
            else:
                path.unlink(missing_ok=True)
        for path in (*self.folder.glob(".*.tmp"), *self.sessions.glob(".*.tmp")):  # Killed writers left these files.
            path.unlink(missing_ok=True)
        self.added_bytes = 0
        state = ObjectsState(generation=self.load_state().generation + 1, bytes=kept)
        replace_file(self._state, msgspec.json.encode(state), durable=False)
        return state

    def find_held_file(self, session_id: str) -> Path:
        """Return the path of the file that a session keeps locked while it changes files."""
        return self.sessions / f"{session_id}.alive"

    def list_sessions(self) -> list[str]:
        return sorted(path.stem for path in self.sessions.glob("*.jsonl"))

    def read_lines(self, session_id: str) -> list[bytes]:
        """Read the lines of a session's list, leaving out one that was truncated by a crash."""
        try:
            content = (self.sessions / f"{session_id}.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        return [line for line in content.split(b"\n")[:-1] if line]

    def append_line(self, session_id: str, line: bytes) -> None:
        """Append a line to a session's list, durably."""
        make_private_directory(self.sessions)
        file = AppendFile(self.sessions / f"{session_id}.jsonl")
        file.open()
        try:
            file.append((b"" if file.ends_with(b"\n") else b"\n") + line + b"\n")
        finally:
            file.close()

    def replace_lines(self, session_id: str, lines: Iterable[bytes]) -> None:
        replace_file(self.sessions / f"{session_id}.jsonl", b"".join(line + b"\n" for line in lines))

    def remove_session(self, session_id: str) -> bool:
        """Delete a session's list and return True if there was one."""
        self.find_held_file(session_id).unlink(missing_ok=True)
        try:
            (self.sessions / f"{session_id}.jsonl").unlink()
        except FileNotFoundError:
            return False
        return True

    def measure_bytes(self) -> int:
        """Measure the size of the objects on disk."""
        return sum(path.stat().st_size for path in self._iter_files())

    def _iter_files(self) -> Iterator[Path]:
        with contextlib.suppress(FileNotFoundError):
            for part in self._objects.iterdir():
                yield from part.iterdir()

    def _find_path(self, digest: bytes) -> str:
        name = digest.hex()
        return f"{self._objects}/{name[:2]}/{name[2:]}"

    def _write_new(self, path: str, content: bytes) -> None:
        """Write a new file. Raises FileExistsError."""
        part = path.rpartition("/")[0]
        try:
            if part not in self._parts:
                make_private_directory(Path(part))
                self._parts.add(part)
            descriptor = os.open(path, _NEW_FLAGS, FILE_MODE)
            try:
                write_all(descriptor, content)
            finally:
                os.close(descriptor)
        except FileExistsError:
            raise
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
            raise StorageError(f"A checkpoint could not be saved: {error.strerror}.") from error
        self._added.append(path)
        self.added_bytes += len(content)

    def _write_anew(self, path: str, content: bytes) -> None:
        try:
            replace_file(Path(path), content, durable=False)
        except OSError as error:
            raise StorageError(f"A checkpoint could not be saved: {error.strerror}.") from error
        self.added_bytes += len(content)


class ScratchObjects(FileObjects):
    """View of the saved files that writes nothing there and works on a full disk: new trees are kept in memory,
    contents are only hashed. It does without the lock if another process holds it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._trees: dict[bytes, bytes] = {}

    @contextmanager
    def put_together(self) -> Iterator[None]:
        yield

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Take the lock if possible; reading creates no files."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, BusyError):
                stack.callback(os.close, self.open_lock(os.O_RDWR))
            yield

    def put(self, content: bytes) -> bytes:
        return hashlib.sha256(content).digest()

    def put_tree(self, content: bytes) -> bytes:
        digest = self.put(content)
        self._trees[digest] = content
        return digest

    def has(self, digest: bytes) -> bool:
        return digest in self._trees or super().has(digest)

    def read(self, digest: bytes) -> bytes:
        found = self._trees.get(digest)
        return super().read(digest) if found is None else found

"""Saved slots of the model server: files in the server's folder, and in `~/.ollm/slots` a record of each with its
checksum, by which a session is deleted with its files even after the setting changed."""

from __future__ import annotations

import os
import shutil
import struct
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ollm.domain.errors import StorageError
from ollm.domain.struct import Data
from ollm.store.session_files.places import parse_id
from ollm.system.atomic import hash_file, read_json, write_private_file

HEADER = struct.Struct("<III")  # Magic, version and number of tokens; the tokens follow.
MAGIC = 0x67677371
MIN_FREE_BYTES = 2 << 30


class SavedSlot(Data, frozen=True):
    """A file with `tokens` tokens. `task` and `held` describe the slot of the server that held the session last."""

    session_id: str
    key: str  # Names the model and the server's build.
    folder: str
    size: int
    sha256: str
    tokens: int
    task: int
    held: int

    @property
    def path(self) -> Path:
        return Path(self.folder, f"ollm-{self.session_id}-{self.key}.slot")

    def is_intact(self) -> bool:
        return self.path.stat().st_size == self.size and hash_file(self.path) == self.sha256


class SavedSlots:
    """The records below `root`, of files in `folder`: the server's `--slot-save-path`, or None if that is not set."""

    def __init__(self, root: Path, folder: Path | None, max_gigabytes: float) -> None:
        self._root = root
        self.folder = folder
        self._max_bytes = max_gigabytes * (1 << 30)

    def find_problem(self) -> str:
        """Return why nothing can be saved, or ""."""
        if self.folder is None:
            return "set provider.slotSavePath to the folder of the server's --slot-save-path"
        try:
            mode, free = self.folder.stat().st_mode, shutil.disk_usage(self.folder).free
        except OSError as error:
            return f"{self.folder}: {error.strerror}"
        if not os.access(self.folder / ".", os.R_OK | os.W_OK | os.X_OK):
            return f"ollm cannot write to {self.folder}"
        if mode & 0o077:
            return f"others can read {self.folder}; run `chmod 700 {self.folder}`"
        return "the disk is almost full" if free < MIN_FREE_BYTES else ""

    def get(self, session_id: str, key: str) -> SavedSlot | None:
        found = _read_record(self._root / session_id / f"{key}.json")
        return found if found and found.path.parent == self.folder and found.path.is_file() else None

    def list_all(self) -> list[SavedSlot]:
        """List all saved slots, those of the last used sessions first."""
        records = sorted(self._root.glob("*/*.json"), key=lambda path: -path.stat().st_mtime_ns)
        return list(filter(None, map(_read_record, records)))

    def add(self, session_id: str, key: str, written: Path, task: int) -> None:
        """Keep a new file for a session instead of its older one. Deletes the least used ones above the limit."""
        with suppress(OSError):
            written.chmod(0o600)  # The file may belong to the server's user.
        tokens = len(read_slot_tokens(written))
        saved = SavedSlot(
            session_id=session_id,
            key=key,
            folder=str(self.folder),
            size=written.stat().st_size,
            sha256=hash_file(written),
            tokens=tokens,
            task=task,
            held=tokens,
        )
        written.replace(saved.path)
        self.write(saved)
        total = 0
        for each in self.list_all():
            total += each.size
            if total > self._max_bytes:
                self.remove(each)

    def write(self, saved: SavedSlot) -> None:
        record = self._root / saved.session_id / f"{saved.key}.json"
        write_private_file(record, msgspec.json.encode(saved))

    def remove(self, saved: SavedSlot) -> None:
        saved.path.unlink(missing_ok=True)
        (self._root / saved.session_id / f"{saved.key}.json").unlink(missing_ok=True)

    def erase_all(self) -> None:
        """Delete the files of all sessions."""
        for saved in self.list_all():
            self.remove(saved)

    def erase(self, session_id: str) -> None:
        """Delete the files of a session, wherever the server's folder was when they were saved."""
        records = self._root / parse_id(session_id)
        folders = {Path(saved.folder) for saved in filter(None, map(_read_record, records.glob("*.json")))}
        try:
            for folder in folders | ({self.folder} if self.folder else set()):
                for path in folder.glob(f"ollm-{records.name}-*"):
                    path.unlink(missing_ok=True)
            if records.exists():
                shutil.rmtree(records)
        except OSError as error:
            raise StorageError(f"Cannot remove {error.filename}: {error.strerror}.") from error


def read_slot_tokens(path: Path) -> Sequence[int]:
    """Read the tokens at the beginning of a file, or none if it is not in the known form.

    Newer servers put -1, a version and the number of tokens before them, and more behind them."""
    tokens: array[int] = array("i")
    with path.open("rb") as file:
        head = file.read(HEADER.size)
        magic, _, count = HEADER.unpack(head) if len(head) == HEADER.size else (0, 0, 0)
        if magic == MAGIC and count * tokens.itemsize < path.stat().st_size:
            tokens.frombytes(file.read(count * tokens.itemsize))
    return tokens[3 : 3 + tokens[2]] if len(tokens) > 3 and tokens[0] == -1 else tokens


def _read_record(path: Path) -> SavedSlot | None:
    return read_json(path, SavedSlot, None)

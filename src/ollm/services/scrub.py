"""Remove a text, such as a pasted password, from every file that ollm keeps (`ollm sessions scrub`).

Files are searched as bytes, in each form in which we write a text, and replaced as a whole, so that a kill leaves each
one as it was or done; running it again completes the rest. What can be made again (the index, caches) or would bring
the text back (undo copies, saved file states and slots) is deleted. Files that people wrote are reported and left
unchanged.
"""

from __future__ import annotations

import contextlib
import html
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ollm.config.environment import Home
from ollm.domain.errors import OllmError, StorageError, UsageError
from ollm.domain.session import Session
from ollm.domain.struct import Data
from ollm.store.database import rewrite_cells
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from ollm.store.workspace_place import DATABASE_ENDINGS
from ollm.system.atomic import replace_file

MARK = "[scrubbed]"
MIN_CHARS = 6
MIN_KEY_LINE_CHARS = 16
MAX_NESTING = 3  # A database may have JSON in JSON in a row.
SQLITE_HEADER = b"SQLite format 3\0"
OWN_FILES = ("config.yaml", "extensions", "skills", "commands", "agents")  # These belong to the person.
Outcome = Literal["replaced", "deleted", "kept", "failed"]


class ScrubbedFile(Data, frozen=True):
    """A file that held the text. The outcome `kept` is for people's own files, which are not changed."""

    path: str
    count: int
    outcome: Outcome
    problem: str = ""


def check_text(text: str) -> None:
    """Raise UsageError for a text that would hit too much."""
    if len(text.strip()) < MIN_CHARS:
        raise UsageError(
            f"The text is too short: with fewer than {MIN_CHARS} characters it would hit other text too.",
            action="Give it with the characters around it.",
        )


def list_forms(text: str) -> list[bytes]:
    """List every form in which a file of ours may hold a text, longest first. Diffs and numbered lines hold a key of
    several lines one by one."""
    nested = {text, *(line for line in text.splitlines() if len(line) >= MIN_KEY_LINE_CHARS and " " not in line)}
    forms = {text.replace("\n", "\r\n"), html.escape(text)} | nested
    for _ in range(MAX_NESTING):
        nested = {json.dumps(one, ensure_ascii=plain)[1:-1] for one in nested for plain in (True, False)}
        forms |= nested
    return sorted({form.encode("utf-8", "surrogateescape") for form in forms}, key=len, reverse=True)


class Scrubber:
    """Searches the home, the folders of sessions and the given workspaces. With `dry_run` nothing is changed."""

    def __init__(
        self,
        home: Home,
        files: SessionFiles,
        workspaces: Iterable[Path],
        text: str,
        *,
        dry_run: bool,
    ) -> None:
        check_text(text)
        self._home = home
        self._files = files
        self._folders = [place / ".ollm" for place in workspaces if not (place / ".ollm").is_symlink()]
        self._pattern = re.compile(b"|".join(map(re.escape, list_forms(text))))
        self._dry_run = dry_run

    def run(self) -> list[ScrubbedFile]:
        """Scrub everything, and return the files that held the text."""
        places = self._files.places
        outside = () if places.directory.is_relative_to(self._home.root) else (places.directory,)
        self._check_documents(places.directory)
        if not self._dry_run:
            self._remove_index()
            self._fold_sessions(self._files)
            if places.trash:
                trash = SessionPlaces(directory=places.trash)
                self._fold_sessions(SessionFiles(trash, self._files.clock))
        found = [self._scrub(path) for root in (self._home.root, *outside) for path in _walk(root)]
        found += [self._scrub(path) for folder in self._folders for path in _walk(folder)]
        return [one for one in found if one.count or one.problem]

    def find_exports(self, paths: Iterable[Path]) -> list[ScrubbedFile]:
        """Find the exports that hold the text. They are the person's and stay as they are."""
        counts = [(path, self._count(path)) for path in paths if path.is_file()]
        return [ScrubbedFile(path=str(path), count=count, outcome="kept") for path, count in counts if count]

    def _check_documents(self, directory: Path) -> None:
        """Raise UsageError before anything is changed if a session could no longer be read."""
        for path in directory.glob("*.json"):
            if not self._count(path):
                continue
            before = path.read_bytes()
            with contextlib.suppress(msgspec.MsgspecError):
                msgspec.json.decode(before, type=Session)
                try:
                    msgspec.json.decode(self._pattern.sub(MARK.encode(), before), type=Session)
                except msgspec.MsgspecError as error:
                    raise UsageError(
                        "The text is also a word of the file format, and without it sessions could not be read.",
                        action="Give it with the characters around it.",
                    ) from error

    def _remove_index(self) -> None:
        """Delete the index, which is made again: it holds words apart from each other, which no search would find."""
        for ending in DATABASE_ENDINGS:
            self._home.index.with_name(self._home.index.name + ending).unlink(missing_ok=True)

    def _fold_sessions(self, files: SessionFiles) -> None:
        """Fold the journals: in these, a streamed text is split into pieces, where no search would find it."""
        for session_id in files.places.list_ids():
            journal = files.places.get_document_path(session_id).with_suffix(".journal")
            if journal.exists() and journal.stat().st_size:
                with contextlib.suppress(OllmError):  # One that cannot be read is searched as it is.
                    writer, _ = files.open(session_id, to_continue=False)
                    try:
                        writer.fold()
                        writer.close()
                    finally:
                        writer.abandon()

    def _scrub(self, path: Path) -> ScrubbedFile:
        try:
            outcome = self._choose_outcome(path)
            if _is_database(path) and outcome == "replaced":
                return ScrubbedFile(path=str(path), count=self._scrub_database(path), outcome=outcome)
            count = self._count(path)
            if count and not self._dry_run:
                self._change(path, outcome)
            return ScrubbedFile(path=str(path), count=count, outcome=outcome)
        except (OSError, StorageError) as error:
            return ScrubbedFile(path=str(path), count=0, outcome="failed", problem=str(error))

    def _choose_outcome(self, path: Path) -> Outcome:
        for folder in self._folders:
            if path.is_relative_to(folder):
                return "replaced" if path.name.startswith("memory.db") else "kept"
        home = self._home
        if not path.is_relative_to(home.root):
            return "replaced"
        if path.relative_to(home.root).parts[0] in OWN_FILES:
            return "kept"
        is_object = path.is_relative_to(home.checkpoints) and path.suffix not in (".jsonl", ".json", ".journal")
        derived = path == home.index or path.is_relative_to(home.cache) or path.is_relative_to(home.undo)
        return "deleted" if is_object or derived else "replaced"

    def _change(self, path: Path, outcome: Outcome) -> None:
        if outcome == "deleted":
            if path.is_relative_to(self._home.checkpoints):  # It goes first, because it knows of the content.
                folder = self._home.checkpoints / path.relative_to(self._home.checkpoints).parts[0]
                (folder / "index").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        elif outcome == "replaced":
            with _map(path) as data:
                replace_file(path, self._replace(data))

    def _replace(self, data: bytes | mmap.mmap) -> Iterator[bytes]:
        place = 0
        for found in self._pattern.finditer(data):
            yield data[place : found.start()]
            yield MARK.encode()
            place = found.end()
        yield data[place:]

    def _count(self, path: Path) -> int:
        with _map(path) as data:
            return sum(1 for _ in self._pattern.finditer(data))

    def _scrub_database(self, path: Path) -> int:
        count = rewrite_cells(path, lambda data: self._pattern.subn(MARK.encode(), data), dry_run=self._dry_run)
        if count is not None:
            return count
        count = self._count(path)
        if count and not self._dry_run:
            self._change(path, "replaced")
        return count


def _walk(root: Path) -> Iterator[Path]:
    """Yield all files below a folder, except models, without following links."""
    for folder, names, files in os.walk(root):
        if folder == str(root) and "models" in names:
            names.remove("models")
        yield from (path for name in files if (path := Path(folder, name)).is_file() and not path.is_symlink())


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER


@contextlib.contextmanager
def _map(path: Path) -> Iterator[bytes | mmap.mmap]:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data

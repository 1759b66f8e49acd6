"""Definitions and names used in each file, cached by modification time and size."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ollm.domain.messages import replace_surrogates
from ollm.domain.struct import Data
from ollm.services.code_map.syntax_tree import CodeDefinition, outline_text
from ollm.system.atomic import write_private_file

CACHE_VERSION = 8
MAX_FILE_BYTES = 2 * 1024 * 1024  # A larger file is listed by name only.
_NAME = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"\b(?:[a-z_]\w*(?=\s*[(!<])|[A-Z]\w*)")
_IMPORT = re.compile(r"^\s*(?:from|import|use|using|require|include)\b(.{0,400})", re.MULTILINE)


class FileFacts(Data, frozen=True, kw_only=False, array_like=True, gc=False):
    """Facts of one file. `references` are the names that look defined elsewhere, separated by blanks."""

    path: str
    modified: int
    size: int
    definitions: tuple[CodeDefinition, ...]
    references: str


class _FactsFile(Data, frozen=True):
    version: int
    files: tuple[FileFacts, ...]


class FactsCache:
    """Cached facts of one project's files, in one file of `folder`. An unusable cache is rebuilt."""

    def __init__(self, folder: Path, root: Path) -> None:
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:24]
        self._file = folder / f"{name}.msgpack"
        self._root = root

    def read(self, paths: Sequence[str], stopped: Callable[[], bool] = lambda: False) -> list[FileFacts]:
        """Read the facts of these files below the root, in order. Unreadable files are left out."""
        known = {facts.path: facts for facts in self._load()}
        found, changed = list[FileFacts](), False
        for path in paths:
            if stopped():
                break
            facts = self._read_file(path, known.get(path))
            if facts is not None:
                changed = changed or (facts is not known.get(path) and _can_save(facts))
                found.append(facts)
        if changed or len(found) < len(known):
            self._save(found, known)
        return found

    def _read_file(self, path: str, known: FileFacts | None) -> FileFacts | None:
        place = f"{self._root}/{path}"
        try:
            status = os.lstat(place)
            if not stat.S_ISREG(status.st_mode):
                return None
            if known is not None and known.modified == status.st_mtime_ns and known.size == status.st_size:
                return known
            data = _read_regular(place) if status.st_size <= MAX_FILE_BYTES else b""
        except OSError:
            return None
        return collect_facts(path, data, status.st_mtime_ns, status.st_size)

    def _load(self) -> tuple[FileFacts, ...]:
        try:
            found = msgspec.msgpack.decode(self._file.read_bytes(), type=_FactsFile)
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
            return ()
        return found.files if found.version == CACHE_VERSION else ()

    def _save(self, found: Sequence[FileFacts], known: dict[str, FileFacts]) -> None:
        """Save the facts found, and known facts of other files that still exist."""
        others = known.keys() - {facts.path for facts in found}
        there = (known[path] for path in sorted(others) if os.path.lexists(f"{self._root}/{path}"))
        document = _FactsFile(version=CACHE_VERSION, files=(*filter(_can_save, found), *there))
        with contextlib.suppress(OSError):
            write_private_file(self._file, msgspec.msgpack.encode(document), durable=False)


def _can_save(facts: FileFacts) -> bool:
    """Return False if the file name is not UTF-8, since the cache cannot hold it."""
    return replace_surrogates(facts.path) == facts.path


def collect_facts(path: str, data: bytes, modified: int, size: int) -> FileFacts:
    text = decode_source(data)
    data = text.encode("utf-8", "replace")
    definitions = tuple(outline_text(path, data)) if data else ()
    return FileFacts(path, modified, size, definitions, " ".join(sorted(_find_references(text))))


def decode_source(data: bytes) -> str:
    """Decode source text: UTF-8, UTF-16 with a byte order mark, or else Latin-1. Returns "" for binary data."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:8192]:
        return ""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"  # The text may end within a letter.
        return data.decode("utf-8-sig", "replace") if cut else data.decode("latin-1")


def _find_references(text: str) -> set[str]:
    found = set(_REFERENCE.findall(text))
    for line in _IMPORT.findall(text):
        found.update(_NAME.findall(line))
    return found


def _read_regular(place: str) -> bytes:
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_FILE_BYTES)

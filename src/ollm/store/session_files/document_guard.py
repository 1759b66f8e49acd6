"""Notices that another program removed, replaced or changed the document of a session that is open here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ollm.domain.clock import Clock
from ollm.system.atomic import replace_file

_CHUNK_BYTES = 1 << 20
MAX_HELD_BYTES = 256 * 1024  # of a document that is held in memory too, since another program may write into it
_Identity = tuple[int, int, int, int]


class DocumentGuard:
    """Holds the document open from when it was last written, so that it can be given its name again."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._descriptor: int | None = None
        self._known: _Identity | None = None
        self._content: bytes | None = None

    @property
    def stamp(self) -> str:
        """What tells the document from what another program may put in its place."""
        return ",".join(map(str, self._known[1:])) if self._known else ""

    def watch(self) -> None:
        """The document is now as it should be."""
        self.close()
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(self.path, flags)
            self._known = _identify(os.fstat(self._descriptor))
            if self._known[2] <= MAX_HELD_BYTES:
                self._content = os.pread(self._descriptor, self._known[2], 0)

    def is_in_place(self) -> bool:
        """Whether the file is the one that was last seen, unchanged; also when none is watched."""
        return self._known is None or self._find_named() == self._known

    def restore(self) -> str:
        """Put the document back where it was and keep what took its place; what happened, in a sentence."""
        named = self._find_named()
        if self._known is None or named == self._known:
            return ""
        from ollm.store.session_files.copies import keep_copy

        kept = keep_copy(self.path, self._clock, "replaced") if named else None
        changed_in_place = _identify(os.fstat(self._require_descriptor())) != self._known
        if kept and changed_in_place and self._content is None:
            self._known = named
            return f"Another program has changed {self.path}; what it wrote is also in {kept.name}."
        replace_file(self.path, self._iter_chunks() if self._content is None else self._content)
        self.watch()
        if kept:
            return f"Another program has changed {self.path}: it was rewritten, and the other kept as {kept.name}."
        return f"Another program has removed {self.path}: it was rewritten."

    def find_readable(self, target: Path) -> Path:
        """Where the document can be read: under its name, or else in `target`, which is written from what is held."""
        if self.is_in_place():
            return self.path
        replace_file(target, self._iter_chunks() if self._content is None else self._content)
        return target

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self._known = self._content = None

    def _find_named(self) -> _Identity | None:
        try:
            return _identify(self.path.lstat())
        except OSError:
            return None

    def _require_descriptor(self) -> int:
        assert self._descriptor is not None
        return self._descriptor

    def _iter_chunks(self) -> Iterator[bytes]:
        descriptor, place = self._require_descriptor(), 0
        while chunk := os.pread(descriptor, _CHUNK_BYTES, place):
            place += len(chunk)
            yield chunk


def _identify(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

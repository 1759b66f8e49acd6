"""The paths of a walk as one text. In a large tree a second process reads a part at the same time.

The tree is cut into pieces whose numbers lie in a pipe: each process takes the next one when it is free, so both end at
about the same time, however large the pieces are.
"""

from __future__ import annotations

import marshal
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

from ollm.services.file_discovery.patterns import NameSearch
from ollm.services.file_discovery.walk import DirectoryListing, PendingDirectory, Walk
from ollm.system.cores import count_cores

Part = DirectoryListing | PendingDirectory
MIN_SHARED_DIRECTORIES = 64  # waiting directories that are worth starting a process
_MAX_LEVELS = 12  # levels that are read first to find so many
_MAX_PIECES = 100  # each has a number of one byte


class PathReader:
    """Reads the files of one walk that a search selects, or all of them: each path is ended by a NUL."""

    def __init__(self, walk: Walk, search: NameSearch | None = None) -> None:
        self._walk, self._search = walk, search

    def read(self) -> bytes:
        parts, pending = self._read_upper_levels()
        if pending < MIN_SHARED_DIRECTORIES or not self._walk.allows_any_order or not _can_fork():
            return self._read_piece(parts)
        size = -(-len(parts) // _MAX_PIECES)
        return b"".join(self._share_pieces([parts[start : start + size] for start in range(0, len(parts), size)]))

    def _read_upper_levels(self) -> tuple[Sequence[Part], int]:
        """The first directories in order, each followed by those below it, and how many of them are not read yet."""
        parts: list[Part] = [self._walk.start]
        pending = 1
        for _ in range(_MAX_LEVELS):
            above, parts, pending = parts, [], 0
            for part in above:
                listing = part if isinstance(part, DirectoryListing) else self._walk.visit(part)
                if listing is not None:
                    below = listing.below if listing is not part else ()
                    parts += (listing, *below)
                    pending += len(below)
            if not 0 < pending < MIN_SHARED_DIRECTORIES:
                break
        return parts, pending

    def _read_piece(self, parts: Sequence[Part]) -> bytes:
        texts = []
        for part in parts:
            for listing in (part,) if isinstance(part, DirectoryListing) else self._walk.iter_from(part):
                files, prefix = listing.files, listing.place.prefix
                if self._search is not None and files:
                    wanted = self._search.find_matches(prefix, files)
                    files = [name for name in files if name in wanted]
                if files:
                    texts.append(prefix + f"\0{prefix}".join(files))
        return os.fsencode("\0".join([*texts, ""]))

    def _share_pieces(self, pieces: Sequence[Sequence[Part]]) -> list[bytes]:
        """A piece that the other process took and did not deliver, for whatever reason, is read again here."""
        waiting, filling = os.pipe()
        os.write(filling, bytes(range(len(pieces))))
        os.close(filling)
        with os.fdopen(os.memfd_create("paths"), "w+b") as delivered:
            process = os.fork()
            if not process:
                self._serve_and_exit(pieces, waiting, delivered.fileno())
            try:
                found = {number: self._read_piece(pieces[number]) for number in _take_numbers(waiting)}
            except BaseException:
                os.kill(process, 9)
                raise
            finally:
                _, status = os.waitpid(process, 0)
                os.close(waiting)
            if status == 0:
                delivered.seek(0)
                found.update(marshal.load(delivered))  # noqa: S302 - from our own child
        return [found[number] if number in found else self._read_piece(piece) for number, piece in enumerate(pieces)]

    def _serve_and_exit(self, pieces: Sequence[Sequence[Part]], waiting: int, delivered: int) -> NoReturn:
        """The child never returns to what the parent was doing. It delivers nothing if there is something to
        warn about: the parent reads the same directories and warns."""
        code = 1
        try:
            data = marshal.dumps({number: self._read_piece(pieces[number]) for number in _take_numbers(waiting)})
            complete = os.write(delivered, data) == len(data)
            code = 0 if complete and not self._walk.has_troubles else 1
        finally:
            os._exit(code)


def _take_numbers(waiting: int) -> Iterator[int]:
    """The numbers of pieces that nobody has taken yet."""
    while number := os.read(waiting, 1):
        yield number[0]


def _can_fork() -> bool:
    """Only on Linux, with a second core, and while no other thread may hold a lock."""
    return (
        sys.platform == "linux" and hasattr(os, "memfd_create") and threading.active_count() == 1 and count_cores() > 1
    )

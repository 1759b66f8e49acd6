"""The paths of a walk as the lines of a list. Of a large tree another process reads a part at the same time.

What is to be read is cut into pieces, and their numbers lie in a pipe: whoever is free takes the next one, so that both
end at about the same time, however large the pieces are. Nothing but the interpreter's own modules is imported here.
"""

from __future__ import annotations

import marshal
import os
import sys

from ollm.services.file_discovery.walk import DirectoryListing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from ollm.services.file_discovery.expressions import NameSearch
    from ollm.services.file_discovery.globs import EndingSearch
    from ollm.services.file_discovery.walk import PendingDirectory, Walk

    Lines = tuple[bytes, int]
    Part = DirectoryListing | PendingDirectory

MIN_SHARED_DIRECTORIES = 64  # directories that must wait for another process to be worth its start
_MAX_LEVELS = 12  # levels that are read first to find so many
_MAX_PIECES = 100  # each has a number of one byte, and what is told about them fits into a pipe at once
_MAX_ANSWER_BYTES = 1 << 16


class PathLineReader:
    """Reads the files of one walk that a search finds, or all of them: a line each, and how many they are."""

    def __init__(self, walk: Walk, search: NameSearch | EndingSearch | None = None) -> None:
        self._walk, self._search = walk, search

    def read(self) -> list[Lines]:
        """Piece by piece, in order."""
        parts, pending = self._read_upper_levels()
        if pending < MIN_SHARED_DIRECTORIES or not self._walk.allows_any_order or not _can_fork():
            return [self._read_piece(parts)]
        size = -(-len(parts) // _MAX_PIECES)
        return self._read_by_two([parts[start : start + size] for start in range(0, len(parts), size)])

    def _read_upper_levels(self) -> tuple[Sequence[Part], int]:
        """The first directories in order, each followed by those below it; the last of these, counted, are not read
        yet."""
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

    def _read_piece(self, parts: Sequence[Part]) -> Lines:
        lines, count = [], 0
        for listing in self._iter_listings(parts):
            files, prefix = listing.files, listing.place.prefix
            if self._search is not None and files:
                wanted = self._search.find_matches(prefix, files)
                files = [name for name in files if name in wanted]
            if files:
                lines.append(prefix + f"\n{prefix}".join(files))
                count += len(files)
        lines.append("")
        return os.fsencode("\n".join(lines)), count

    def _iter_listings(self, parts: Sequence[Part]) -> Iterator[DirectoryListing]:
        for part in parts:
            if isinstance(part, DirectoryListing):
                yield part
            else:
                yield from self._walk.iter_from(part)

    def _read_by_two(self, pieces: Sequence[Sequence[Part]]) -> list[Lines]:
        """What the other has taken and not brought, whatever became of it, is read again here."""
        waiting, texts = _open_filled_pipe(bytes(range(len(pieces)))), os.memfd_create("paths")
        answer, answering = os.pipe()
        process = os.fork()
        if not process:
            self._answer_and_exit(pieces, waiting, texts, answering)
        os.close(answering)
        try:
            found = {}
            while number := os.read(waiting, 1):
                found[number[0]] = self._read_piece(pieces[number[0]])
            found.update(_receive_lines(answer, texts))
        finally:
            os.kill(process, 9)
            os.waitpid(process, 0)
            for descriptor in (waiting, texts, answer):
                os.close(descriptor)
        return [found.get(number) or self._read_piece(piece) for number, piece in enumerate(pieces)]

    def _answer_and_exit(self, pieces: Sequence[Sequence[Part]], waiting: int, texts: int, answering: int) -> NoReturn:
        """Nothing of what the process was doing is gone on with. Where there is something to say about what was read,
        nothing is answered: the other meets it again."""
        try:
            told = []
            while number := os.read(waiting, 1):
                text, count = self._read_piece(pieces[number[0]])
                told.append((number[0], os.write(texts, text), count))
                if told[-1][1] < len(text):
                    os._exit(1)
            if not self._walk.has_troubles:
                os.write(answering, marshal.dumps(told))
        finally:
            os._exit(0)


def _open_filled_pipe(data: bytes) -> int:
    """The end of a pipe that gives these bytes and ends."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


def _receive_lines(answer: int, texts: int) -> dict[int, Lines]:
    """What is told in one write about the texts comes in one read, or not at all."""
    data, found, start = os.read(answer, _MAX_ANSWER_BYTES), {}, 0
    for number, size, count in marshal.loads(data) if data else ():  # noqa: S302 - from our own child
        found[number] = os.pread(texts, size, start), count
        start += size
    return found


def _can_fork() -> bool:
    """Whether a fork would run beside this process. Elsewhere than on Linux a fork may not be sound."""
    from ollm.system.cores import count_cores

    return sys.platform == "linux" and hasattr(os, "memfd_create") and count_cores() > 1

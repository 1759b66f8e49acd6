"""Path completion for `@file`: the best matches first, fast enough for each keystroke."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice

from ollm.services.file_discovery.patterns import compile_bytes, escape_literal

_MIN_SIMILARITY_PERCENT = 70.0


class PathFinder:
    """All paths of a project, indexed for repeated queries. Matching ignores case.

    Exact names come first, then names that start with the query, names that contain it, paths that contain it, and
    paths that contain its letters in order (`sfd` for `services/file_discovery`). If nothing matches, similar names
    are returned. Among equals the shorter path wins. Paths are stored in that order, so the first matches are the
    best.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths)
        self._paths.sort(key=len)
        whole = [path.lower() for path in self._paths]
        self._names = _LineSearch([path.rpartition("/")[2] for path in whole])
        self._whole = _LineSearch(whole)

    def find_best(self, typed: str, limit: int = 20) -> list[str]:
        """Return at most `limit` paths. An empty query gives the shortest ones."""
        wanted = typed.strip().removeprefix("./").lower()
        found: dict[int, None] = {}
        for group in self._search_groups(wanted):
            for at in group:
                found[at] = None
                if len(found) == limit:
                    return [self._paths[number] for number in found]
        if not found and len(wanted) > 2:
            found = dict.fromkeys(islice(self._names.find_similar(wanted.rpartition("/")[2], limit), limit))
        return [self._paths[number] for number in found]

    def _search_groups(self, wanted: str) -> Iterator[Iterable[int]]:
        text = os.fsencode(wanted)
        yield self._names.find_holding(b"\0" + text + b"\0")
        yield self._names.find_holding(b"\0" + text)
        yield self._names.find_holding(text)
        yield self._whole.find_holding(text)
        if len(wanted) > 1:
            yield self._whole.find_scattered(wanted)


_MAX_RESULTS = 12
_MAX_DIRECTORIES = 4


class NameFinder:
    """The files of a project and the directories above them, as `@` completes them: a few directories come first."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self._files = PathFinder(paths)
        above: set[str] = set()
        for path in paths:
            parent = path.rpartition("/")[0]
            while parent and parent not in above:
                above.add(parent)
                parent = parent.rpartition("/")[0]
        self._directories = sorted((f"{name}/" for name in above), key=lambda name: (len(name), name))

    def find_best(self, typed: str) -> list[str]:
        """Return the best matches. A directory matches if its path or a name in it starts with the text."""
        wanted = typed.strip().removeprefix("./").lower()
        fits = (name for name in self._directories if f"/{wanted}" in f"/{name.lower()}" and name.lower() != wanted)
        directories = list(islice(fits, _MAX_DIRECTORIES)) if wanted else []
        return [*directories, *self._files.find_best(typed, _MAX_RESULTS - len(directories))]


class _LineSearch:
    """Many short texts joined by NULs, so that all are searched at memory speed."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._text = os.fsencode("\0" + "\0".join(lines) + "\0")
        ends = accumulate((len(line) + 1 for line in self._text[1:-1].split(b"\0")), initial=0)
        self._starts = list(ends) if lines else [0]

    def find_holding(self, wanted: bytes) -> Iterator[int]:
        """Find the lines that contain it, by number. A NUL matches the start or end of a line."""
        at = self._text.find(wanted) if len(self._starts) > 1 else -1
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            if number + 1 == len(self._starts):
                return
            yield number
            at = self._text.find(wanted, self._starts[number + 1])

    def find_scattered(self, wanted: str) -> Iterator[int]:
        """Find the lines that contain these letters in order, by number. A line may occur more than once."""
        expression = rb"[^\x00]*".join(escape_literal(os.fsencode(letter)) for letter in wanted)
        for found in compile_bytes(expression).finditer(self._text):
            yield bisect_right(self._starts, found.start()) - 1

    @cached_property
    def _distinct(self) -> list[bytes]:
        return list(dict.fromkeys(self._text[1:-1].split(b"\0")))

    def find_similar(self, wanted: str, limit: int) -> Iterator[int]:
        """Find the lines with a wrong, missing or extra letter, by number, most similar first."""
        from rapidfuzz import fuzz, process

        text, least = os.fsencode(wanted), _MIN_SIMILARITY_PERCENT
        for name, _, _ in process.extract(text, self._distinct, scorer=fuzz.ratio, limit=limit, score_cutoff=least):
            yield from self.find_holding(b"\0" + name + b"\0")

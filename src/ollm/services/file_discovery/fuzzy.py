"""Paths for what a person has typed so far (`@file`): the likeliest first, at the speed of typing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import islice

from ollm.services.file_discovery.expressions import compile_bytes
from ollm.services.file_discovery.wildmatch import literal

_MOST_SCATTERED = 2000
_ALIKE = 70.0


class PathFinder:
    """All paths of a project, ready to be asked many times. Letters count whatever their case.

    A name that is what was typed comes first, then names that start with it, names that hold it, paths that hold it,
    paths that hold its letters in order (`sfd` for `services/file_discovery`), and last names that look like it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._lower = [path.lower() for path in self._paths]
        self._names = [path.rpartition("/")[2] for path in self._lower]
        self._text: bytes | None = None

    def best(self, typed: str, limit: int = 20) -> list[str]:
        """At most `limit` paths. Nothing typed gives the shortest ones."""
        wanted = typed.strip().removeprefix("./").lower()
        found: dict[int, None] = {}
        for group in (self._holding(wanted), self._scattered(wanted), self._alike(wanted, limit)):
            found.update(dict.fromkeys(nsmallest(limit, group, key=lambda at: self._rank(wanted, at))))
            if len(found) >= limit or not wanted:
                break
        return [self._paths[at] for at in islice(found, limit)]

    def _holding(self, wanted: str) -> Iterator[int]:
        return (at for at, path in enumerate(self._lower) if wanted in path)

    def _scattered(self, wanted: str) -> Iterator[int]:
        """Paths that hold the letters in order; all of them are searched as one text."""
        if len(wanted) < 2:
            return
        if self._text is None:
            self._text = b"\0" + b"\0".join(map(os.fsencode, self._lower)) + b"\0"
        letters = rb"[^\x00]*".join(literal(os.fsencode(letter)) for letter in wanted)
        at, position = -1, 0
        for found in islice(compile_bytes(letters).finditer(self._text), _MOST_SCATTERED):
            at += self._text.count(b"\0", position, found.start())
            position = found.start()
            yield at

    def _alike(self, wanted: str, limit: int) -> Iterator[int]:
        """Names with a letter wrong, missing or too many."""
        from rapidfuzz import fuzz, process

        if len(wanted) < 3:
            return
        name = wanted.rpartition("/")[2]
        for _, _, at in process.extract(name, self._names, scorer=fuzz.ratio, limit=limit, score_cutoff=_ALIKE):
            yield at

    def _rank(self, wanted: str, at: int) -> tuple[int, int, str]:
        name, path = self._names[at], self._lower[at]
        if name == wanted:
            group = 0
        elif name.startswith(wanted):
            group = 1
        else:
            group = 2 if wanted in name else 3
        return group, len(path), path

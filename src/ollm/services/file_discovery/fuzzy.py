"""Paths for what a person has typed so far (`@file`): the likeliest first, at the speed of typing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ollm.services.file_discovery.expressions import compile_bytes
from ollm.services.file_discovery.wildmatch import literal

_ALIKE = 70.0
_AT_ONCE = 4_000  # paths searched in one go: other threads have their turn in between


class PathFinder:
    """All paths of a project, ready to be asked many times. Letters count whatever their case.

    A name that is what was typed comes first, then names that start with it, names that hold it, paths that hold it,
    paths that hold its letters in order (`sfd` for `services/file_discovery`), and last names that look like it;
    among equals the shorter path. They are kept in that order, so that the first found are the best.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths, key=lambda path: (len(path), path))
        self._lower = [path.lower() for path in self._paths]
        self._names = [path.rpartition("/")[2] for path in self._lower]
        self._texts: list[bytes] | None = None

    def best(self, typed: str, limit: int = 20) -> list[str]:
        """At most `limit` paths. Nothing typed gives the shortest ones."""
        wanted = typed.strip().removeprefix("./").lower()
        found: dict[int, None] = {}
        for group in self._groups(wanted, limit):
            for at in group:
                found[at] = None
                if len(found) == limit:
                    return [self._paths[number] for number in found]
        return [self._paths[number] for number in found]

    def _groups(self, wanted: str, limit: int) -> Iterator[Iterable[int]]:
        yield (at for at, name in enumerate(self._names) if name == wanted)
        yield (at for at, name in enumerate(self._names) if name.startswith(wanted))
        yield (at for at, name in enumerate(self._names) if wanted in name)
        yield (at for at, path in enumerate(self._lower) if wanted in path)
        if len(wanted) > 1:
            yield self._scattered(wanted)
        if len(wanted) > 2:
            yield self._alike(wanted.rpartition("/")[2], limit)

    def _scattered(self, wanted: str) -> Iterator[int]:
        """Paths that hold the letters in order; many are searched as one text."""
        if self._texts is None:
            parts = (self._lower[first : first + _AT_ONCE] for first in range(0, len(self._lower), _AT_ONCE))
            self._texts = [b"\0" + b"\0".join(map(os.fsencode, part)) + b"\0" for part in parts]
        letters = compile_bytes(rb"[^\x00]*".join(literal(os.fsencode(letter)) for letter in wanted))
        for number, text in enumerate(self._texts):
            at, position = number * _AT_ONCE - 1, 0
            for found in letters.finditer(text):
                at += text.count(b"\0", position, found.start())
                position = found.start()
                yield at

    def _alike(self, name: str, limit: int) -> Iterator[int]:
        """Names with a letter wrong, missing or too many."""
        from rapidfuzz import fuzz, process

        best: list[tuple[float, int]] = []
        for first in range(0, len(self._names), _AT_ONCE):
            part = self._names[first : first + _AT_ONCE]
            found = process.extract(name, part, scorer=fuzz.ratio, limit=limit, score_cutoff=_ALIKE)
            best += [(-score, first + at) for _, score, at in found]
        for _, at in sorted(best)[:limit]:
            yield at

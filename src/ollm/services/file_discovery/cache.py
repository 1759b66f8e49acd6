"""Answers kept until something says they no longer hold (S6.6): a watch where one runs, directory times elsewhere."""

from __future__ import annotations

import time
from collections import OrderedDict
from functools import cached_property
from operator import eq

import msgspec

from ollm.domain.files import DiscoveryOptions, FileEntry
from ollm.domain.struct import Data
from ollm.services.file_discovery.reading import Signature, read_signature
from ollm.services.file_discovery.walk import Walk

_MAX_RESULTS = 8
_CLOCK_STEP_NANOSECONDS = (
    20_000_000  # a directory's time moves in steps of some milliseconds: younger ones prove nothing
)
_MAX_CHECKED_DIRECTORIES = 1500  # directories whose times can be read while nobody notices, watch or not


class DiscoveryResult(Data, frozen=True, dict=True):
    """A finished walk: its entries and the times of all it depends on. `generation` is the state of the watch that it
    was last known to be true in."""

    entries: tuple[FileEntry, ...]
    seen: dict[str, Signature]
    directories: int
    taken: int
    generation: int | None
    unreadable: tuple[str, ...]
    too_deep: tuple[str, ...]
    in_part: frozenset[str]

    @cached_property
    def paths(self) -> list[str]:
        return [entry.relative_path for entry in self.entries]

    @cached_property
    def parents(self) -> tuple[str, ...]:
        """The directories of the paths."""
        return tuple(dict.fromkeys([path.rpartition("/")[0] for path in self.paths]))

    def is_valid(self, generation: int | None) -> bool:
        watched = generation is not None and generation == self.generation
        if watched and self.directories > _MAX_CHECKED_DIRECTORIES:
            return True
        return self._is_settled and all(map(eq, map(read_signature, self.seen), self.seen.values()))

    @cached_property
    def _is_settled(self) -> bool:
        """Whether nothing was touched so shortly before it was read that its time cannot tell a later touch."""
        return all(seen is None or seen[0] < self.taken - _CLOCK_STEP_NANOSECONDS for seen in self.seen.values())


class DiscoveryCache:
    """The last few answers, by what was asked. Walks run in threads, so every step of it stands alone."""

    def __init__(self) -> None:
        self._answers: OrderedDict[DiscoveryOptions, DiscoveryResult] = OrderedDict()

    def get(self, options: DiscoveryOptions, generation: int | None) -> DiscoveryResult | None:
        answer = self._answers.get(options)
        if answer is None or not answer.is_valid(generation):
            return None
        if answer.generation != generation:
            answer = msgspec.structs.replace(answer, generation=generation)
        self._answers.pop(options, None)
        self._answers[options] = answer
        return answer

    def put(
        self, options: DiscoveryOptions, walk: Walk, entries: list[FileEntry], taken: int, generation: int | None
    ) -> DiscoveryResult:
        answer = DiscoveryResult(
            entries=tuple(entries),
            seen={**walk.directories, **walk.reader.signatures},
            directories=len(walk.directories),
            taken=taken,
            generation=generation,
            unreadable=tuple(walk.unreadable),
            too_deep=tuple(walk.too_deep),
            in_part=frozenset(walk.in_part),
        )
        self._answers[options] = answer
        while len(self._answers) > _MAX_RESULTS:
            self._answers.popitem(last=False)
        return answer


def get_time_ns() -> int:
    return time.time_ns()

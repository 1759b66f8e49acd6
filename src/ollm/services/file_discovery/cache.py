"""Answers kept until something says they no longer hold (S6.6): a watch where one runs, directory times elsewhere."""

from __future__ import annotations

import time
from collections import OrderedDict

from ollm.domain.files import DiscoveryOptions, FileEntry
from ollm.domain.struct import Data
from ollm.services.file_discovery.signatures import Signature, signature
from ollm.services.file_discovery.walk import Walk

_MOST = 8
_COARSE = 20_000_000  # a directory's time moves in steps of some milliseconds: younger ones prove nothing
_QUICK_TO_CHECK = 1500  # directories whose times can be read while nobody notices, watch or not


class Answer(Data, frozen=True):
    """A finished walk: its entries and the times of all it depends on."""

    entries: tuple[FileEntry, ...]
    seen: dict[str, Signature]
    directories: int
    taken: int
    generation: int | None
    unreadable: tuple[str, ...]
    too_deep: tuple[str, ...]

    def holds(self, generation: int | None) -> bool:
        watched = generation is not None and generation == self.generation
        if watched and self.directories > _QUICK_TO_CHECK:
            return True
        return all(_unchanged(path, seen, self.taken) for path, seen in self.seen.items())


class AnswerCache:
    """The last few answers, by what was asked."""

    def __init__(self) -> None:
        self._answers: OrderedDict[DiscoveryOptions, Answer] = OrderedDict()

    def get(self, options: DiscoveryOptions, generation: int | None) -> Answer | None:
        answer = self._answers.get(options)
        if answer is None or not answer.holds(generation):
            self._answers.pop(options, None)
            return None
        self._answers.move_to_end(options)
        return answer

    def put(
        self, options: DiscoveryOptions, walk: Walk, entries: list[FileEntry], taken: int, generation: int | None
    ) -> Answer:
        answer = Answer(
            entries=tuple(entries),
            seen={**walk.directories, **walk.reader.signatures},
            directories=len(walk.directories),
            taken=taken,
            generation=generation,
            unreadable=tuple(walk.unreadable),
            too_deep=tuple(walk.too_deep),
        )
        self._answers[options] = answer
        while len(self._answers) > _MOST:
            self._answers.popitem(last=False)
        return answer


def _unchanged(path: str, seen: Signature, taken: int) -> bool:
    return signature(path) == seen and (seen is None or seen[0] < taken - _COARSE)


def now() -> int:
    return time.time_ns()

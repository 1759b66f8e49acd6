"""Places in a long session from which reading can begin. The index keeps them: one for every 256 messages or MiB."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ollm.domain.messages import JsonObject

EVERY_MESSAGES, EVERY_BYTES = 256, 1 << 20
MIN_KNOWN_BYTES = 256 * 1024  # Reading a smaller session whole is faster than asking the index.
REQUEST = b'{"role":"user"'


class Waypoint(NamedTuple):
    """A user message: its number and its place, counted through document and journal. In the document, the calls of it
    and of later messages begin at `call_place`."""

    number: int
    place: int
    call_place: int


class KnownState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a session's files, valid while the document is unchanged and the journal has only grown."""

    document: str  # Inode, size and time.
    journal: int  # Inode.
    size: int  # Size of the journal's records that `head` contains.
    head: JsonObject
    last: int
    calls: int  # The highest number in the id of a call.
    end: Waypoint  # The end of messages and calls in the document.
    waypoints: list[Waypoint]

    def find_begin(self, number: int) -> Waypoint | None:
        """Find the last waypoint up to a message."""
        found = bisect_right(self.waypoints, number, key=lambda one: one.number)
        return self.waypoints[found - 1] if found else None

    def find_end(self, number: int) -> Waypoint | None:
        """Find the first waypoint from a message on."""
        found = bisect_left(self.waypoints, number, key=lambda one: one.number)
        return self.waypoints[found] if found < len(self.waypoints) else None


class SessionPart(msgspec.Struct, frozen=True):
    """The messages between two numbers, with their calls. Some more are read: from a waypoint on, and at least `least`.
    With a `least` of 0 no messages are needed. Without a `known` state everything is read."""

    known: KnownState | None
    after: int
    least: int = 32
    before: int | None = None


FindKnown = Callable[[str], KnownState | None]


class WaypointNotes:
    """The waypoints of a session that is being read."""

    def __init__(self, known: KnownState | None) -> None:
        self._waypoints = list(known.waypoints) if known else []
        self._before_call = len(self._waypoints)  # No call has been read since this waypoint.
        self.end = known.end if known else Waypoint(0, 0, 0)

    def add_request(self, number: int, place: int) -> None:
        """Note a user message if it is far enough from the last one noted."""
        last = self._waypoints[-1] if self._waypoints else Waypoint(-EVERY_MESSAGES, 0, 0)
        is_far = number >= last.number + EVERY_MESSAGES or place >= last.place + EVERY_BYTES
        if is_far and number > last.number:
            self._waypoints.append(Waypoint(number, place, 0))

    def add_call(self, message: int, place: int) -> None:
        """Note a call of a message in the document. All messages of the document were noted before."""
        while self._before_call < len(self._waypoints) and self._waypoints[self._before_call].number <= message:
            self._waypoints[self._before_call] = self._waypoints[self._before_call]._replace(call_place=place)
            self._before_call += 1

    def list_waypoints(self) -> list[Waypoint]:
        behind = (one._replace(call_place=self.end.call_place) for one in self._waypoints[self._before_call :])
        return [*self._waypoints[: self._before_call], *behind]

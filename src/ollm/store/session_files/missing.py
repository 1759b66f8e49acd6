"""Messages and calls that a session once had and its files lack: jumps in the numbers, calls that messages name."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from ollm.domain.messages import JsonObject, Message
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.document import LAST_MESSAGE, MISSING
from ollm.store.session_files.files import DamageReport, Range

MAX_PROMISED_NUMBER = 10**9
MAX_KNOWN_GAPS = 1000


class MissingEntries:
    """Sees every message and call that is read of a session, and reports gaps when both were read to their end.

    Gaps that `head` names as known are not reported. Of a `part` only jumps between its messages are seen.
    """

    def __init__(self, damage: DamageReport, head: JsonObject, *, part: bool) -> None:
        metadata = head.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        self._damage = damage
        self._part = part
        self._known, self._known_calls = _parse_known(metadata.get(MISSING))
        promised: Any = metadata.get(LAST_MESSAGE)
        self._promised: int = promised if _is_number(promised) and not part else 0
        self.restart_messages()
        self.restart_calls()

    def restart_messages(self) -> None:
        self._gaps: list[Range] = []  # rising
        self._last: int | None = None if self._part else 0
        self._unreadable = 0  # entries since the last message that could be read
        self._named: set[str] = set()
        self._open: set[str] = set()  # asked for last and not answered: the program may have ended before they began
        self._messages_read = self._under_way = False

    def restart_calls(self) -> None:
        self._found: set[str] = set()
        self._of_message = 0  # the highest number of a message that a call belongs to
        self._calls_read = False

    def add_message(self, message: Message) -> None:
        number, last = message.id, self._last
        if last is None or number > last:
            if last is not None and number > last + 1:
                self._gaps.append((last + 1, number - 1))
            self._last = number
        elif self._gaps:
            self._fill_gap(number)
        self._unreadable = 0
        if message.role != "user" and not self._part and (names := message.call_ids):
            self._named.update(names)
            self._open = set(names) if message.role == "assistant" else self._open.difference(names)

    def add_unreadable(self) -> None:
        self._unreadable += 1

    def add_call(self, call: ToolCallRecord) -> None:
        self._found.add(call.id)
        self._of_message = max(self._of_message, call.message_id)

    def end_messages(self, *, under_way: bool) -> None:
        """`under_way`: an answer that has no number yet follows, and may have begun calls."""
        self._messages_read, self._under_way = True, under_way
        self._report()

    def end_calls(self) -> None:
        self._calls_read = True
        self._report()

    @property
    def last_number(self) -> int:
        """The highest number that a message ever had, as far as is known: none is given twice."""
        return max((self._last or 0) + self._unreadable, self._promised, *(end for _, end in self._known), 0)

    def describe_known(self) -> JsonObject:
        """The gaps there are, for the metadata of a session whose user is told about them."""
        gaps = self._list_gaps()
        if len(gaps) > MAX_KNOWN_GAPS:
            gaps = [*gaps[: MAX_KNOWN_GAPS - 1], (gaps[MAX_KNOWN_GAPS - 1][0], gaps[-1][1])]
        return {"messages": [list(gap) for gap in gaps], "calls": self._count_calls()}

    def _fill_gap(self, number: int) -> None:
        """A message that comes late."""
        place = bisect_left(self._gaps, number + 1, key=lambda gap: gap[0]) - 1
        if place >= 0 and self._gaps[place][1] >= number:
            first, last = self._gaps[place]
            self._gaps[place : place + 1] = [
                gap for gap in ((first, number - 1), (number + 1, last)) if gap[0] <= gap[1]
            ]

    def _report(self) -> None:
        if self._part and self._messages_read:
            self._damage.report_missing(_subtract(self._gaps, self._known), 0)
        elif self._messages_read and self._calls_read:
            if self._of_message <= MAX_PROMISED_NUMBER:
                self._promised = max(self._promised, self._of_message - self._under_way)
            calls = max(0, self._count_calls() - self._known_calls)
            self._damage.report_missing(_subtract(self._list_gaps(), self._known), calls)

    def _list_gaps(self) -> list[Range]:
        behind = (self._last or 0) + 1, self.last_number
        return [*self._gaps, behind] if behind[0] <= behind[1] else self._gaps

    def _count_calls(self) -> int:
        return len(self._named - self._found - self._open)


def _parse_known(value: Any) -> tuple[list[Range], int]:
    found = value if isinstance(value, dict) else {}
    ranges, calls = found.get("messages"), found.get("calls")
    known = [(one[0], one[1]) for one in (ranges if isinstance(ranges, list) else ()) if _is_range(one)]
    return sorted(known), calls if isinstance(calls, int) else 0


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and 0 < value <= MAX_PROMISED_NUMBER


def _subtract(gaps: list[Range], known: list[Range]) -> list[Range]:
    """The parts of `gaps` that `known` does not cover; both rise."""
    left: list[Range] = []
    place = 0
    for first, last in gaps:
        begin = first
        while place < len(known) and known[place][0] <= last:
            if begin < known[place][0]:
                left.append((begin, known[place][0] - 1))
            begin = max(begin, known[place][1] + 1)
            if begin > last:
                break
            place += 1
        if begin <= last:
            left.append((begin, last))
    return left

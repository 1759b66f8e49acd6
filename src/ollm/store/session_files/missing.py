"""Find messages and calls that a session must have had and its files do not contain."""

from __future__ import annotations

from typing import Any

from ollm.domain.messages import JsonObject, Message
from ollm.store.session_files.entry_table import EntryTable, Range
from ollm.store.session_files.files import LAST_MESSAGE, MAX_MESSAGE_NUMBER, MISSING, DamageReport

_SHOWN_RANGES = 4


class MissingEntries:
    """Tracker of the messages and calls read from a session, which reports gaps.

    Gaps that `head` lists as known are not reported. Of a `part`, only gaps between its messages are reported.
    """

    def __init__(self, damage: DamageReport, head: JsonObject, table: EntryTable, *, part: bool) -> None:
        metadata = head["metadata"]
        self._damage, self._table, self._part = damage, table, part
        self._last = self._find_end()
        self._known, self._known_calls = _parse_known(metadata.get(MISSING))
        promised: Any = metadata.get(LAST_MESSAGE)
        self._promised: int = promised if _is_number(promised) and not part else 0
        self._named: set[str] = set()
        self._not_begun: set[str] = set()  # The program may have ended before these began.
        self._answered: set[str] = set()  # These had a result, since a message has it.
        self.message_count = 0

    def add_message(self, message: Message) -> None:
        self.message_count += 1
        if message.role != "user" and (names := message.call_ids):
            self._named.update(names)
            self._not_begun = set(names) if message.role == "assistant" else self._not_begun.difference(names)
            self._answered.update(names if message.role == "tool" else ())

    def report(self) -> None:
        """Report what is missing as far as the messages and calls were read."""
        calls = 0
        if not self._part:  # An unfinished answer has no number yet, and may have calls.
            self._promised = max(self._promised, self._table.last_asker - bool(self._table.partial.parts))
            calls = max(0, self._count_calls() - self._known_calls)
        gaps = [gap for gap in self._list_gaps() if gap not in self._known]
        self._damage.missing = "" if self._damage.too_large else format_missing(gaps, calls)

    @property
    def last_number(self) -> int:
        """The highest message number ever used, as far as known; numbers are never reused."""
        return max(self._last, self._promised, *(end for _, end in self._known), 0)

    def describe_known(self) -> JsonObject:
        """Describe the gaps for the session's metadata, since the user is notified of them."""
        self._promised = max(self._promised, self._table.last_asker)  # An answer under way has a number from now on.
        return {"messages": [list(gap) for gap in self._list_gaps()], "calls": self._count_calls()}

    def _list_gaps(self) -> list[Range]:
        gaps, behind = self._table.list_gaps(), (self._find_end() + 1, self.last_number)
        return [*gaps, behind] if behind[0] <= behind[1] and not self._part else gaps

    def _find_end(self) -> int:
        """Find the last number up to which messages were read, without the one under way."""
        return max(self._table.last_number, self._table.partial.number - 1)

    def _count_calls(self) -> int:
        absent = len(self._named - self._table.calls.keys() - self._not_begun)
        return absent + sum(map(self._table.has_only_begun, self._answered))


def _parse_known(value: Any) -> tuple[list[Range], int]:
    found = value if isinstance(value, dict) else {}
    ranges, calls = found.get("messages"), found.get("calls")
    pairs = [one for one in (ranges if isinstance(ranges, list) else ()) if isinstance(one, list) and len(one) == 2]
    known = [(first, last) for first, last in pairs if _is_number(first) and _is_number(last)]
    return sorted(known), calls if isinstance(calls, int) else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and 0 < value <= MAX_MESSAGE_NUMBER


def format_missing(messages: list[Range], calls: int) -> str:
    """Describe in a sentence how much is missing, or return "" if nothing is."""
    words = [str(first) if first == last else f"{first} to {last}" for first, last in messages[:_SHOWN_RANGES]]
    if rest := sum(last - first + 1 for first, last in messages[_SHOWN_RANGES:]):
        words.append(f"{rest} more")
    named = []
    if words:
        name = "message" if messages[0][0] == messages[-1][1] else "messages"
        named.append(f"{name} {' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))}")
    if calls:
        named.append(f"{calls:,} tool call{'' if calls == 1 else 's'}")
    is_one = len(named) == 1 and (calls == 1 or (not calls and messages[0][0] == messages[-1][1]))
    return f"{' and '.join(named)} {'is' if is_one else 'are'} missing from this session's files" if named else ""

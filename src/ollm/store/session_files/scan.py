"""Read a document in another layout, or a broken one, object by object from the file, in a single pass."""

from __future__ import annotations

import mmap
import re
import time
from array import array
from collections.abc import Iterator

import msgspec

from ollm.domain.lazy import decode_late
from ollm.domain.messages import JsonObject
from ollm.store.session_files.document import MAX_HEAD_BYTES, PlacedEntry, salvage_head
from ollm.store.session_files.files import MAX_BYTES, DamageReport, SessionFile
from ollm.store.session_files.lenient import MESSAGE, TooDeepError, find_end, find_entries, is_deeper_than, parse_object

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{")
_LIST = re.compile(rb'"(?:messages|toolCalls)"\s*+:')
_BLANK = rb"\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe2\x81[\x9f\xa0]|\xe3\x80\x80|\xef\xbb\xbf"
_ARRAYS = {"messages", "toolCalls"}
_SESSION_FIELDS = {"sessionId", "startTime", "messages"}
_CHECK_EVERY_ENTRIES = 256
OVERSIZED_BYTES = 1 << 24  # that are read of a file over the limit


class _EntryKind(msgspec.Struct):
    """Fields that distinguish a message from a call."""

    role: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    args: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    name: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_kind_decoder = decode_late(_EntryKind)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class DocumentScan:
    """Positions of the entries of a document, and its other fields."""

    def __init__(self, file: SessionFile, damage: DamageReport) -> None:
        self.head: JsonObject = {}
        self._whole: dict[str, list[msgspec.Raw]] = {}
        self._places: dict[str, array[int]] = {name: array("Q") for name in _ARRAYS}  # start, end, start, end, …
        self._damage = damage
        size = min(OVERSIZED_BYTES, file.size) if file.size > MAX_BYTES else file.find_data_end()
        if size < file.size <= MAX_BYTES:
            damage.note(f"nothing was ever written after byte {size}")
        self._data = memoryview(mmap.mmap(file.require_descriptor(), size, access=mmap.ACCESS_READ) if size else b"")
        if not (self._read_whole(self._data) or self._read_cleaned() or self._read_first()):
            self._read_broken()

    def _read_cleaned(self) -> bool:
        cleaned = _replace_blanks(self._data)
        if not cleaned:
            return False
        self._damage.note("blanks that JSON does not know were read as spaces")
        self._data = memoryview(cleaned)
        return self._read_whole(self._data)

    def iter_messages(self) -> Iterator[PlacedEntry]:
        return self._iter_bytes("messages")

    def iter_calls(self) -> Iterator[bytes]:
        return (data for _, data in self._iter_bytes("toolCalls"))

    def read_message(self, place: int, size: int) -> bytes:
        """Read a message at a place from `iter_messages`: among all of them, if the document was read whole."""
        return bytes(self._whole["messages"][place] if self._whole else self._data[place : place + size])

    def _iter_bytes(self, name: str) -> Iterator[PlacedEntry]:
        if self._whole:
            return enumerate(map(bytes, self._whole[name]))
        places = iter(self._places[name])
        return ((start, bytes(self._data[start:end])) for start, end in zip(places, places, strict=True))

    def _read_whole(self, data: memoryview) -> bool:
        """Read an undamaged document in any layout."""
        try:
            fields = _fields_decoder.decode(data)
            named = _SESSION_FIELDS & fields.keys()
            lists = {name: bytes(fields.pop(name, b"[]")) for name in _ARRAYS}
            if any(is_deeper_than(bytes(value)) for value in fields.values()):
                self._damage.refuse_depth()
                return False
            head = {name: parse_object(b'{"v":' + bytes(value) + b"}")["v"] for name, value in fields.items()}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            return False
        for name, value in lists.items():
            if not value.startswith(b"["):
                self._damage.note(f"{name} is not a list")
                return False
        if not named and lists == dict.fromkeys(_ARRAYS, b"[]"):
            self._damage.note("the file is not a session")
        self.head, self._whole = head, {name: self._list_objects(name, value) for name, value in lists.items()}
        return True

    def _list_objects(self, name: str, value: bytes) -> list[msgspec.Raw]:
        found = _entries_decoder.decode(value)
        objects = [entry for entry in found if bytes(memoryview(entry)[:1]) == b"{"]
        for _ in range(len(found) - len(objects)):
            self._damage.count_lost_entry(f"{name} contains something that is not an object")
        return objects

    def _read_first(self) -> bool:
        """Read a complete document that is followed by other data."""
        start = _OPENING.match(self._data)
        try:
            end = find_end(self._data, start.end() - 1) if start else None
        except TooDeepError:
            self._damage.refuse_depth()
            return False
        if not start or not end:
            self._damage.note("the file is truncated" if start else "the file is not a JSON document")
            return False
        if bytes(self._data[start.end() - 1 : end]).startswith(MESSAGE):
            self._damage.note("the file header is missing")
            return False
        if end < len(self._data):
            self._damage.note("extra data after the end of the document")
        return self._read_whole(self._data[start.end() - 1 : end])

    def _read_broken(self) -> None:
        """Read everything that is an entry by itself, and the readable parts of the head before and after them."""
        if not self._damage.notes:
            self._damage.note("the file is not valid JSON and was read as well as it could be")
        found = _LIST.search(self._data)
        before = found.start() if found else len(self._data)
        try:
            self._find_entries()
        except TooDeepError:
            self._damage.refuse_depth()
        behind = max((places[-1] for places in self._places.values() if places), default=before)
        for start, end in ((behind, len(self._data)), (0, before)):
            self.head |= salvage_head(bytes(self._data[start : min(end, start + MAX_HEAD_BYTES)]))

    def _find_entries(self) -> None:
        for count, (start, end) in enumerate(find_entries(self._data, late=self._is_late)):
            if count % _CHECK_EVERY_ENTRIES == 0 and self._is_late():
                return
            if name := _classify_entry(self._data[start:end]):
                self._places[name].extend((start, end))

    def _is_late(self) -> bool:
        if time.process_time() <= self._damage.find_until:
            return False
        self._damage.refuse("the file takes too long to read")
        return True


def _replace_blanks(data: memoryview) -> bytes | None:
    """Replace Unicode blanks between JSON tokens by spaces, or return None if there are none."""
    if not re.search(rb'[\s{}\[\],:"](?:' + _BLANK + rb')[\s{}\[\],:"\xc2\xe1-\xef]', data):
        return None
    token = re.compile(rb"(" + _STRING + rb")|(?:" + _BLANK + rb")", re.DOTALL)
    found = token.sub(lambda match: match[1] or b" " * len(match[0]), data)
    return found if found != data else None


def _classify_entry(entry: memoryview) -> str | None:
    if bytes(entry[: len(MESSAGE)]) == MESSAGE:
        return "messages"
    try:
        kind = _kind_decoder.decode(entry)
        fields = {name for name in kind.__struct_fields__ if getattr(kind, name) is not msgspec.UNSET}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            fields = set(parse_object(bytes(entry)))
        except (ValueError, RecursionError):
            return None
    return "messages" if "role" in fields else "toolCalls" if fields & {"args", "name"} else None

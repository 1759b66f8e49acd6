"""Reads a document in any other layout, or a broken one: object by object, from the file, never a second time."""

from __future__ import annotations

import mmap
import re
import time
from array import array
from collections.abc import Iterator

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files.files import MAX_BYTES, DamageReport, SessionFile
from ollm.store.session_files.lenient import MESSAGE, TooDeepError, find_end, find_entries, is_deeper_than, parse_object

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY = re.compile(rb"[\s,]*(" + _STRING + rb")\s*:\s*", re.DOTALL)
_SCALAR = re.compile(rb"(?:" + _STRING + rb'|[^\s,{}\[\]"]++)', re.DOTALL)
_GAP = re.compile(rb"[\s,]*+")
_BLANK = rb"\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe2\x81[\x9f\xa0]|\xe3\x80\x80|\xef\xbb\xbf"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ARRAYS = {"messages", "toolCalls"}
_SESSION_FIELDS = {"sessionId", "startTime", "messages"}
_CHECK_EVERY_ENTRIES = 256
OVERSIZED_BYTES = 1 << 24  # that are read of a file over the limit


class _EntryKind(msgspec.Struct):
    """Signs that distinguish a message from a call."""

    role: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    args: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_kind_decoder = msgspec.json.Decoder(_EntryKind)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class _BrokenDocument(Exception):  # noqa: N818 - a signal inside this module
    """The text stops making sense at this place."""


class DocumentScan:
    """Positions of the entries of a document, and its other fields. `read` is the number of bytes read."""

    def __init__(self, file: SessionFile, damage: DamageReport) -> None:
        self.head: JsonObject = {}
        self.read = 0
        self._whole: dict[str, list[msgspec.Raw]] = {}
        self._places: dict[str, array[int]] = {name: array("Q") for name in _ARRAYS}  # start, end, start, end, …
        self._damage = damage
        self._looks = 0
        size = min(file.find_data_end(), OVERSIZED_BYTES if file.size > MAX_BYTES else MAX_BYTES)
        if size < file.size <= MAX_BYTES:
            damage.note(f"nothing was ever written after byte {size}")
        self._data = memoryview(mmap.mmap(file.require_descriptor(), size, access=mmap.ACCESS_READ) if size else b"")
        self._read_whole()
        if not self._whole and (cleaned := _replace_blanks(self._data)):
            damage.note("blanks that JSON does not know were read as spaces")
            self._data = memoryview(cleaned)
            self._read_whole()
        if not self._whole:
            self._read_broken()

    def iter_messages(self) -> Iterator[bytes]:
        return self._iter_bytes("messages")

    def iter_calls(self) -> Iterator[bytes]:
        return self._iter_bytes("toolCalls")

    def _iter_bytes(self, name: str) -> Iterator[bytes]:
        for entry in map(bytes, self._whole[name]) if self._whole else self._iter_found(name):
            self.read += len(entry)
            yield entry

    def _iter_found(self, name: str) -> Iterator[bytes]:
        places = iter(self._places[name])
        return (bytes(self._data[start:end]) for start, end in zip(places, places, strict=True))

    def _read_whole(self) -> None:
        """A document without a fault, in any layout: the places of its entries, ten times as quick."""
        try:
            fields = _fields_decoder.decode(self._data)
            named = _SESSION_FIELDS & fields.keys()
            found = {name: _entries_decoder.decode(fields.pop(name, b"[]")) for name in _ARRAYS}
            if any(is_deeper_than(bytes(value)) for value in fields.values()):
                return
            head = {name: parse_object(b'{"v":' + bytes(value) + b"}")["v"] for name, value in fields.items()}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            return
        if any(bytes(memoryview(entry)[:1]) != b"{" for entries in found.values() for entry in entries):
            return
        if not named and not any(found.values()):
            self._damage.note("the file is not a session")
        self.head, self._whole = head, found

    def _read_broken(self) -> None:
        try:
            self._read_top()
        except TooDeepError:
            self._damage.refuse_depth()
        except _BrokenDocument as broken:
            self._damage.note(str(broken) or "the file is truncated")
            if not self._damage.too_large:
                self._search_entries()

    def _read_top(self) -> None:
        place = self._skip_gap(len(_BYTE_ORDER_MARK) if bytes(self._data[:3]) == _BYTE_ORDER_MARK else 0)
        if self._read_byte(place) != b"{":
            raise _BrokenDocument("the file is not a JSON document")
        place += 1
        while self._read_byte(self._skip_gap(place)) != b"}":
            found = _KEY.match(self._data, place)
            if not found:
                raise _BrokenDocument
            key = _decode_text(found[1])
            if key in _ARRAYS and self._read_byte(found.end()) == b"[":
                place = self._read_array(key, found.end() + 1)
            elif key in _ARRAYS:
                raise _BrokenDocument(f"{key} is not a list")
            else:
                place = self._read_field(key, found.end())
        if self._read_byte(self._skip_gap(self._skip_gap(place) + 1)):
            if "role" in self.head:  # the first object is a message
                self.head = {}
                raise _BrokenDocument("the file header is missing")
            self._damage.note("extra data after the end of the document")

    def _read_array(self, key: str, place: int) -> int:
        while True:
            self._check_time()
            place = self._skip_gap(place)
            mark = self._read_byte(place)
            if mark == b"]":
                return place + 1
            end = self._find_value_end(place)
            if mark == b"{":
                self._places[key].extend((place, end))
            else:
                self._damage.count_lost_entry(f"{key} contains something that is not an object")
            place = end

    def _read_field(self, key: str, place: int) -> int:
        end = self._find_value_end(place)
        value = bytes(self._data[place:end])
        if is_deeper_than(value):
            raise TooDeepError
        try:
            self.head[key] = parse_object(b'{"v":' + value + b"}")["v"]
        except (ValueError, RecursionError):
            self._damage.count_lost_entry(f"the field {key[:40]!r} cannot be read")
        return end

    def _find_value_end(self, place: int) -> int:
        if self._read_byte(place) in (b"{", b"["):
            end = find_end(self._data, place)
        else:
            found = _SCALAR.match(self._data, place)
            end = found.end() if found else None
        if end is None:
            raise _BrokenDocument
        return end

    def _search_entries(self) -> None:
        """From where the text stopped making sense: take everything that is an entry by itself."""
        place = max((places[-1] for places in self._places.values() if places), default=0)
        try:
            for start, end in find_entries(self._data, place, self._is_late):
                self._check_time()
                if name := _classify_entry(self._data[start:end]):
                    self._places[name].extend((start, end))
        except TooDeepError:
            self._damage.refuse_depth()
        except _BrokenDocument:
            return  # it took too long, which has been said

    def _check_time(self) -> None:
        self._looks += 1
        if self._looks % _CHECK_EVERY_ENTRIES == 0 and self._is_late():
            raise _BrokenDocument("the file takes too long to read")

    def _is_late(self) -> bool:
        if time.process_time() <= self._damage.find_until:
            return False
        self._damage.refuse("the file takes too long to read")
        return True

    def _skip_gap(self, place: int) -> int:
        found = _GAP.match(self._data, place)
        return found.end() if found else place

    def _read_byte(self, place: int) -> bytes:
        return bytes(self._data[place : place + 1])


def _replace_blanks(data: memoryview) -> bytes | None:
    """The same bytes with Unicode's blanks between JSON tokens as spaces; None if there are none."""
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
        role, args = kind.role is not msgspec.UNSET, kind.args is not msgspec.UNSET
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            found = parse_object(bytes(entry))
        except (ValueError, RecursionError):
            return None
        role, args = "role" in found, "args" in found
    return "messages" if role else "toolCalls" if args else None


def _decode_text(quoted: bytes) -> str:
    try:
        value = parse_object(b'{"v":' + quoted + b"}")["v"]
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""

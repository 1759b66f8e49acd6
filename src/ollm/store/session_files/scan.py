"""Reads a document in any other layout, or a broken one: object by object, from the file, never a second time."""

from __future__ import annotations

import mmap
import re
import time
from array import array
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files.damage import MAX_BYTES, Damage
from ollm.store.session_files.lenient import deeper_than, parse_object
from ollm.store.session_files.objects import TooDeepError, end_of, entries
from ollm.store.session_files.sections import MESSAGE

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY = re.compile(rb"[\s,]*(" + _STRING + rb")\s*:\s*", re.DOTALL)
_SCALAR = re.compile(rb"(?:" + _STRING + rb'|[^\s,{}\[\]"]++)', re.DOTALL)
_GAP = re.compile(rb"[\s,]*+")
_MARK = b"\xef\xbb\xbf"
_ARRAYS = {"messages", "toolCalls"}
_LOOK_EVERY = 256


class _Kind(msgspec.Struct):
    """What tells a message from a call."""

    role: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    args: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_kind = msgspec.json.Decoder(_Kind)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries = msgspec.json.Decoder(list[msgspec.Raw])


class _Broken(Exception):  # noqa: N818 - a signal inside this module
    """The text stops making sense at this place."""


class Scan:
    """Where the entries of a document stand, and its other fields. `read` is how many bytes were gone through."""

    def __init__(self, file: BinaryIO, damage: Damage) -> None:
        self.head: JsonObject = {}
        self.read = 0
        self._whole: dict[str, list[msgspec.Raw]] = {}
        self._places: dict[str, array[int]] = {name: array("Q") for name in _ARRAYS}  # start, end, start, end, …
        self._damage = damage
        self._looks = 0
        file.seek(0, 2)
        size = min(file.tell(), MAX_BYTES)
        self._data = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
        if not self._read_whole():
            self._read_broken()

    def messages(self) -> Iterator[bytes]:
        return self._bytes_of("messages")

    def calls(self) -> Iterator[bytes]:
        return self._bytes_of("toolCalls")

    def _bytes_of(self, name: str) -> Iterator[bytes]:
        for entry in map(bytes, self._whole[name]) if self._whole else self._found(name):
            self.read += len(entry)
            yield entry

    def _found(self, name: str) -> Iterator[bytes]:
        places = iter(self._places[name])
        return (bytes(self._data[start:end]) for start, end in zip(places, places, strict=True))

    def _read_whole(self) -> bool:
        """A document without a fault, in any layout: the places of its entries, ten times as quick."""
        try:
            fields = _fields.decode(self._data)
            found = {name: _entries.decode(fields.pop(name, b"[]")) for name in _ARRAYS}
            if any(deeper_than(bytes(value)) for value in fields.values()):
                return False
            head = {name: parse_object(b'{"v":' + bytes(value) + b"}")["v"] for name, value in fields.items()}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            return False
        if any(bytes(memoryview(entry)[:1]) != b"{" for entries in found.values() for entry in entries):
            return False
        self.head, self._whole = head, found
        return True

    def _read_broken(self) -> None:
        try:
            self._read_top()
        except TooDeepError:
            self._damage.refuse_depth()
        except _Broken as broken:
            self._damage.note(str(broken) or "the file ends before its end")
            if not self._damage.too_large:
                self._search()

    def _read_top(self) -> None:
        place = self._gap(len(_MARK) if bytes(self._data[:3]) == _MARK else 0)
        if self._at(place) != b"{":
            raise _Broken("the file is not a JSON document")
        place += 1
        while self._at(self._gap(place)) != b"}":
            found = _KEY.match(self._data, place)
            if not found:
                raise _Broken
            key = _text(found[1])
            if key in _ARRAYS and self._at(found.end()) == b"[":
                place = self._read_array(key, found.end() + 1)
            elif key in _ARRAYS:
                raise _Broken(f"{key} is no list")
            else:
                place = self._read_field(key, found.end())
        if self._at(self._gap(self._gap(place) + 1)):
            self._damage.note("something stands behind the end of the document")

    def _read_array(self, key: str, place: int) -> int:
        while True:
            self._in_time()
            place = self._gap(place)
            mark = self._at(place)
            if mark == b"]":
                return place + 1
            end = self._end_of_value(place)
            if mark == b"{":
                self._places[key].extend((place, end))
            else:
                self._damage.lose(f"{key} holds something that is no object")
            place = end

    def _read_field(self, key: str, place: int) -> int:
        end = self._end_of_value(place)
        value = bytes(self._data[place:end])
        if deeper_than(value):
            raise TooDeepError
        try:
            self.head[key] = parse_object(b'{"v":' + value + b"}")["v"]
        except (ValueError, RecursionError):
            self._damage.lose(f"the field {key[:40]!r} cannot be read")
        return end

    def _end_of_value(self, place: int) -> int:
        """The place behind the value that starts here."""
        if self._at(place) in (b"{", b"["):
            end = end_of(self._data, place)
        else:
            found = _SCALAR.match(self._data, place)
            end = found.end() if found else None
        if end is None:
            raise _Broken
        return end

    def _search(self) -> None:
        """From where the text stopped making sense: take everything that is an entry by itself."""
        place = max((places[-1] for places in self._places.values() if places), default=0)
        try:
            for start, end in entries(self._data, place, self._is_late):
                self._in_time()
                if name := _array_of(self._data[start:end]):
                    self._places[name].extend((start, end))
        except TooDeepError:
            self._damage.refuse_depth()
        except _Broken:
            return  # it took too long, which has been said

    def _in_time(self) -> None:
        self._looks += 1
        if self._looks % _LOOK_EVERY == 0 and self._is_late():
            raise _Broken("the file takes too long to read")

    def _is_late(self) -> bool:
        if time.process_time() <= self._damage.find_until:
            return False
        self._damage.refuse("the file takes too long to read")
        return True

    def _gap(self, place: int) -> int:
        found = _GAP.match(self._data, place)
        return found.end() if found else place

    def _at(self, place: int) -> bytes:
        return bytes(self._data[place : place + 1])


def _array_of(entry: memoryview) -> str | None:
    if bytes(entry[: len(MESSAGE)]) == MESSAGE:
        return "messages"
    try:
        kind = _kind.decode(entry)
        role, args = kind.role is not msgspec.UNSET, kind.args is not msgspec.UNSET
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            found = parse_object(bytes(entry))
        except (ValueError, RecursionError):
            return None
        role, args = "role" in found, "args" in found
    return "messages" if role else "toolCalls" if args else None


def _text(quoted: bytes) -> str:
    try:
        value = parse_object(b'{"v":' + quoted + b"}")["v"]
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""

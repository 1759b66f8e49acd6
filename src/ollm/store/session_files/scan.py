"""Reads a document in any other layout, or a broken one: object by object, from the file, never all of it in memory."""

from __future__ import annotations

import mmap
import re
import time
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files.damage import MAX_BYTES, MAX_DEPTH, SECONDS, Damage
from ollm.store.session_files.lenient import deeper_than, parse_object

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:' + _STRING + rb'[^"{}\[\]]*+)*+', re.DOTALL)
_KEY = re.compile(rb"[\s,]*(" + _STRING + rb")\s*:\s*", re.DOTALL)
_SCALAR = re.compile(rb"(?:" + _STRING + rb'|[^\s,{}\[\]"]++)', re.DOTALL)
_GAP = re.compile(rb"[\s,]*+")
_LOOKS_LIKE_ENTRY = re.compile(rb'\{\s*+"(?:id|role|parts|timestamp)"\s*+:')
_MARK = b"\xef\xbb\xbf"
_MOST_FAILURES = 200
_ARRAYS = {"messages", "toolCalls"}

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries = msgspec.json.Decoder(list[msgspec.Raw])

Range = tuple[int, int]


class _Broken(Exception):  # noqa: N818 - a signal inside this module
    """The text stops making sense at this place."""


class Scan:
    """Where the entries of a document stand, and its other fields."""

    def __init__(self, file: BinaryIO, damage: Damage) -> None:
        self.head: JsonObject = {}
        self._whole: dict[str, list[msgspec.Raw]] = {}
        self._ranges: dict[str, list[Range]] = {name: [] for name in _ARRAYS}
        self._damage = damage
        self._deadline = time.process_time() + SECONDS
        file.seek(0, 2)
        size = min(file.tell(), MAX_BYTES)
        self._data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""
        if self._read_whole():
            return
        try:
            self._read_top()
        except _Broken as broken:
            damage.note(str(broken) or "the file ends before its end")
            if not damage.too_large:
                self._search()

    def messages(self) -> Iterator[bytes]:
        return self._bytes_of("messages")

    def calls(self) -> Iterator[bytes]:
        return self._bytes_of("toolCalls")

    def _bytes_of(self, name: str) -> Iterator[bytes]:
        if self._whole:
            return map(bytes, self._whole[name])
        return (bytes(self._data[start:end]) for start, end in self._ranges[name])

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
            if mark == b"{":
                end = self._end_of(place)
                self._ranges[key].append((place, end))
            else:
                found = _SCALAR.match(self._data, place)
                if not found:
                    raise _Broken
                end = found.end()
                self._damage.lose(f"{key} holds something that is no object")
            place = end

    def _read_field(self, key: str, place: int) -> int:
        if self._at(place) in (b"{", b"["):
            end = self._end_of(place)
        else:
            found = _SCALAR.match(self._data, place)
            if not found:
                raise _Broken
            end = found.end()
        try:
            self.head[key] = parse_object(b'{"v":' + bytes(self._data[place:end]) + b"}")["v"]
        except (ValueError, RecursionError):
            self._damage.lose(f"the field {key[:40]!r} cannot be read")
        return end

    def _end_of(self, place: int) -> int:
        """The place behind the object or list that starts here."""
        depth, data, size = 0, self._data, len(self._data)
        steps = 0
        while place < size:
            mark = data[place]
            if mark in b"{[":
                depth += 1
                if depth > MAX_DEPTH:
                    self._damage.refuse(f"nested deeper than {MAX_DEPTH} levels, too large to read")
                    raise _Broken(f"nested deeper than {MAX_DEPTH} levels, too large to read")
            elif mark in b"}]":
                depth -= 1
                if depth == 0:
                    return place + 1
            else:
                raise _Broken
            found = _TO_BRACKET.match(data, place + 1)
            place = found.end() if found else size
            steps += 1
            if steps % 4096 == 0:
                self._in_time()
        raise _Broken

    def _search(self) -> None:
        """From where the text stopped making sense: take everything that is an entry by itself."""
        place = max((end for ranges in self._ranges.values() for _, end in ranges), default=0)
        failures = 0
        while failures < _MOST_FAILURES and (found := _LOOKS_LIKE_ENTRY.search(self._data, place)):
            end = self._taken(found.start())
            failures += end is None
            place = end or found.start() + 1
            if time.process_time() > self._deadline:
                return

    def _taken(self, start: int) -> int | None:
        """The place behind the entry that stands here, or None when there is none."""
        try:
            end = self._end_of(start)
            entry = parse_object(bytes(self._data[start:end]))
        except (_Broken, ValueError, RecursionError):
            return None
        name = "messages" if "role" in entry else "toolCalls" if "args" in entry else None
        if name:
            self._ranges[name].append((start, end))
        return end

    def _in_time(self) -> None:
        if self._damage.hopeless or time.process_time() > self._deadline:
            self._damage.refuse("the file takes too long to read")
            raise _Broken("the file takes too long to read")

    def _gap(self, place: int) -> int:
        found = _GAP.match(self._data, place)
        return found.end() if found else place

    def _at(self, place: int) -> bytes:
        return bytes(self._data[place : place + 1])


def _text(quoted: bytes) -> str:
    try:
        value = parse_object(b'{"v":' + quoted + b"}")["v"]
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""

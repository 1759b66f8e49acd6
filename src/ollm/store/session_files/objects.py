"""Finds whole JSON objects in text that is none as a whole, as quickly as the parser itself goes over them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec

from ollm.domain.patterns import compile_late

WINDOW_BYTES = 1 << 16
_SPACE = b" \t\r\n"
_raw_decoder = msgspec.json.Decoder(msgspec.Raw)
_TRAILING_ERROR = compile_late(r"trailing characters \(byte (\d+)\)")  # how the parser says where an object ended
_ENTRY_START = compile_late(rb'\{\s*+"(?:id|role|parts|timestamp)"\s*+:')
_loose_decoder = json.JSONDecoder(strict=False)


class TooDeepError(Exception):
    """An object is nested deeper than any parser goes."""


def find_end(data: memoryview, start: int) -> int | None:
    """The place behind the object or list that starts here; None when it is not whole."""
    following = _ENTRY_START.search(data, start + 1, start + WINDOW_BYTES)
    return (_find_end_before(data, start, following.start()) if following else None) or _parse_end(data, start)


def _find_end_before(data: memoryview, start: int, following: int) -> int | None:
    """The end of an entry that reaches to where the next one starts: told without an error of the parser's, quicker."""
    entry = bytes(data[start:following]).rstrip(b"," + _SPACE)
    try:
        _raw_decoder.decode(entry)
    except (msgspec.DecodeError, RecursionError):
        return None
    return start + len(entry)


def _parse_end(data: memoryview, start: int) -> int | None:
    window = WINDOW_BYTES
    while True:
        chunk = data[start : start + window]
        try:
            _raw_decoder.decode(chunk)
            return _trim_end(data, start + len(chunk))
        except RecursionError as error:
            raise TooDeepError from error
        except msgspec.DecodeError as error:
            said = str(error)
        if found := _TRAILING_ERROR.search(said):
            return _trim_end(data, start + int(found[1]) - 1)
        if "truncated" not in said:
            return _find_loose_end(bytes(data[start : start + WINDOW_BYTES]), start)
        if start + window >= len(data):
            return None
        window *= 16


def find_entries(data: memoryview, place: int = 0, late: Callable[[], bool] | None = None) -> Iterator[tuple[int, int]]:
    """Where everything is that looks like a message or a call and is whole, from `place` on.

    `late` is asked after each that is not whole, which can take long; True ends it.
    """
    found = _ENTRY_START.search(data, place)
    while found:
        start = found.start()
        found = _ENTRY_START.search(data, found.end())
        until = found.start() if found else len(data)
        end = _find_end_before(data, start, until) if until - start < WINDOW_BYTES else None
        if end is None:
            end = _parse_end(data, start)
            if end is None and late and late():
                return
            if end is not None and end > until:  # what looked like the next one is a part of this one
                found = _ENTRY_START.search(data, end)
        if end is not None:
            yield start, end


def _trim_end(data: memoryview, end: int) -> int:
    while data[end - 1] in _SPACE:
        end -= 1
    return end


def _find_loose_end(chunk: bytes, start: int) -> int | None:
    """The same for an object that holds raw control characters."""
    try:
        return start + _loose_decoder.raw_decode(chunk.decode("latin-1"))[1]
    except ValueError:
        return None
    except RecursionError as error:
        raise TooDeepError from error

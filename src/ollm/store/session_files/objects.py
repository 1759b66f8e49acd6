"""Finds whole JSON objects in text that is none as a whole, as quickly as the parser itself goes over them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import msgspec

WINDOW = 1 << 16
_SPACE = b" \t\r\n"
_skip = msgspec.json.Decoder(msgspec.Raw)
_behind = re.compile(r"trailing characters \(byte (\d+)\)")  # how the parser says where an object ended
_looks_like_entry = re.compile(rb'\{\s*+"(?:id|role|parts|timestamp)"\s*+:')
_loosely = json.JSONDecoder(strict=False)


class TooDeepError(Exception):
    """An object is nested deeper than any parser goes."""


def end_of(data: memoryview, start: int) -> int | None:
    """The place behind the object or list that starts here; None when it is not whole."""
    following = _looks_like_entry.search(data, start + 1, start + WINDOW)
    return (_end_before(data, start, following.start()) if following else None) or _parsed_end(data, start)


def _end_before(data: memoryview, start: int, following: int) -> int | None:
    """The end of an entry that reaches to where the next one starts: told without an error of the parser's, quicker."""
    entry = bytes(data[start:following]).rstrip(b"," + _SPACE)
    try:
        _skip.decode(entry)
    except (msgspec.DecodeError, RecursionError):
        return None
    return start + len(entry)


def _parsed_end(data: memoryview, start: int) -> int | None:
    window = WINDOW
    while True:
        piece = data[start : start + window]
        try:
            _skip.decode(piece)
            return _trimmed(data, start + len(piece))
        except RecursionError as error:
            raise TooDeepError from error
        except msgspec.DecodeError as error:
            said = str(error)
        if found := _behind.search(said):
            return _trimmed(data, start + int(found[1]) - 1)
        if "truncated" not in said:
            return _loose_end(bytes(data[start : start + WINDOW]), start)
        if start + window >= len(data):
            return None
        window *= 16


def entries(data: memoryview, place: int = 0, late: Callable[[], bool] | None = None) -> Iterator[tuple[int, int]]:
    """Where everything stands that looks like a message or a call and is whole, from `place` on.

    `late` is asked after each that is not whole, which can take long; True ends it.
    """
    found = _looks_like_entry.search(data, place)
    while found:
        start = found.start()
        found = _looks_like_entry.search(data, found.end())
        until = found.start() if found else len(data)
        end = _end_before(data, start, until) if until - start < WINDOW else None
        if end is None:
            end = _parsed_end(data, start)
            if end is None and late and late():
                return
            if end is not None and end > until:  # what looked like the next one is a part of this one
                found = _looks_like_entry.search(data, end)
        if end is not None:
            yield start, end


def _trimmed(data: memoryview, end: int) -> int:
    while data[end - 1] in _SPACE:
        end -= 1
    return end


def _loose_end(piece: bytes, start: int) -> int | None:
    """The same for an object that holds raw control characters."""
    try:
        return start + _loosely.raw_decode(piece.decode("latin-1"))[1]
    except ValueError:
        return None
    except RecursionError as error:
        raise TooDeepError from error

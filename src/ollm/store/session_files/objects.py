"""Finds whole JSON objects in text that is none as a whole, as quickly as the parser itself goes over them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

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


def entries(data: memoryview, place: int = 0) -> Iterator[tuple[int, int]]:
    """Where everything stands that looks like a message or a call and is whole, from `place` on."""
    while found := _looks_like_entry.search(data, place):
        start = found.start()
        end = end_of(data, start)
        if end is not None:
            yield start, end
        place = end or start + 1


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

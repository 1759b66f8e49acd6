"""How a document is laid out on disk: one JSON document (S2.1), its head on the first line, one message or call a line.

The lines make it cheap to fold (old lines are copied, never parsed), to read in part and to salvage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ollm.domain.messages import JsonObject
from ollm.store.session_files.journal import encode_json

OPEN = b',"messages":[\n'
MIDDLE = b'],"toolCalls":[\n'
CLOSE = b"]}\n"
FIELDS = ("sessionId", "startTime", "lastActivity", "model", "provider", "metadata")


def iter_document(head: JsonObject, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """The document's bytes, part by part."""
    yield from join_document(encode_head(head), messages, calls)


def encode_head(head: JsonObject) -> bytes:
    """The fields of a document besides its messages and calls, in their order, as one JSON object."""
    ordered = {name: head[name] for name in FIELDS if name in head}
    ordered |= {name: value for name, value in head.items() if name not in ("messages", "toolCalls", *ordered)}
    return encode_json(ordered)


def join_document(head: bytes, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """The document's bytes from its encoded head and the lines of its entries."""
    yield head[:-1] + OPEN
    yield from _iter_lines(messages)
    yield MIDDLE
    yield from _iter_lines(calls)
    yield CLOSE


def _iter_lines(items: Iterable[bytes]) -> Iterator[bytes]:
    first = True
    for item in items:
        if not first:
            yield b",\n"
        yield item
        first = False
    if not first:
        yield b"\n"

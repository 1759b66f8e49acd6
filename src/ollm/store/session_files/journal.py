"""The journal: one JSON record per line, each on disk before the call that wrote it returns.

Replaying a journal over a document that already contains it changes nothing, so a crash between folding and clearing is
harmless: messages carry their number, and the newest record of a call and the newest value of a setting win.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from ollm.domain.lazy import compile_late, decode_late
from ollm.domain.messages import JsonObject, Message
from ollm.store.session_files.files import SessionFile

Parts = list[JsonObject]
GrownLists = dict[str, tuple[int, list[Any]]]  # by name: where the new items begin, and what they are
RECORD_START = b'{"at":"'
MAX_NESTING_LEVELS = 60  # levels of nesting that are written; readers refuse more than 100


class JournalMark(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """State at a place from which a long journal can be read: a user message follows, and no call is running. Valid
    only for the document it names."""

    previous: int  # where the mark before this one is; -1 without one
    document: str
    head: JsonObject
    count: int  # messages so far, and the number of the last
    last: int
    calls: int  # the highest number of a call so far


class JournalRecord(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True, forbid_unknown_fields=True
):
    """One line. `at` is its time, exactly one other field its content. A line with an unknown field is not ours."""

    at: str
    mark: JournalMark | None = None
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    continues: bool = False  # the message's parts go on where the partial answer stopped
    piece: tuple[int, int] | None = None  # the number of the answer, and which of its records this is; older have none
    partial: Parts | None = None  # what an answer under way has grown by
    anew: bool = False  # the partial starts over
    call: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    top: JsonObject | None = None  # fields of the document itself
    set: JsonObject | None = None  # metadata fields, replaced
    append: GrownLists | None = None  # metadata lists, longer from this place on
    tokens: int = 0  # of the whole archive, after this record; 0 where it did not change


class JournalMessage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Line of a message, encoded in one pass; it is read as a `JournalRecord`."""

    at: str
    message: Message
    tokens: int = 0


PIECE_END = b'"}]}\n'
_PIECE = compile_late(rb'\{"at":"[^"]*","piece":\[\d+,\d+\],"partial":\[\{"type":"(?:text|thinking)","text":"')
_MAX_TORN_BYTES = 6  # of a character or an escape


def encode_piece_start(at: str, piece: tuple[int, int], kind: str) -> bytes:
    """Encode the beginning of a record that text is appended to as it is streamed, and `PIECE_END` ends."""
    return b'{"at":"%s","piece":[%d,%d],"partial":[{"type":"%s","text":"' % (at.encode(), *piece, kind.encode())


def complete_piece(data: bytes) -> bytes | None:
    """Return a record of streamed text with the end it never got, or None for any other. A torn character is left
    out."""
    begin = _PIECE.match(data)
    for end in range(len(data), max(begin.end(), len(data) - _MAX_TORN_BYTES), -1) if begin else ():
        with contextlib.suppress(*DECODE_ERRORS):
            parse_record(data[:end] + PIECE_END)
            return data[:end] + PIECE_END
    return None


class _CallId(msgspec.Struct):
    id: str


_CALL = b'{"id":"'  # how we write one
_call_id_decoder = decode_late(_CallId)
_object_decoder = msgspec.json.Decoder(dict[str, Any])
_decoder = decode_late(JournalRecord)
_encoder = msgspec.json.Encoder()
_OWN_FIELDS = {"sessionId", "metadata", "messages", "toolCalls"}  # that no record replaces
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
ENCODE_ERRORS = (UnicodeEncodeError, TypeError, OverflowError, ValueError, RecursionError)


def encode_json(value: Any) -> bytes:
    """Encode any value as JSON. Replaces what JSON or UTF-8 cannot represent, and never raises."""
    try:
        return _encoder.encode(value)
    except ENCODE_ERRORS:
        return _encoder.encode(clean_json(msgspec.to_builtins(value, enc_hook=str) if not _is_plain(value) else value))


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return the value with lone surrogates as U+FFFD, odd values as text, and deep nesting cut off."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, dict):
        if depth > MAX_NESTING_LEVELS:
            return "(nested too deep)"
        return {str(clean_json(str(key))): clean_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item, depth + 1) for item in value] if depth <= MAX_NESTING_LEVELS else "(nested too deep)"
    if value is None or isinstance(value, bool | int | float | msgspec.Raw):
        return value
    return clean_json(str(value))


def _is_plain(value: Any) -> bool:
    return isinstance(value, dict | list | tuple | str)


def encode_line(record: JournalRecord | JournalMessage) -> bytes:
    try:
        return _encoder.encode_lines((record,))
    except ENCODE_ERRORS:
        return encode_json(record) + b"\n"


def parse_record(data: bytes) -> JournalRecord:
    """Parse a record. Raises msgspec's or Unicode's error for a line that is not a usable record."""
    record = _decoder.decode(data)
    if isinstance(record.call, msgspec.Raw) and not bytes(record.call).startswith(_CALL):
        read_call_id(bytes(record.call))
    if record.partial is not None and not all(map(_is_part, record.partial)):
        raise msgspec.ValidationError("not the parts of an answer")
    return record


def read_call_id(data: bytes) -> str:
    """Read the id of a call. Raises msgspec's or Unicode's error if the data is not a call."""
    return _call_id_decoder.decode(data).id


def is_same_call(one: bytes, other: bytes) -> bool:
    """Return True if two records with one id are of one call, of which only a whole one names the tool."""
    if b'"name"' not in one or b'"name"' not in other:
        return True
    first, second = _object_decoder.decode(one), _object_decoder.decode(other)
    return all(first.get(name) == second.get(name) for name in ("messageId", "name", "args"))


def join_call(changes: Iterable[JsonObject]) -> bytes:
    """Join the records of a call; a start never overrides an end."""
    found: JsonObject = {}
    for change in sorted(changes, key=lambda change: change.get("status") == "running", reverse=True):
        found |= change
    return encode_json(found)


def _is_part(part: JsonObject) -> bool:
    kind = part.get("type")
    return isinstance(part.get("text"), str) if kind in ("text", "thinking") else isinstance(kind, str)


def _is_text(part: Any) -> TypeGuard[JsonObject]:
    """Return True for a complete text part; a part in a damaged record may be anything."""
    return isinstance(part, dict) and part.get("type") in ("text", "thinking") and isinstance(part.get("text"), str)


def extend_parts(parts: Parts, more: Parts) -> Parts:
    """Extend `parts` by `more`: text is appended to a last part of the same type."""
    grown = list(parts)
    for part in more:
        last = grown[-1] if grown else None
        if _is_text(last) and _is_text(part) and last["type"] == part["type"]:
            grown[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            grown.append(part)
    return grown


def compute_growth(written: Parts, whole: Parts) -> Parts | None:
    """Return the parts to add to `written` to get `whole`, or None if it is not a continuation."""
    last = len(written) - 1
    more: Parts | None = None
    if last < 0:
        more = whole
    elif len(whole) > last and whole[:last] == written[:last]:
        old, new, rest = written[last], whole[last], whole[last + 1 :]
        if new == old:
            more = rest
        elif new["type"] == old["type"] and "text" in old and new.get("text", "").startswith(old["text"]):
            more = [{"type": new["type"], "text": new["text"][len(old["text"]) :]}, *rest]
    return more if more is not None and extend_parts(written, more) == whole else None


def split_changes(held: JsonObject, changed: JsonObject) -> tuple[JsonObject, GrownLists]:
    """Split a metadata change into replaced values and new items of lists that only grew."""
    grown: GrownLists = {}
    replaced: JsonObject = {}
    for name, value in msgspec.json.decode(encode_json(changed)).items():
        old = held.get(name)
        if isinstance(value, list) and isinstance(old, list) and old and value[: len(old)] == old:
            grown[name] = (len(old), value[len(old) :])
        else:
            replaced[name] = value
    return replaced, grown


def advance_head(head: JsonObject, at: str, tokens: int) -> None:
    """Apply a record's time, and the archive's current token count, to the head."""
    last = head.get("lastActivity")
    if at != last and at[:4].isdigit():
        head["lastActivity"] = last if isinstance(last, str) and last > at else at
    if tokens:
        head.setdefault("metadata", {})["tokenCount"] = tokens


def change_head(head: JsonObject, record: JournalRecord) -> None:
    """Apply a record's changes to the document's own fields and its metadata."""
    advance_head(head, record.at, record.tokens)
    if record.top:
        head.update({name: value for name, value in record.top.items() if name not in _OWN_FIELDS})
    metadata = head.setdefault("metadata", {})
    if record.set:
        metadata.update(record.set)
    for key, (start, items) in (record.append or {}).items():
        held = metadata.get(key)
        metadata[key] = [*(held[:start] if isinstance(held, list) else ()), *items]


_MARK = b'","mark":{'
_STAMP_CHARS = len("2026-01-27T10:00:00.000Z")
_BLOCK_BYTES = 1 << 18
MAX_SEARCHED_BYTES = 32 << 20  # from the end back; without a mark there all of a journal is read
MARK_EVERY_BYTES = 1 << 18
MARK_EVERY_MARKS = 8  # and no more of a journal than one part in so many is marks


class PlacedMark(msgspec.Struct, frozen=True):
    """A mark and the start of its line."""

    place: int
    mark: JournalMark


class MarkSchedule:
    """Schedule of the marks in a journal that is being written, and the call count for them."""

    def __init__(self) -> None:
        self._calls = 0
        self.restart()

    def restart(self) -> None:
        """Start a new journal."""
        self._place = -1  # of the last mark
        self.next = MARK_EVERY_BYTES  # how long the journal is when the next one is due

    def continue_journal(self, path: Path, calls: int, document: str) -> None:
        """Continue an existing journal after so many calls. If its marks are for another document, as in a copy, the
        next one is due at once."""
        self.restart()
        self._calls = calls
        with contextlib.suppress(OSError), path.open("rb") as file:
            if last := next(iter_marks(SessionFile(file.fileno())), None):
                due = last.place + MARK_EVERY_BYTES if is_same_document(last.mark.document, document) else 0
                self._place, self.next = last.place, due

    def note_call(self, call_id: str) -> None:
        self._calls = max(self._calls, read_call_number(call_id))

    def make_line(self, place: int, at: str, document: str, head: JsonObject, numbers: tuple[int, int]) -> bytes:
        """Make the line of a mark at `place`."""
        count, last = numbers
        mark = JournalMark(
            previous=self._place, document=document, head=head, count=count, last=last, calls=self._calls
        )
        line = encode_line(JournalRecord(at=at, mark=mark))
        self._place, self.next = place, place + max(MARK_EVERY_BYTES, len(line) * MARK_EVERY_MARKS)
        return line


def is_same_document(marked: str, found: str) -> bool:
    """Return True if two stamps (inode, size, time) are of one document, or of a copy that kept its time."""
    return marked.partition(",")[2] == found.partition(",")[2] != ""


def read_call_number(call_id: str) -> int:
    """Return the number in a call id made by ollm, or 0 for any other id."""
    number = call_id[1:] if call_id[:1] == "c" else ""
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def iter_marks(file: SessionFile) -> Iterator[PlacedMark]:
    """Iterate over the marks of a journal, newest first, reading little else."""
    found = _find_last_mark(file) if file.size >= MARK_EVERY_BYTES else None
    while found:
        yield found
        previous = found.mark.previous
        found = _read_mark(file, previous) if 0 <= previous < found.place else None


def _find_last_mark(file: SessionFile) -> PlacedMark | None:
    before = len(RECORD_START) + _STAMP_CHARS
    end, least = file.size, max(0, file.size - MAX_SEARCHED_BYTES)
    while end > least:
        start = max(0, end - _BLOCK_BYTES)
        block = file.read(start, end + before + len(_MARK))
        place = block.rfind(_MARK)
        while place >= 0:
            if place >= before and (found := _read_mark(file, start + place - before)):
                return found
            place = block.rfind(_MARK, 0, place)
        end = start
    return None


def _read_mark(file: SessionFile, place: int) -> PlacedMark | None:
    """Read the mark on the line that begins here, or return None if there is no such line or mark."""
    if place and file.read(place - 1, place) != b"\n":
        return None
    try:
        record = parse_record(file.read_line(place))
    except DECODE_ERRORS:
        return None
    return PlacedMark(place, record.mark) if record.mark else None

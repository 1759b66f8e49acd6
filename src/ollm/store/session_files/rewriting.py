"""Writing a session again from all that can be read of it, in one go: read once, nothing held that is not wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ollm.domain.clock import Clock
from ollm.domain.errors import DamagedError
from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import SCHEMA_VERSION, Session
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import journal, layout, lenient
from ollm.store.session_files.copies import keep_copies
from ollm.store.session_files.damage import DamageReport
from ollm.store.session_files.loading import (
    LoadedSession,
    SessionStream,
    complete_head,
    get_file_time,
    make_loaded_session,
    make_partial_message,
    read_calls,
    read_messages,
)
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.reader import SessionReader
from ollm.store.session_files.sections import CALL, MESSAGE
from ollm.store.session_files.writer import SessionWriter
from ollm.system.atomic import replace_file


class RecoveredSession(NamedTuple):
    """A session whose files are whole. `numbers` (messages, number of the last) leave out the answer under way."""

    loaded: LoadedSession
    numbers: tuple[int, int]
    partial: journal.Parts
    held: bool = True  # messages and calls are in `loaded`


class _NothingWrongError(Exception):
    """What was read is what is there: it need not be written."""


class _EntryCollector:
    """The entries as they are to be written, counted on the way, and held where somebody continues with them."""

    def __init__(self, reader: SessionReader, *, hold: bool) -> None:
        self.count = self.last = 0
        self.messages: list[Message] = []
        self.calls: list[ToolCallRecord] = []
        self._reader = reader
        self._hold = hold

    def iter_message_bytes(self) -> Iterator[bytes]:
        for found, data, sound in read_messages(self._reader):
            self._take_message(found)
            if sound and (line := _normalize_entry(data)).startswith(MESSAGE):
                yield lenient.preserve_bytes(line, found, sound)
            else:
                yield journal.encode_json(lenient.parse_object(data) | msgspec.to_builtins(found))
        if self._reader.partial:
            ending = make_partial_message(self._reader, self.last + 1)
            self._take_message(ending)
            yield journal.encode_json(ending)

    def make_recovered(self, stream: SessionStream) -> RecoveredSession:
        """What came of it, when all was read."""
        loaded = make_loaded_session(stream, tuple(self.messages), tuple(self.calls))
        under_way = int(loaded.unfinished)
        return RecoveredSession(
            loaded, (self.count - under_way, self.last - under_way), stream.reader.partial, self._hold
        )

    def _take_message(self, message: Message) -> None:
        self.count += 1
        self.last = max(self.last, message.id)
        if self._hold:
            self.messages.append(message)

    def iter_call_bytes(self) -> Iterator[bytes]:
        for found, data, sound in read_calls(self._reader):
            if self._hold:
                self.calls.append(found)
            if sound and (line := _normalize_entry(data)).startswith(CALL):
                yield lenient.preserve_bytes(line, found, sound)
            else:
                known: JsonObject = msgspec.to_builtins(found)
                yield journal.encode_json({**known, **lenient.parse_object(data), **known})


def _normalize_entry(data: bytes) -> bytes:
    """A sound entry on one line, without the blanks of another layout."""
    ours = data.startswith((MESSAGE, CALL)) and b"\n" not in data
    return data if ours else msgspec.json.format(data, indent=-1)


def rewrite_session(
    places: SessionPlaces,
    paths: tuple[Path, Path],
    writer: SessionWriter,
    clock: Clock,
    *,
    damage: DamageReport,
    hold: bool,
) -> RecoveredSession:
    """A clean document in the sessions' own directory, the journal in it; damaged files are kept beside.

    One that is whole and in its place is only read. What it holds is given only with `hold`. Raises `DamagedError` when
    it must not be written.
    """
    home, session_id = paths[0].parent, writer.session_id
    with contextlib.closing(SessionReader(*paths, damage=damage)) as reader:
        stream = SessionStream(reader, session_id, alive=True, fallback=get_file_time(paths[0]))
        refuse_read_only(stream, paths[0])
        writer.head = make_current_head(reader.head, stream.session)
        taking = _EntryCollector(reader, hold=hold)

        def iter_chunks() -> Iterator[bytes]:
            yield from layout.iter_document(writer.head, taking.iter_message_bytes(), taking.iter_call_bytes())
            refuse_read_only(stream, paths[0])
            if stream.damage:
                refuse_unreadable(stream, paths, taking.count)
                keep_copies(home, session_id, clock)
            elif reader.foreign and paths[0].is_file():
                keep_copies(home, session_id, clock, "original")
            elif home == places.directory and not reader.foreign:
                raise _NothingWrongError

        try:
            replace_file(places.get_document_path(session_id), iter_chunks())
        except _NothingWrongError:
            return taking.make_recovered(stream)
        places.get_journal_path(session_id).unlink(missing_ok=True)
        _remove_moved(home, places, session_id)
        found = taking.make_recovered(stream)
    written = msgspec.structs.replace(found.loaded, unfinished=False, journal_good=0)
    return found._replace(loaded=written, numbers=(taking.count, taking.last), partial=[])


def refuse_read_only(stream: SessionStream, document: Path) -> None:
    if stream.read_only:
        raise DamagedError(
            f"{document} can be viewed but not continued: {stream.read_only}. The file was left as it is.",
            action="Save what is readable with `ollm sessions export`, or start a new session with `ollm --new`.",
        )


def refuse_unreadable(stream: SessionStream, paths: tuple[Path, Path], messages: int) -> None:
    """Files in which not one message can be read stay as they are: there is nothing to go on from."""
    if messages == 0:
        file = next(path for path in paths if path.exists())
        raise DamagedError(
            f"{file} cannot be resumed: no message in it can be read ({stream.damage}). The file was left as it is.",
            action="Restore it from a backup, or start a new session with `ollm chat --new`.",
        )


def make_current_head(head: JsonObject, session: Session) -> JsonObject:
    """The head as this version writes it."""
    known: JsonObject = msgspec.to_builtins(session.metadata)
    held = {n: v for n, v in head.get("metadata", {}).items() if n not in known or lenient.fits_metadata(n, v)}
    metadata = {**known, **held, "schemaVersion": SCHEMA_VERSION}
    described = msgspec.structs.replace(session, messages=(), tool_calls=())
    return {**complete_head(head, described), "metadata": metadata}


def _remove_moved(home: Path, places: SessionPlaces, session_id: str) -> None:
    """The earlier version's files, once their content is in our own directory."""
    if home != places.directory:
        for end in (".json", ".journal"):
            (home / f"{session_id}{end}").unlink(missing_ok=True)

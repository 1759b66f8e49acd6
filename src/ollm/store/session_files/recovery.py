"""Opening a session for writing after a crash or damage: nothing readable is lost, the damaged file is kept
beside, an answer cut off is marked interrupted, and every call that was left without a result gets one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import DamagedError, StorageError
from ollm.domain.messages import JsonObject, Message, ToolResultPart
from ollm.domain.session import SCHEMA_VERSION, Session
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import document, journal, lenient
from ollm.store.session_files.document import CALL, MESSAGE
from ollm.store.session_files.files import DamageFoundError, DamageReport, StrictDamageReport
from ollm.store.session_files.journal import is_marked
from ollm.store.session_files.loading import (
    LoadedSession,
    SessionStream,
    complete_head,
    get_file_time,
    load_session,
    make_loaded_session,
    make_partial_message,
    mark_interrupted,
    read_calls,
    read_messages,
)
from ollm.store.session_files.places import SessionPlaces, keep_copies
from ollm.store.session_files.reader import SessionReader
from ollm.store.session_files.writer import SessionWriter
from ollm.system.atomic import replace_file


class RecoveredSession(NamedTuple):
    """A session whose files are whole. `numbers` (messages, number of the last) leave out the answer under way."""

    loaded: LoadedSession
    numbers: tuple[int, int]
    partial: journal.Parts
    held: bool = True  # messages and calls are in `loaded`


class _NothingWrongError(Exception):
    """The data that was read is what is on disk: it need not be written."""


class _EntryCollector:
    """Collect the entries to write, counted on the way, and held if somebody continues with them."""

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
        """Make the recovered session after everything was read."""
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
            yield from document.iter_document(writer.head, taking.iter_message_bytes(), taking.iter_call_bytes())
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
    """Raise DamagedError if no message can be read: there is nothing to continue from. The files stay as they are."""
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


OPEN_PATIENCE_FACTOR = 2  # for somebody who waits: to write takes as long again as to read
REPAIR_PATIENCE_FACTOR = 10
LARGE_BYTES = 64_000_000  # from here on no session is held whole to continue with it


class KnownDocument(Data, frozen=True):
    """Facts about a whole document that has not changed since: its messages, and the number of the last one.

    Only what follows number `since` is needed of it. `surely`: all of it was read just now.
    """

    message_count: int
    last_number: int
    since: int
    surely: bool = False


def recover_session(
    places: SessionPlaces,
    writer: SessionWriter,
    clock: Clock,
    *,
    to_continue: bool,
    since: int,
    known: KnownDocument | None,
    repair: bool,
) -> LoadedSession:
    """Make the files whole and the writer ready; gives what the session holds afterwards, when it is `to_continue`.

    A document that is `known` to be whole is read from where it is needed on; any doubt, and all of it is read. Of a
    large one what follows `since` is given, or its end. With `repair` it is written again at once, and that may take
    its time.
    """
    session_id = writer.session_id
    home = places.find_home(session_id) or places.directory
    paths = home / f"{session_id}.json", home / f"{session_id}.journal"
    hold = to_continue and not is_large(*paths)
    found = None
    if home == places.directory and not repair:
        found = _read_newest(paths, writer, since, known) or _read_unchanged(paths, writer, hold=hold)
    if found is None:
        damage = DamageReport(REPAIR_PATIENCE_FACTOR if repair else OPEN_PATIENCE_FACTOR)
        found = rewrite_session(places, paths, writer, clock, damage=damage, hold=hold)
    if to_continue and not found.held:
        found = _read_end(places, writer, found, since)
    _sweep_temporaries(places, session_id)
    writer.adopt(found.numbers, found.loaded.calls_so_far, found.loaded.journal_good, found.partial)
    return _finish_interrupted(writer, found.loaded, clock) if to_continue else found.loaded


def is_large(*paths: Path) -> bool:
    """Return True if reading these files takes so long, or so much memory, that it should happen once."""
    return get_total_size(*paths) >= LARGE_BYTES


def get_total_size(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


def _read_end(places: SessionPlaces, writer: SessionWriter, read: RecoveredSession, since: int) -> RecoveredSession:
    """Read the end of a large session that was read completely just now; all of it if its end cannot be determined."""
    paths = places.get_document_path(writer.session_id), places.get_journal_path(writer.session_id)
    count, last = read.numbers
    known = KnownDocument(message_count=count, last_number=last, since=since or last, surely=True)
    found = _read_newest(paths, writer, since, known) or _read_unchanged(paths, writer, hold=True)
    if found is None:
        raise StorageError(f"{paths[0]} changed while it was read.", action="Another program is writing it; try again.")
    return found._replace(loaded=msgspec.structs.replace(found.loaded, damage=read.loaded.damage))


def _read_newest(
    paths: tuple[Path, Path], writer: SessionWriter, since: int, known: KnownDocument | None
) -> RecoveredSession | None:
    """Read the end of a session; None if that may not be all that is needed."""
    if not (known or is_marked(paths[1])):
        return None
    with _open_strictly(paths, writer, newest=True) as stream, contextlib.suppress(DamageFoundError):
        known = (stream and _read_known(stream.reader, paths, since)) or known
        if stream and known and stream.reader.skip_to(known.since):
            loaded = load_session(stream)
            if not loaded.read_only and _is_sound(loaded.session, known):
                finished = _list_finished(loaded)
                count = known.message_count + sum(message.id > known.last_number for message in finished)
                return RecoveredSession(loaded, (count, _find_last_number(finished)), stream.reader.partial)
    return None


def _read_unchanged(paths: tuple[Path, Path], writer: SessionWriter, *, hold: bool) -> RecoveredSession | None:
    """All of a session; None as soon as it is found that its files must be written again."""
    with _open_strictly(paths, writer) as stream:
        if stream is None:
            return None
        refuse_read_only(stream, paths[0])
        with contextlib.suppress(DamageFoundError):
            if hold:
                loaded = load_session(stream)
                finished = _list_finished(loaded)
                return RecoveredSession(loaded, (len(finished), _find_last_number(finished)), stream.reader.partial)
            count = last = 0
            for message, _, _ in read_messages(stream.reader):
                count, last = count + 1, max(last, message.id)
            for _ in read_calls(stream.reader):
                pass  # the first that is wrong ends it
            return RecoveredSession(
                make_loaded_session(stream, (), ()), (count, last), stream.reader.partial, held=False
            )
    return None


def _read_known(reader: SessionReader, paths: tuple[Path, Path], since: int) -> KnownDocument | None:
    """Read the last mark of a journal: of a large session only the end is needed, wherever somebody stopped."""
    mark = reader.mark
    if mark is None or not (since or is_large(*paths)):
        return None
    return KnownDocument(message_count=mark.count, last_number=mark.last, since=since or mark.last)


@contextlib.contextmanager
def _open_strictly(
    paths: tuple[Path, Path], writer: SessionWriter, *, newest: bool = False
) -> Iterator[SessionStream | None]:
    """A session that ends the reading at the first thing that is wrong; None when that is known at once."""
    try:
        reader = SessionReader(*paths, damage=StrictDamageReport(), newest=newest)
    except DamageFoundError:
        yield None
        return
    with contextlib.closing(reader):
        stream = SessionStream(reader, writer.session_id, alive=True, fallback=get_file_time(paths[0]))
        writer.head = make_current_head(reader.head, stream.session)
        yield None if reader.foreign else stream


def _list_finished(loaded: LoadedSession) -> tuple[Message, ...]:
    return loaded.session.messages[:-1] if loaded.unfinished else loaded.session.messages


def _find_last_number(messages: tuple[Message, ...]) -> int:
    return max((message.id for message in messages), default=0)


def _is_sound(session: Session, known: KnownDocument) -> bool:
    """Return True if every call that a message names was found, and the messages go as far as they must."""
    calls = {call.id for call in session.tool_calls}
    asked = {name for message in session.messages for name in message.call_ids}
    return (known.surely or asked <= calls) and _find_last_number(session.messages) >= known.last_number


def _sweep_temporaries(places: SessionPlaces, session_id: str) -> None:
    for path in places.directory.glob(f".{session_id}.*.tmp"):
        path.unlink(missing_ok=True)


def _finish_interrupted(writer: SessionWriter, loaded: LoadedSession, clock: Clock) -> LoadedSession:
    """Write down what the crash left open, and give the session with it."""
    session, at = loaded.session, format_stamp(clock())
    if loaded.unfinished:
        writer.record_message(at, session.messages[-1], 0)
    calls = [mark_interrupted(call) if call.status == "running" else call for call in session.tool_calls]
    changed = [call for call, before in zip(calls, session.tool_calls, strict=True) if call is not before]
    unrecorded = _make_unrecorded_calls(session, at)
    for call in (*changed, *unrecorded):
        writer.record_call(at, msgspec.to_builtins(call), 0)
    calls += unrecorded
    messages = list(session.messages)
    for message in _make_missing_results(session, writer.last_number, at):
        writer.record_message(at, message, 0)
        messages.append(message)
    whole = msgspec.structs.replace(session, messages=tuple(messages), tool_calls=tuple(calls))
    return msgspec.structs.replace(loaded, session=whole, unfinished=False)


def _find_open_calls(session: Session) -> tuple[Message | None, list[str]]:
    """The last message that asked for calls, and those of them that no tool message answers."""
    answered: set[str] = set()
    for message in reversed(session.messages):
        if message.role == "tool":
            answered.update(message.call_ids)
        elif message.role == "assistant" and message.call_ids:
            return message, [call_id for call_id in message.call_ids if call_id not in answered]
        else:
            break
    return None, []


def _make_unrecorded_calls(session: Session, at: str) -> list[ToolCallRecord]:
    """Calls that were asked for and never started: what they were is lost, that they were is not."""
    message, open_calls = _find_open_calls(session)
    if message is None:
        return []
    known = {call.id for call in session.tool_calls}
    asked = [call_id for call_id in open_calls if call_id not in known]
    return [
        mark_interrupted(ToolCallRecord(id=call_id, name="unknown", args={}, timestamp=at, message_id=message.id))
        for call_id in asked
    ]


def _make_missing_results(session: Session, last: int, at: str) -> list[Message]:
    _, open_calls = _find_open_calls(session)
    return [
        Message(role="tool", parts=(ToolResultPart(id=call_id),), timestamp=at, id=last + place)
        for place, call_id in enumerate(open_calls, start=1)
    ]

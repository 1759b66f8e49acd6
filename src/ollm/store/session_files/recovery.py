"""Opening a session for writing after a crash or damage: nothing readable is lost, the damaged file is kept
beside, an answer cut off is marked interrupted, and every call that was left without a result gets one."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ollm.domain.clock import Clock, stamp
from ollm.domain.errors import DamagedError
from ollm.domain.messages import JsonObject, Message, ToolResultPart
from ollm.domain.session import SCHEMA_VERSION, Session
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import journal, layout, lenient
from ollm.store.session_files.loading import (
    Loaded,
    SessionStream,
    calls_of,
    file_time,
    interrupted,
    load,
    messages_of,
    whole_head,
)
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.reader import SessionReader, number_of
from ollm.store.session_files.sections import CALL
from ollm.store.session_files.writer import SessionWriter
from ollm.system.atomic import replace_file

_MESSAGE = b'{"role":'  # how a message's line starts


class Known(Data, frozen=True):
    """What is known of a whole document that has not changed since: its messages, and the number of the last one.

    Only what follows number `since` is needed of it.
    """

    message_count: int
    last_number: int
    since: int


def mend(
    places: SessionPlaces, writer: SessionWriter, clock: Clock, *, to_continue: bool, known: Known | None = None
) -> Loaded:
    """Make the files whole and the writer ready; gives what the session holds afterwards.

    A document that is `known` to be whole is read from where it is needed on; any doubt, and all of it is read.
    """
    session_id = writer.session_id
    home = places.home_of(session_id) or places.directory
    paths = home / f"{session_id}.json", home / f"{session_id}.journal"
    loaded = _newest(paths, writer, known) if known and home == places.directory else None
    if loaded is None:
        loaded, known = _whole(places, paths, writer, clock), None
    _sweep_temporaries(places, session_id)
    finished = loaded.session.messages[:-1] if loaded.unfinished else loaded.session.messages
    count = len(finished)
    if known:
        count = known.message_count + sum(message.id > known.last_number for message in finished)
    size = places.document(session_id).stat().st_size
    partial = msgspec.to_builtins(loaded.session.messages[-1].parts) if loaded.unfinished else []
    numbers = count, max((message.id for message in finished), default=0)
    writer.adopt(numbers, size, loaded.journal_good, list(partial))
    return _finish(writer, loaded, clock) if to_continue else loaded


def _newest(paths: tuple[Path, Path], writer: SessionWriter, known: Known) -> Loaded | None:
    """The end of a session; None when it cannot be told that this is all that is needed."""
    with contextlib.closing(SessionReader(*paths)) as reader:
        if not reader.skip_to(known.since):
            return None
        loaded = load(SessionStream(reader, writer.session_id, alive=True, fallback=file_time(paths[0])))
        if loaded.damage or loaded.read_only or not _is_sound(loaded.session, known):
            return None
        writer.head = _current_head(reader.head, loaded.session)
    return loaded


def _is_sound(session: Session, known: Known) -> bool:
    """Whether every call that is spoken of was found, and the messages go as far as they must."""
    calls = {call.id for call in session.tool_calls}
    asked = {name for message in session.messages for name in message.call_ids}
    last = max((message.id for message in session.messages), default=0)
    return asked <= calls and last >= known.last_number


def _whole(places: SessionPlaces, paths: tuple[Path, Path], writer: SessionWriter, clock: Clock) -> Loaded:
    """All of a session, its files made whole."""
    home, session_id = paths[0].parent, writer.session_id
    with contextlib.closing(SessionReader(*paths)) as reader:
        loaded = load(SessionStream(reader, session_id, alive=True, fallback=file_time(paths[0])))
        refuse_read_only(loaded, paths[0])
        writer.head = _current_head(reader.head, loaded.session)
        if loaded.damage or reader.foreign or home != places.directory:
            keep_damaged(home, session_id, clock) if loaded.damage else None
            loaded = _rewrite(places, reader, writer, loaded)
            _remove_moved(home, places, session_id)
    return loaded


def refuse_read_only(loaded: Loaded, document: Path) -> None:
    if loaded.read_only:
        raise DamagedError(
            f"{document} can be viewed but not continued: {loaded.read_only}.",
            action="`ollm sessions export` saves what can be read; `ollm chat --new` starts a new session.",
        )


def keep_damaged(home: Path, session_id: str, clock: Clock) -> list[Path]:
    """Give the damaged files a second name, so that writing anew takes nothing away."""
    when = stamp(clock()).replace(":", "").replace(".", "-")
    kept = []
    for name in (f"{session_id}.json", f"{session_id}.journal"):
        if (home / name).is_file():
            copy = home / f"{name}.damaged-{when}"
            os.link(home / name, copy)
            kept.append(copy)
    return kept


def _current_head(head: JsonObject, session: Session) -> JsonObject:
    """The head as this version writes it."""
    metadata = {**msgspec.to_builtins(session.metadata), **head.get("metadata", {}), "schemaVersion": SCHEMA_VERSION}
    described = msgspec.structs.replace(session, messages=(), tool_calls=())
    return {**whole_head(head, described), "metadata": metadata}


def _rewrite(places: SessionPlaces, reader: SessionReader, writer: SessionWriter, loaded: Loaded) -> Loaded:
    """A clean document from everything that can be read; the journal is in it and starts anew."""
    reader.damage.allow(math.inf)  # all of it was read in time once: what is written must be as much
    unfinished = [loaded.session.messages[-1]] if loaded.unfinished else []
    ending = [journal.encode(message) for message in unfinished]
    messages = (piece for source in (_messages(reader), ending) for piece in source)
    replace_file(places.document(writer.session_id), layout.document(writer.head, messages, _calls(reader)))
    places.journal(writer.session_id).unlink(missing_ok=True)
    return msgspec.structs.replace(loaded, unfinished=False, journal_good=0)


def _messages(reader: SessionReader) -> Iterator[bytes]:
    for found, data in messages_of(reader):
        if data.startswith(_MESSAGE) and number_of(data) == found.id and b"\n" not in data:
            yield lenient.as_it_stands(data, found)
        else:
            yield journal.encode(lenient.parse_object(data) | msgspec.to_builtins(found))


def _calls(reader: SessionReader) -> Iterator[bytes]:
    for found, data in calls_of(reader):
        if data.startswith(CALL) and b'"status"' in data and b"\n" not in data:
            yield lenient.as_it_stands(data, found)
        else:
            known: JsonObject = msgspec.to_builtins(found)
            yield journal.encode({**known, **lenient.parse_object(data), **known})


def _remove_moved(home: Path, places: SessionPlaces, session_id: str) -> None:
    """The earlier version's files, once their content stands in our own directory."""
    if home != places.directory:
        for end in (".json", ".journal"):
            (home / f"{session_id}{end}").unlink(missing_ok=True)


def _sweep_temporaries(places: SessionPlaces, session_id: str) -> None:
    for path in places.directory.glob(f".{session_id}.*.tmp"):
        path.unlink(missing_ok=True)


def _finish(writer: SessionWriter, loaded: Loaded, clock: Clock) -> Loaded:
    """Write down what the crash left open, and give the session with it."""
    session, at = loaded.session, stamp(clock())
    if loaded.unfinished:
        writer.record_message(at, session.messages[-1], 0)
    calls = [interrupted(call) if call.status == "running" else call for call in session.tool_calls]
    calls += _unrecorded(session, at)
    for call in calls:
        if call not in session.tool_calls:
            writer.record_call(at, msgspec.to_builtins(call), 0)
    messages = list(session.messages)
    for message in _missing_results(session, writer.last_number, at):
        writer.record_message(at, message, 0)
        messages.append(message)
    whole = msgspec.structs.replace(session, messages=tuple(messages), tool_calls=tuple(calls))
    return msgspec.structs.replace(loaded, session=whole, unfinished=False)


def _open_calls(session: Session) -> tuple[Message | None, list[str]]:
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


def _unrecorded(session: Session, at: str) -> list[ToolCallRecord]:
    """Calls that were asked for and never started: what they were is lost, that they were is not."""
    message, open_calls = _open_calls(session)
    known = {call.id for call in session.tool_calls}
    asked = [call_id for call_id in open_calls if call_id not in known]
    return [
        interrupted(
            ToolCallRecord(id=call_id, name="unknown", args={}, timestamp=at, message_id=message.id if message else 0)
        )
        for call_id in asked
    ]


def _missing_results(session: Session, last: int, at: str) -> list[Message]:
    _, open_calls = _open_calls(session)
    return [
        Message(role="tool", parts=(ToolResultPart(id=call_id),), timestamp=at, id=last + place)
        for place, call_id in enumerate(open_calls, start=1)
    ]

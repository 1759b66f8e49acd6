"""Load a session as data, from whatever its files still contain."""

from __future__ import annotations

import msgspec

from ollm.domain.session import Session
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import journal
from ollm.store.session_files.reader import SessionReader


class LoadedSession(Data, frozen=True):
    """A session and the state of its files: `damage` in a sentence, `read_only` if it must not be written.

    Messages up to number `skipped` and their calls were not read.
    """

    session: Session
    damage: str | None
    read_only: str | None
    skipped: int
    partial: journal.Parts  # An answer that was never finished.
    calls_so_far: int  # At least the number of calls and the highest number in our ids.
    last_number: int = 0
    journal_good: int = 0


def load_session(reader: SessionReader, after: int = 0) -> LoadedSession:
    """Read everything readable, and keep what follows message `after`."""
    last, calls_so_far = (reader.known.last, reader.known.calls) if reader.known else (0, 0)
    messages = [message for message in reader.iter_messages() if message.id > after]
    calls: list[ToolCallRecord] = []
    for number, call in enumerate(reader.iter_calls(), start=1):
        calls_so_far = max(calls_so_far, number, journal.read_call_number(call.id))
        if call.message_id > after or not after:
            calls.append(call)
    return LoadedSession(
        session=msgspec.structs.replace(reader.session, messages=tuple(messages), tool_calls=tuple(calls)),
        damage=reader.damage,
        read_only=reader.read_only,
        skipped=max(reader.skipped, after),
        calls_so_far=calls_so_far,
        last_number=max(last, reader.missing.last_number),
        partial=reader.partial,
        journal_good=reader.journal_good,
    )

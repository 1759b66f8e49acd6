"""The way out for a session that went on here and elsewhere: what was said here becomes a session of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.clock import make_id
from ollm.domain.errors import BusyError, DamagedError
from ollm.domain.struct import Data
from ollm.services.archive_shipping.cleaning import RecordCleaner
from ollm.services.archive_shipping.outgoing import OutgoingSession
from ollm.services.archive_shipping.pulling import write_fork
from ollm.store.session_index.stamps import read_stamp
from ollm.store.team_archive import reading
from ollm.store.team_archive.state import SentState

if TYPE_CHECKING:
    from psycopg import Connection

    from ollm.app.team_archive import TeamArchiveScope

_BEHIND = -1  # no sequence number: whatever the archive holds is newer


class SentFork(Data, frozen=True):
    """What was said here is now in `session_id`; `behind` says why its `source` could not follow the archive yet."""

    session_id: str
    source: str
    owner: str
    host: str
    behind: str = ""


def push_fork(archive: TeamArchiveScope, connection: Connection, session_id: str) -> SentFork:
    """Send what this machine has of an archived session as a new one, and bring the session to where the archive is.
    Raises BusyError while it is open here."""
    files = archive.process.session_files
    if files.is_open(session_id):
        raise BusyError(f"Session {session_id} is open.", action="Close it and try again.")
    found = reading.find_session(connection, session_id)
    stamp = read_stamp(archive.process.session_directories, session_id)
    name = make_id()
    with files.open_stream(session_id) as stream:
        if stream.damage:
            raise DamagedError(
                f"Session {session_id} is damaged: {stream.damage}.",
                action="Repair it first with `ollm sessions check --repair`.",
            )
        whole = OutgoingSession(stream, RecordCleaner(None, lambda _path: False), files.places.directory)
        source = {"sessionId": found.session_id, "owner": found.owner, "host": found.host, "seq": found.last_seq}
        write_fork(files, name, whole.iter_records(), source)
    archive.push_session(connection, name)
    theirs = found.owner if found.owner != reading.read_viewer(connection) else ""
    archive.state.set_sent(session_id, SentState(stamp.text if stamp else "", archive.target_key, _BEHIND, theirs))
    behind = ""
    try:
        archive.pull(connection, session_id)
    except BusyError as error:  # it goes on elsewhere just now, or was opened here meanwhile
        behind = error.message
    return SentFork(session_id=name, source=session_id, owner=found.owner, host=found.host, behind=behind)

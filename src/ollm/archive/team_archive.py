"""The team archive: settings, this machine's state, the connection, and the operations on them."""

from __future__ import annotations

import contextlib
import hashlib
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.archive import reading
from ollm.archive.connection import (
    ArchiveAwayError,
    ArchiveTarget,
    migrate_schema,
    open_connection,
    read_schema_version,
    translate_faults,
)
from ollm.archive.host import ArchiveHost
from ollm.archive.outgoing import OutgoingSession, RecordCleaner, ship_session
from ollm.archive.pulling import write_fork, write_pulled
from ollm.archive.reading import refuse_held_lease, take_lease
from ollm.archive.sending import ArchivedSession, Machine, SessionForgottenError, SessionSender, make_diverged_error
from ollm.archive.state import FORGOTTEN, ArchiveState, SentState
from ollm.domain.clock import make_id
from ollm.domain.errors import BusyError, DamagedError, DeniedError, OllmError, UsageError
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.store.session_index.stamps import Stamp, read_stamp, read_stamps

if TYPE_CHECKING:
    from psycopg import Connection

    from ollm.config.settings import ArchiveSettings


Progress = Callable[[int, int], None]


class PulledSession(Data, frozen=True):
    """A session pulled from the archive's `source`. `unchanged` is True if it was already here."""

    session_id: str
    source: str
    damaged: str | None = None
    unchanged: bool = False


class PushReport(Data, frozen=True):
    """Outcome of a push. `skipped` gives the reason for each session that was not sent."""

    sessions: int = 0
    records: int = 0
    unchanged: int = 0
    deleted: int = 0
    skipped: dict[str, str] = msgspec.field(default_factory=dict)


class TeamArchive:
    """The archive of one run of the program. Raises UsageError if none is configured."""

    def __init__(self, host: ArchiveHost) -> None:
        self.host = host
        self.settings: ArchiveSettings = host.settings.archive
        self.target = ArchiveTarget(url=find_url(host), owner=self.settings.owner)

    @cached_property
    def state(self) -> ArchiveState:
        return ArchiveState(self.host.home.archive_state, self.host.clock)

    @cached_property
    def machine(self) -> Machine:
        return Machine(id=self.state.get_machine_id(), host=socket.gethostname())

    @cached_property
    def target_key(self) -> str:
        """Identify the target and the redaction; a change of either resends everything."""
        text = f"{self.target.place}|{self.target.owner}|{self.settings.redact}"
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @contextlib.contextmanager
    def connect(self, timeout: float = 5) -> Iterator[Connection]:
        """Connect, and set up a new or older archive if this role may. Later faults are explained in a sentence too."""
        with self._open_connection(timeout) as connection:
            migrate_schema(connection)
            yield connection

    @contextlib.contextmanager
    def _open_connection(self, timeout: float = 5) -> Iterator[Connection]:
        opened = open_connection(self.target, timeout=timeout)
        with translate_faults(), contextlib.closing(opened) as connection:
            yield connection

    def list_candidates(self) -> dict[str, Stamp]:
        """List the sessions of this machine to send, by their files."""
        stamps, _ = read_stamps(self.host.sessions_directory)
        wanted = self.settings.workspaces
        if not wanted:
            return stamps
        rows = self.host.session_index.list_sessions()
        places = {row["sessionId"]: row["workspace"] for row in rows}
        return {name: stamp for name, stamp in stamps.items() if self.is_wanted(places.get(name))}

    def is_wanted(self, workspace: str | None) -> bool:
        globs = self.settings.workspaces
        return not globs or (workspace is not None and any(self._matches(workspace, glob) for glob in globs))

    def _matches(self, workspace: str, glob: str) -> bool:
        pattern = str(self.host.resolve_user_path(glob)).rstrip("/")
        return fnmatchcase(workspace, pattern) or fnmatchcase(workspace, f"{pattern}/*")

    def list_unsent(self) -> dict[str, Stamp]:
        sent = {
            name: known.stamp
            for name, known in self.state.list_sent().items()
            if known.owner or known.target == self.target_key
        }
        candidates = self.list_candidates().items()
        return {name: stamp for name, stamp in candidates if sent.get(name) not in (FORGOTTEN, stamp.text)}

    def push(
        self, connection: Connection, ids: Sequence[str] | None = None, progress: Progress | None = None
    ) -> PushReport:
        """Send everything not yet archived. After ArchiveAwayError the rest waits for the next push."""
        deleted = self.send_deletions(connection)
        unsent = self.list_unsent()
        names = sorted(unsent, key=lambda name: unsent[name].newest_time) if ids is None else ids
        counts: dict[str, int] = {}
        skipped: dict[str, str] = {}
        for place, name in enumerate(dict.fromkeys(names)):
            if progress:
                progress(place, len(names))
            try:
                counts[name] = self.push_session(connection, name)
            except ArchiveAwayError:
                raise
            except OllmError as error:
                skipped[name] = str(error)
                if isinstance(error, SessionForgottenError):  # Reported once; this machine keeps its copy.
                    self.mark_forgotten(name)
        if progress and names:
            progress(len(names), len(names))
        sent = [count for count in counts.values() if count]
        unchanged = len(counts) - len(sent)
        return PushReport(sessions=len(sent), records=sum(sent), unchanged=unchanged, deleted=deleted, skipped=skipped)

    def push_session(self, connection: Connection, session_id: str) -> int:
        """Send one session; returns the number of records sent."""
        stamp, known = self.read_stamp(session_id), self.state.get_sent(session_id)
        sender = SessionSender(connection, session_id, self.machine, known.seq if known else 0)
        with translate_faults():
            count = ship_session(lambda: self._open_outgoing(session_id), sender, known=known is not None)
        self.state.set_sent(session_id, SentState(stamp, self.target_key, sender.seq, ""))
        return count

    @contextlib.contextmanager
    def _open_outgoing(self, session_id: str) -> Iterator[OutgoingSession]:
        files = self.host.session_files
        with files.open_reader(session_id) as reader:
            redact = self.host.redact_field if self.settings.redact else None
            cleaner = RecordCleaner(redact, self.host.make_path_filter(reader.session.metadata.workspace))
            yield OutgoingSession(reader, cleaner, files.places.directory)

    def describe_push(self, ids: Sequence[str] | None = None) -> str:
        unsent = self.list_unsent()
        chosen = {name: unsent[name] for name in (ids if ids is not None else unsent) if name in unsent}
        size = sum(stamp.size for stamp in chosen.values()) / 1e6
        where = ", ".join(self.settings.workspaces) or "all workspaces"
        secrets = "secrets redacted" if self.settings.redact else "secrets NOT redacted"
        return (
            f"{format_count(len(chosen), 'session')} ({size:,.1f} MB) of {where} for the archive at {self.target.place}"
            f": every message, tool call and result, {secrets}, without results about files that .ollmignore hides."
            " Snapshots, undo copies and your files stay here."
        )

    @property
    def is_announced(self) -> bool:
        return bool(self.state.get_fact(f"announced-{self.target_key}"))

    def announce(self, ids: Sequence[str] | None = None) -> str:
        """Describe the first push to this target, or return "" if it was announced before or nothing is unsent."""
        if self.is_announced or not (ids or self.list_unsent()):
            return ""
        self.state.set_fact(f"announced-{self.target_key}", "yes")
        return f"first push: {self.describe_push(ids)}"

    def pull(self, connection: Connection, prefix: str, *, fork: bool = False) -> PulledSession:
        """Make a local session from an archived one. Raises BusyError if another machine uses it, or this one has
        messages that the archive lacks."""
        found = reading.find_session(connection, prefix)
        if fork:
            return self._pull_fork(connection, found)
        refuse_held_lease(connection, found.session_id, self.machine)
        pulled = PulledSession(session_id=found.session_id, source=found.session_id, damaged=found.damaged)
        if self.host.session_files.places.has(found.session_id) and self._has_all(found):
            return msgspec.structs.replace(pulled, unchanged=True)
        with reading.open_records(connection, found.session_id) as records:
            write_pulled(self.host.session_files, found.session_id, records)
        self.note_copy(connection, found, self.read_stamp(found.session_id), found.last_seq)
        return pulled

    def note_copy(self, connection: Connection, found: ArchivedSession, stamp: str, seq: int) -> None:
        """Note that files with this stamp are a copy of an archived session, as it was at a sequence number."""
        theirs = found.owner if found.owner != reading.read_viewer(connection) else ""
        self.state.set_sent(found.session_id, SentState(stamp, self.target_key, seq, theirs))

    def read_stamp(self, session_id: str) -> str:
        """Read the stamp of a session's files, or return "" without files."""
        found = read_stamp(self.host.sessions_directory, session_id)
        return found.text if found else ""

    def _has_all(self, found: ArchivedSession) -> bool:
        sent = self.state.get_sent(found.session_id)
        if sent and sent.seq >= found.last_seq:
            return True
        if sent is None or sent.stamp != self.read_stamp(found.session_id):
            raise make_diverged_error(found.session_id, found.host)
        return False

    def _pull_fork(self, connection: Connection, found: ArchivedSession) -> PulledSession:
        name = make_id()
        with reading.open_records(connection, found.session_id) as records:
            write_fork(self.host.session_files, name, records, found)
        return PulledSession(session_id=name, source=found.session_id, damaged=found.damaged)

    def require_free(self, connection: Connection, session_id: str, *, take: bool, force: bool = False) -> None:
        """Raise BusyError if another machine continues the session, or has continued it since it was last here."""
        known = self.state.get_sent(session_id)
        if known is None or known.owner or known.stamp == FORGOTTEN:
            return
        row = connection.execute(
            "SELECT last_seq, host FROM ollm.sessions WHERE session_id = %s AND writer <> %s",
            (session_id, self.machine.id),
        ).fetchone()
        if row and row[0] > known.seq and not force:
            if self.read_stamp(session_id) not in ("", known.stamp):
                raise make_diverged_error(session_id, row[1])
            raise BusyError(
                f"Session {session_id} was continued on {row[1]}.",
                action=f"Get it with `ollm archive pull {session_id}`, or continue anyway with --force.",
            )
        if take:
            take_lease(connection, session_id, self.machine, force=force)
        else:
            refuse_held_lease(connection, session_id, self.machine)

    def find_own(self, connection: Connection, prefix: str) -> ArchivedSession:
        found = reading.find_session(connection, prefix)
        if found.owner != reading.read_viewer(connection):
            raise DeniedError(
                f"Session {found.session_id} belongs to {found.owner}.", action="Only its owner deletes it."
            )
        return found

    def forget(self, connection: Connection, session_id: str) -> None:
        """Delete a session from the archive; it is not sent again."""
        for name in reading.forget_session(connection, session_id):
            self.mark_forgotten(name)

    def mark_forgotten(self, session_id: str) -> None:
        self.state.set_sent(session_id, SentState(FORGOTTEN, self.target_key, 0, ""))

    def describe(self) -> dict[str, Any]:
        """Describe the state of the archive for `archive status`. An unreachable server is reported, not raised."""
        unsent = self.list_unsent()
        found: dict[str, Any] = {
            "configured": True,
            "place": self.target.place,
            "settings": {name: getattr(self.settings, name) for name in ("push", "workspaces", "redact", "deletes")},
            "unsentSessions": len(unsent),
            "unsentBytes": sum(stamp.size for stamp in unsent.values()),
            "deletionsWaiting": len(self.state.list_tombstones()),
            "lastError": self.state.get_fact("last-error"),
        }
        try:
            with self._open_connection() as connection:
                found |= self._describe_server(connection)
        except OllmError as error:
            found |= {"reachable": False, "error": str(error)}
        return found

    def _describe_server(self, connection: Connection) -> dict[str, Any]:
        version = read_schema_version(connection)
        user = connection.execute("SELECT current_user").fetchone()
        everything, own = reading.count_sessions(connection) if version >= 2 else (0, 0)
        return {
            "reachable": True,
            "schema": version,
            "owner": user[0] if user else "",
            "sessions": everything,
            "ownSessions": own,
        }

    def send_deletions(self, connection: Connection) -> int:
        """Delete from the archive what was deleted here; return the number of sessions deleted."""
        names = self.state.list_tombstones()
        gone = 0
        for name in names:
            gone += bool(reading.forget_session(connection, name))
            self.state.confirm_deletion(name)
        return gone

    def close(self) -> None:
        if "state" in self.__dict__:
            self.state.close()


def find_url(host: ArchiveHost) -> str:
    """Read the archive's URL from the settings. Raises UsageError if there is none."""
    settings = host.settings.archive
    url = host.environment.get(settings.url_env, "") if settings.url_env else settings.url
    scheme = (url or "").partition("://")[0]
    if url and scheme not in ("postgresql", "postgres") and "=" not in scheme:
        raise UsageError(
            "The archive's address is not that of a PostgreSQL database.",
            action="Set it as postgresql://USER@HOST/DATABASE.",
        )
    if url:
        return url
    if settings.url_env:
        raise UsageError(
            f"The variable {settings.url_env} that archive.urlEnv names is not set.", action="Set it, or archive.url."
        )
    raise UsageError(
        "No archive is set; nothing is sent anywhere.",
        action="Set one with `ollm config set archive.url postgresql://USER@HOST/DATABASE`.",
    )


_BEHIND = -1  # Any record in the archive is newer than this number.


class SentFork(Data, frozen=True):
    """Result of a fork. `session_id` is the fork; `behind` says why its `source` could not be updated yet."""

    session_id: str
    source: str
    owner: str
    host: str
    behind: str = ""


def push_fork(archive: TeamArchive, connection: Connection, session_id: str) -> SentFork:
    """Send this machine's version of an archived session as a new one, and update the session from the archive.
    Raises BusyError while it is open here."""
    files = archive.host.session_files
    if files.is_open(session_id):
        raise BusyError(f"Session {session_id} is open.", action="Close it and try again.")
    found = reading.find_session(connection, session_id)
    stamp, name = archive.read_stamp(session_id), make_id()
    with files.open_reader(session_id) as reader:
        deque(chain(reader.iter_messages(), reader.iter_calls()), maxlen=0)  # Some damage is found in entries alone.
        if reader.damage:
            raise DamagedError(
                f"Session {session_id} is damaged: {reader.damage}.",
                action="Repair it first with `ollm sessions check --repair`.",
            )
        whole = OutgoingSession(reader, RecordCleaner(None, lambda _path: False), files.places.directory)
        write_fork(files, name, whole.iter_records(), found)
    archive.push_session(connection, name)
    archive.note_copy(connection, found, stamp, _BEHIND)
    behind = ""
    try:
        archive.pull(connection, session_id)
    except BusyError as error:  # The session may be open elsewhere or here.
        behind = error.message
    return SentFork(session_id=name, source=session_id, owner=found.owner, host=found.host, behind=behind)

"""The lease of a session: which machine goes on with it now. It lasts as long as its holder's heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.clock import format_age, format_stamp
from ollm.domain.errors import BusyError
from ollm.store.team_archive.connection import translate_faults

if TYPE_CHECKING:
    from datetime import datetime

    from psycopg import Connection

    from ollm.store.team_archive.sending import Machine

LEASE_SECONDS = 60
HEARTBEAT_SECONDS = 15


def take_lease(connection: Connection, session_id: str, machine: Machine, *, force: bool = False) -> None:
    """Take or renew the lease, by the server's clock. Raises BusyError while another machine holds it."""
    query = (
        "INSERT INTO ollm.leases AS l (session_id, holder, host) VALUES (%s, %s, %s)"
        " ON CONFLICT (session_id) DO UPDATE SET holder = EXCLUDED.holder, host = EXCLUDED.host, seen = now(),"
        " since = CASE WHEN l.holder = EXCLUDED.holder THEN l.since ELSE now() END"
        " WHERE l.holder = EXCLUDED.holder OR %s OR l.seen < now() - %s * interval '1 second'"
    )
    with translate_faults():
        done = connection.execute(query, (session_id, machine.id, machine.host, force, LEASE_SECONDS)).rowcount
        if not done:
            refuse_held_lease(connection, session_id, machine)


def refuse_held_lease(connection: Connection, session_id: str, machine: Machine) -> None:
    """Raise BusyError when another machine goes on with the session now."""
    query = (
        "SELECT host, since FROM ollm.leases"
        " WHERE session_id = %s AND holder <> %s AND seen > now() - %s * interval '1 second'"
    )
    with translate_faults():
        row = connection.execute(query, (session_id, machine.id, LEASE_SECONDS)).fetchone()
    if row:
        raise make_held_error(session_id, *row)


def make_held_error(session_id: str, host: str, since: datetime) -> BusyError:
    return BusyError(
        f"Session {session_id} is in use on {host}, opened {format_age(format_stamp(since))}.",
        action=f"Close it there, or make a copy with `ollm archive pull {session_id} --fork`.",
    )


def release_lease(connection: Connection, session_id: str, machine: Machine) -> None:
    """Let go of the lease, if it is this machine's."""
    with translate_faults():
        connection.execute("DELETE FROM ollm.leases WHERE session_id = %s AND holder = %s", (session_id, machine.id))

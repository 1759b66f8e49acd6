"""The lease: one machine at a time, for as long as it is heard of."""

import contextlib
from collections.abc import Iterator

import psycopg
import pytest

from ollm.domain.errors import BusyError
from ollm.store.team_archive.connection import ArchiveTarget, open_connection
from ollm.store.team_archive.leases import (
    HEARTBEAT_SECONDS,
    LEASE_SECONDS,
    refuse_held_lease,
    release_lease,
    take_lease,
)
from ollm.store.team_archive.sending import Machine

SESSION = "00000000-0000-4000-8000-000000000001"
LAPTOP, DESKTOP = Machine(id="1", host="laptop"), Machine(id="2", host="desktop")


@pytest.fixture
def connection(archive_url: str) -> Iterator[psycopg.Connection]:
    with contextlib.closing(open_connection(ArchiveTarget(url=archive_url))) as opened:
        opened.execute(
            "INSERT INTO ollm.sessions (session_id, owner, writer, host) VALUES (%s, ollm.viewer(), '1', 'laptop')",
            (SESSION,),
        )
        yield opened


def test_one_machine_holds_it_and_the_other_is_told_which(connection: psycopg.Connection) -> None:
    take_lease(connection, SESSION, LAPTOP)
    take_lease(connection, SESSION, LAPTOP)

    with pytest.raises(BusyError, match="in use on laptop"):
        take_lease(connection, SESSION, DESKTOP)
    with pytest.raises(BusyError, match="--fork"):
        refuse_held_lease(connection, SESSION, DESKTOP)
    refuse_held_lease(connection, SESSION, LAPTOP)


def test_it_ends_with_the_heartbeat_or_when_it_is_released(connection: psycopg.Connection) -> None:
    take_lease(connection, SESSION, LAPTOP)
    connection.execute("UPDATE ollm.leases SET seen = now() - %s * interval '1 second'", (LEASE_SECONDS + 1,))
    take_lease(connection, SESSION, DESKTOP)

    release_lease(connection, SESSION, LAPTOP)
    with pytest.raises(BusyError):
        take_lease(connection, SESSION, LAPTOP)
    release_lease(connection, SESSION, DESKTOP)
    take_lease(connection, SESSION, LAPTOP)
    take_lease(connection, SESSION, DESKTOP, force=True)


def test_it_lasts_a_minute_and_says_since_when(connection: psycopg.Connection) -> None:
    take_lease(connection, SESSION, LAPTOP)
    for seconds, free in ((59, False), (60.2, True)):
        connection.execute("UPDATE ollm.leases SET seen = now() - %s * interval '1 second'", (seconds,))
        with contextlib.nullcontext() if free else pytest.raises(BusyError):
            refuse_held_lease(connection, SESSION, DESKTOP)
    shown = "SELECT holder, host, since < now() - interval '1 hour' FROM ollm.leases"
    connection.execute("UPDATE ollm.leases SET since = now() - interval '2 hours'")
    take_lease(connection, SESSION, LAPTOP)
    assert connection.execute(shown).fetchall() == [("1", "laptop", True)], "renewed, it is as old as before"
    with pytest.raises(BusyError, match="in use on laptop, opened 2 h ago"):
        take_lease(connection, SESSION, DESKTOP)
    connection.execute("UPDATE ollm.leases SET seen = now() - interval '60.2 seconds'")
    take_lease(connection, SESSION, DESKTOP)
    assert connection.execute(shown).fetchall() == [("2", "desktop", False)]
    assert HEARTBEAT_SECONDS == 15, "three of them may be lost"

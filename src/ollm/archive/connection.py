"""Connections to the archive: timeouts, the role to act as, schema migrations, and errors as one sentence each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.errors import OllmError, StorageError, UsageError
from ollm.domain.struct import Data
from ollm.system.install_command import describe_extra_install

if TYPE_CHECKING:
    from psycopg import Connection

STEPS = re.split(r"(?m)^-- step \d+.*\n", Path(__file__).with_name("schema.sql").read_text("utf-8"))[1:]
CONNECT_TIMEOUT_SECONDS = 5
STATEMENT_TIMEOUT_SECONDS = 60
_LOCK_TIMEOUT_SECONDS = 20
_KEEPALIVE: dict[str, Any] = {  # A vanished peer is noticed in half a minute, even during a write.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class ArchiveAwayError(OllmError):
    """Unreachable archive server or lost connection; unconfirmed records are sent again later."""


class ArchiveTarget(Data, frozen=True):
    """Address of the archive. `owner` is the role to act as, if it differs from the login role."""

    url: str
    owner: str | None = None

    @property
    def place(self) -> str:
        """Host and database for display, without user, password or options."""
        scheme, _, rest = self.url.partition("://")
        if rest and scheme in ("postgresql", "postgres"):
            return rest.rpartition("@")[2].partition("?")[0].rstrip("/") or "localhost"  # A password may contain a `?`.
        words = dict(word.split("=", 1) for word in self.url.split() if "=" in word)
        port = f":{words['port']}" if "port" in words else ""
        return f"{words.get('host', 'localhost')}{port}/{words.get('dbname', '')}"


def open_connection(target: ArchiveTarget, *, timeout: float = CONNECT_TIMEOUT_SECONDS) -> Connection:
    """Open a connection in autocommit mode; a transaction is `with connection.transaction()`."""
    psycopg = import_psycopg()
    with translate_faults(target):
        connection: Connection = psycopg.connect(
            target.url,
            autocommit=True,
            connect_timeout=max(2, round(timeout)),
            application_name="ollm",
            client_encoding="UTF8",
            **_KEEPALIVE,
        )
        try:
            prepare_connection(connection, target)
        except BaseException:
            connection.close()
            raise
    return connection


def prepare_connection(connection: Connection, target: ArchiveTarget) -> None:
    from psycopg import sql

    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise UsageError(
            f"The archive's database has the encoding {encoding}.", action="Create one with the encoding UTF8."
        )
    for name, seconds in (("statement_timeout", STATEMENT_TIMEOUT_SECONDS), ("lock_timeout", _LOCK_TIMEOUT_SECONDS)):
        connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(f"{seconds}s")))
    connection.execute("SET search_path = pg_catalog")
    if target.owner:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(target.owner)))


def import_psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        command = describe_extra_install("postgres")
        raise UsageError(
            "The archive needs psycopg, which is not installed.", action=f"Install it: {command}"
        ) from error
    return psycopg


@contextlib.contextmanager
def translate_faults(target: ArchiveTarget | None = None) -> Iterator[None]:
    """Translate server, network and settings errors into one sentence each, without passwords."""
    psycopg = import_psycopg()
    errors = psycopg.errors
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise StorageError(
            f"The archive refused: {_get_first_line(error)}.",
            action="Ask who runs the archive to add you: `ollm archive setup --person NAME`.",
        ) from error
    except (errors.QueryCanceled, errors.LockNotAvailable) as error:
        raise ArchiveAwayError(
            f"The archive took too long: {_get_first_line(error)}.", action="Try again later."
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        where = f" at {target.place}" if target else ""
        raise ArchiveAwayError(
            f"Cannot reach the archive{where}: {_get_first_line(error)}.",
            action="Check the server, the network and `archive.url`; nothing is lost, unsent records are sent later.",
        ) from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:  # Without a code the error is about the URL and quotes it.
            raise UsageError(
                "`archive.url` is not an address of a PostgreSQL server.",
                action="Write postgresql://USER@HOST/DATABASE, with special characters of the password as %XX.",
            ) from None
        raise StorageError(f"The archive cannot be used: {_get_first_line(error)}.", action=_SETUP_HINT) from error
    except psycopg.Error as error:
        raise StorageError(f"The archive failed: {_get_first_line(error)}.") from error


_SETUP_HINT = "Check `archive.url`, and run `ollm archive setup` as the role that owns the database."


def _get_first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")


_LOCK_KEY = 0x6F6C6C6D  # With this lock one machine at a time changes the schema.


def read_schema_version(connection: Connection) -> int:
    """Read the schema version, or return 0 if there is no schema."""
    found = connection.execute("SELECT to_regclass('ollm.schema_version') IS NOT NULL").fetchone()
    if not found or not found[0]:
        return 0
    [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM ollm.schema_version").fetchall()
    return int(version)


def migrate_schema(connection: Connection, upto: int | None = None) -> int:
    """Run the missing migrations and return the previous version. Raises StorageError if the schema is newer than
    this ollm, or if this role may not change it."""
    wanted = len(STEPS) if upto is None else upto
    before = read_schema_version(connection)
    _refuse_newer(before)
    for _ in range(before, wanted):
        with _explain_refusal(before, wanted), connection.transaction():
            _run_next_step(connection, wanted)
    return before


@contextlib.contextmanager
def _explain_refusal(before: int, wanted: int) -> Iterator[None]:
    """Explain a refused change of tables, and name who can make it."""
    from psycopg.errors import InsufficientPrivilege

    try:
        yield
    except InsufficientPrivilege as error:
        if not before:
            raise
        raise StorageError(
            f"The archive's tables are of an older ollm (schema {before}; this version needs {wanted}).",
            action="Ask who runs the archive to run `ollm archive setup` with this version.",
        ) from error


def _run_next_step(connection: Connection, wanted: int) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
    connection.execute("CREATE SCHEMA IF NOT EXISTS ollm")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS ollm.schema_version (version integer PRIMARY KEY, at timestamptz DEFAULT now())"
    )
    version = read_schema_version(connection)  # Another machine may have been quicker.
    _refuse_newer(version)
    if version < wanted:
        connection.execute("SET LOCAL statement_timeout = 0")  # A large archive takes long, but only once.
        connection.execute(STEPS[version].encode())
        connection.execute("INSERT INTO ollm.schema_version (version) VALUES (%s)", (version + 1,))


def _refuse_newer(version: int) -> None:
    if version > len(STEPS):
        raise StorageError(
            f"The archive was set up by a newer ollm (schema {version}; this version reads {len(STEPS)}).",
            action="Upgrade ollm on this machine.",
        )

"""The team archive: sessions of a megabyte pushed, and a search over a million messages beside the local index.

A PostgreSQL server of its own is started on loopback. `SESSIONS` and `MESSAGES` choose smaller or larger counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

from tests.servers.postgres import PostgresServer, find_binaries

from bench.row import Row, seconds
from ollm.archive.connection import ArchiveTarget, migrate_schema, open_connection
from ollm.archive.reading import search_messages
from ollm.archive.words import split_words
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.search import NO_FILTERS, search_sessions

SESSIONS = int(os.environ.get("SESSIONS", "1000"))
MESSAGES = int(os.environ.get("MESSAGES", "1000000"))
MESSAGES_PER_SESSION = 1000
WORDS_PER_MESSAGE = 1480  # a hundred messages of them are a megabyte
AT = "2026-01-27T10:00:00.000Z"
QUERIES = {"a rare word": "word19997", "a common word": "word3", "two words": "word40 word90", "no hit": "nowhere"}


def rows() -> Iterable[Row]:
    binaries = find_binaries()
    if binaries is None:
        return
    server = PostgresServer(binaries)
    try:
        with tempfile.TemporaryDirectory() as place:
            yield from push_rows(server, Path(place))
        with tempfile.TemporaryDirectory() as place:
            yield from search_rows(server, Path(place))
    finally:
        server.stop()


def push_rows(server: PostgresServer, home: Path) -> Iterator[Row]:
    """Seconds for all sessions, beside the same bytes copied into a plain table."""
    ids = [str(uuid4()) for _ in range(SESSIONS)]
    for session_id in ids:
        write_session(home / "sessions", session_id, 100, WORDS_PER_MESSAGE)
    size = sum(path.stat().st_size for path in (home / "sessions").iterdir())
    plain = copy_plainly(server, home)
    for redact in (False, True):
        taken, peak = push(server, home, redact=redact)
        how = "redacted" if redact else "as they are"
        note = f"{SESSIONS / taken:.0f} sessions a second, {size / taken / 1e6:.0f} MB a second"
        yield Row(f"push {SESSIONS} sessions of 1 MB, {how}", taken, plain, unit="s", note=note)
        yield Row(f"memory of that push, {how}", peak, None, 150, "MB", of="figure")


def push(server: PostgresServer, home: Path, *, redact: bool) -> tuple[float, float]:
    (home / "archive.db").unlink(missing_ok=True)
    settings = {"archive": {"url": server.create_database(), "redact": redact}}
    (home / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    code = (
        "from ollm.cli.entry import main; main(['archive', 'push']);"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    environment = {**os.environ, "OLLM_HOME": str(home)}
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return time.perf_counter() - begun, int(done.stdout.split()[-1]) / 1024


def copy_plainly(server: PostgresServer, home: Path) -> float:
    import psycopg

    with psycopg.connect(server.create_database(), autocommit=True) as connection:
        connection.execute("CREATE TABLE lines (session uuid, line bytea)")
        begun = time.perf_counter()
        for path in (home / "sessions").iterdir():
            with connection.transaction(), connection.cursor().copy("COPY lines FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["uuid", "bytea"])
                for line in path.read_bytes().split(b"\n"):
                    copy.write_row((UUID(path.stem), line))
        return time.perf_counter() - begun


def write_session(directory: Path, session_id: str, messages: int, words: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    head = {
        "sessionId": session_id, "startTime": AT, "lastActivity": AT, "model": "m", "provider": "p",
        "metadata": {"schemaVersion": 1, "title": f"Session {session_id[:8]}"},
    }  # fmt: skip
    lines = [
        json.dumps(
            {"role": "user", "id": n, "timestamp": AT, "parts": [{"type": "text", "text": make_text(words)}]},
            separators=(",", ":"),
        )
        for n in range(1, messages + 1)
    ]
    body = ',"messages":[\n' + ",\n".join(lines) + '\n],"toolCalls":[\n]}\n'
    path = directory / f"{session_id}.json"
    path.write_text(json.dumps(head, separators=(",", ":"))[:-1] + body, encoding="utf-8")


CHANCE = random.Random(7)
POOL = [f"word{int(CHANCE.paretovariate(0.4)) % 20_000}" for _ in range(200_000)]


def make_text(words: int) -> str:
    begin = CHANCE.randrange(len(POOL) - words)
    return " ".join(POOL[begin : begin + words])


def search_rows(server: PostgresServer, home: Path) -> Iterator[Row]:
    """Milliseconds of a search as a person of a team of two, beside the index of this machine over the same texts."""
    for _ in range(MESSAGES // MESSAGES_PER_SESSION):
        write_session(home / "sessions", str(uuid4()), MESSAGES_PER_SESSION, 12)
    index = SessionIndex(home / "index.db", home / "sessions")
    while search_sessions(index, "nowhere", NO_FILTERS, 20) and index.behind:
        pass
    url = fill_archive(server, home)
    with contextlib.closing(open_connection(ArchiveTarget(url=url))) as connection:
        for name, wanted in {**QUERIES, "part of a word": "ord1999"}.items():
            ours = seconds(lambda: search_messages(connection, wanted, limit=20), 5) * 1000  # noqa: B023
            local = seconds(lambda: search_sessions(index, wanted, NO_FILTERS, 20), 5) * 1000  # noqa: B023
            yield Row(f"search {MESSAGES:,} messages: {name}", ours, local, None, "ms")


def fill_archive(server: PostgresServer, home: Path) -> str:
    """The texts of all session files, half of them somebody else's who is in the team; for a person of that team."""
    for name in ("searcher", "colleague"):
        server.create_role(name)
    url = server.create_database()
    with contextlib.closing(open_connection(ArchiveTarget(url=url))) as connection:
        migrate_schema(connection)
        for name in ("searcher", "colleague"):
            connection.execute("SELECT ollm.add_person(%s, 'team')", (name,))
        connection.execute("SET statement_timeout = 0")
        with connection.transaction():
            for number, path in enumerate((home / "sessions").iterdir()):
                owner = ("searcher", "colleague")[number % 2]
                query = "INSERT INTO ollm.sessions (session_id, owner, writer, host) VALUES (%s, %s, 'm', 'h')"
                connection.execute(query, (path.stem, owner))
                into = "COPY ollm.messages (session_id, number, role, at, text, words) FROM STDIN"
                with connection.cursor().copy(into) as copy:
                    for message in json.loads(path.read_bytes())["messages"]:
                        at = f"{AT[:11]}{number % 24:02}:{message['id'] % 60:02}:00Z"
                        text = message["parts"][0]["text"]
                        copy.write_row((path.stem, message["id"], "user", at, text, " ".join(split_words(text))))
        connection.execute("VACUUM ANALYZE ollm.messages")
        connection.execute("ANALYZE ollm.sessions")
    return url.replace("postgres@", "searcher@")

"""Migrations of the archive: forward from every version, once, and never over a newer one."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ollm.domain.errors import StorageError
from ollm.store.team_archive.connection import ArchiveTarget, open_connection
from ollm.store.team_archive.schema import migrate_schema, read_schema_version
from ollm.store.team_archive.steps import STEPS
from tests.servers.archive_machine import ArchiveMachine
from tests.servers.postgres import PostgresServer, require_postgres
from tests.sizes import size

SHAPE = """
SELECT 'column', table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'ollm'
UNION ALL SELECT 'policy', tablename, policyname, cmd FROM pg_policies WHERE schemaname = 'ollm'
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'ollm'
UNION ALL SELECT 'function', proname, prosrc, prosecdef::text FROM pg_proc
    WHERE pronamespace = 'ollm'::regnamespace ORDER BY 1, 2, 3, 4
"""


@contextlib.contextmanager
def connected(url: str) -> Iterator[psycopg.Connection]:
    with contextlib.closing(open_connection(ArchiveTarget(url=url))) as connection:
        yield connection


def test_every_version_comes_to_the_same_end(postgres: PostgresServer, archive_url: str) -> None:
    with connected(archive_url) as connection:
        wanted = connection.execute(SHAPE).fetchall()

    for version in range(len(STEPS)):
        with connected(postgres.create_database()) as connection:
            assert migrate_schema(connection, version) == 0
            assert migrate_schema(connection) == version
            assert read_schema_version(connection) == len(STEPS)
            assert connection.execute(SHAPE).fetchall() == wanted


def test_what_an_older_version_holds_is_kept_and_people_stay_in(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.create_database()
    postgres.create_role("old_hand")
    with connected(url) as connection:
        migrate_schema(connection, 2)
        connection.execute("SELECT ollm.add_person('old_hand', 'team')")
        connection.execute(
            "INSERT INTO ollm.sessions (session_id, owner, writer, host, title)"
            " VALUES ('00000000-0000-4000-8000-000000000001', 'old_hand', 'm', 'h', 'Kept')"
        )
        connection.execute(
            "INSERT INTO ollm.messages (session_id, number, role, at, text)"
            " VALUES ('00000000-0000-4000-8000-000000000001', 1, 'user', now(), 'See src/Cart.py, 日本語')"
        )
        person = ArchiveMachine(tmp_path / "home", url.replace("postgres@", "old_hand@"))
        person.run("list", code=1)
        assert "run `ollm archive setup` with this version" in person.warned
        migrate_schema(connection)

    assert [row["title"] for row in person.json("list")] == ["Kept"]
    assert person.json("search", "anything") == []
    assert all(person.json("search", wanted) for wanted in ("cart", "cart.py", "語"))


def test_a_newer_schema_is_refused_and_left_alone(archive_url: str) -> None:
    with connected(archive_url) as connection:
        connection.execute("INSERT INTO ollm.schema_version (version) VALUES (%s)", (len(STEPS) + 1,))

        with pytest.raises(StorageError, match="newer ollm"):
            migrate_schema(connection)


def test_many_machines_that_set_up_at_once_do_it_once(postgres: PostgresServer) -> None:
    url, faults = postgres.create_database(), []

    def set_up() -> None:
        try:
            with connected(url) as connection:
                migrate_schema(connection)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=set_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert faults == []
    with connected(url) as connection:
        rows = connection.execute("SELECT version FROM ollm.schema_version ORDER BY 1").fetchall()
        assert rows == [(number + 1,) for number in range(len(STEPS))]


def test_a_step_that_fails_leaves_nothing_behind(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (STEPS[0], "CREATE TABLE ollm.half (a int); SELECT 1 / 0;")
    monkeypatch.setattr("ollm.store.team_archive.schema.STEPS", steps)
    with connected(postgres.create_database()) as connection:
        with pytest.raises(psycopg.Error):
            migrate_schema(connection)

        assert read_schema_version(connection) == 1
        assert connection.execute("SELECT to_regclass('ollm.half')").fetchone() == (None,)


def check_search(laptop: ArchiveMachine) -> None:
    session = laptop.record("Where does calculate_total_price live?")
    laptop.run("push")

    assert [hit["sessionId"] for hit in laptop.json("search", "total_pri")] == [session]


def test_without_trigrams_parts_of_words_are_found_all_the_same(tmp_path: Path, archive_url: str) -> None:
    with connected(archive_url) as connection:
        connection.execute("DROP EXTENSION IF EXISTS pg_trgm CASCADE")

    check_search(ArchiveMachine(tmp_path / "home", archive_url))


@pytest.mark.skipif(not size(0, 1), reason="starts a second server; the usual run has one")
def test_the_server_of_a_wheel_is_good_enough(tmp_path: Path) -> None:
    server = PostgresServer(require_postgres(wheel=True))
    try:
        check_search(ArchiveMachine(tmp_path / "home", server.create_database()))
    finally:
        server.stop()

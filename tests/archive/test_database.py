"""The archive's database: faults as sentences, migrations from every version."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ollm.archive.connection import (
    ArchiveAwayError,
    ArchiveTarget,
    migrate_schema,
    open_connection,
    read_schema_version,
    translate_faults,
)
from ollm.archive.schema_steps import STEPS
from ollm.domain.errors import OllmError, StorageError, UsageError
from tests.servers.archive_machine import ArchiveMachine
from tests.servers.postgres import PostgresServer, free_port, require_postgres
from tests.sizes import size


def test_a_server_that_is_away_is_named_without_the_password() -> None:
    target = ArchiveTarget(url=f"postgresql://me:hunter2@127.0.0.1:{free_port()}/team")

    with pytest.raises(ArchiveAwayError) as caught:
        open_connection(target)

    assert "/team" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "nothing is lost" in caught.value.action


@pytest.mark.parametrize("url", ["nonsense", "postgresql://[", "postgresql://host/db?nosuchoption=1"])
def test_a_url_that_is_none_is_said(url: str) -> None:
    with pytest.raises(OllmError, match="archive"):
        open_connection(ArchiveTarget(url=url))


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:

    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")

    with pytest.raises(UsageError, match="SQL_ASCII"):
        open_connection(ArchiveTarget(url=postgres.url("latin")))


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://db/team", "db/team"), ("postgres://db", "db"), ("postgresql://", "localhost/"),
        ("postgresql:///team", "/team"), ("postgresql://me@/?x=1", "localhost"), ("host=db port=6432 dbname=t", "db:6432/t"),
        ("dbname=t", "localhost/t"), ("host=db", "db/"), ("mysql://db/team", "localhost/"), ("nonsense", "localhost/"),
    ],
)  # fmt: skip
def test_the_place_of_every_kind_of_address(url: str, place: str) -> None:
    assert ArchiveTarget(url=url).place == place


def test_faults_of_the_server_are_sentences(postgres: PostgresServer) -> None:
    with contextlib.closing(open_connection(ArchiveTarget(url=postgres.url()))) as connection:
        for statement, message in (
            ("SELECT * FROM nowhere", 'The archive cannot be used: relation "nowhere" does not exist'),
            ("SELECT 1 / 0", "The archive failed: division by zero"),
            ("SET statement_timeout = 1; SELECT pg_sleep(9)", "The archive took too long: canceling statement"),
        ):
            with pytest.raises(OllmError) as caught, translate_faults():
                connection.execute(statement.encode())
            assert str(caught.value).startswith(message)
            assert isinstance(caught.value, ArchiveAwayError) == ("too long" in message)
    postgres.create_role("stranger")
    with (
        contextlib.closing(open_connection(ArchiveTarget(url=postgres.url(), owner="stranger"))) as connection,
        pytest.raises(OllmError, match=r"The archive refused: permission denied.*archive setup --person"),
        translate_faults(),
    ):
        assert connection.execute("SELECT current_user").fetchone() == ("stranger",)
        connection.execute("CREATE TABLE public.mine (a int)")
    with pytest.raises(ArchiveAwayError), translate_faults():
        connection.execute("SELECT 1")


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
    monkeypatch.setattr("ollm.archive.connection.STEPS", steps)
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

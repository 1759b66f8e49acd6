"""The connection: faults are sentences, a password is never in them."""

import contextlib

import pytest

from ollm.domain.errors import OllmError, UsageError
from ollm.store.team_archive.connection import ArchiveAwayError, ArchiveTarget, open_connection, translate_faults
from tests.servers.postgres import PostgresServer, free_port


def test_a_server_that_is_away_is_named_without_the_password() -> None:
    target = ArchiveTarget(url=f"postgresql://me:hunter2@127.0.0.1:{free_port()}/team")

    with pytest.raises(ArchiveAwayError) as caught:
        open_connection(target)

    assert "/team" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "nothing is lost" in caught.value.action


def test_the_place_has_neither_user_nor_password() -> None:
    place = ArchiveTarget(url="postgresql://me:hunter2@db.example:6432/team?sslmode=require").place

    assert place == "db.example:6432/team"


@pytest.mark.parametrize("url", ["nonsense", "postgresql://[", "postgresql://host/db?nosuchoption=1"])
def test_a_url_that_is_none_is_said(url: str) -> None:
    with pytest.raises(OllmError, match="archive"):
        open_connection(ArchiveTarget(url=url))


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    import psycopg

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


def test_a_connection_gives_up_in_time_and_looks_nowhere_else(postgres: PostgresServer) -> None:
    connection = open_connection(ArchiveTarget(url=postgres.url()), timeout=0.4)
    shown = [connection.execute(f"SHOW {name}").fetchone() for name in ("statement_timeout", "lock_timeout")]
    given = connection.info.get_parameters()
    names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "connect_timeout")

    assert shown == [("1min",), ("20s",)]
    assert connection.execute("SHOW search_path").fetchone() == ("pg_catalog",)
    assert [given[name] for name in names] == ["10", "5", "3", "30000", "2"]
    assert (given["application_name"], connection.info.encoding, connection.autocommit) == ("ollm", "utf-8", True)
    connection.close()
    with contextlib.closing(open_connection(ArchiveTarget(url=postgres.url()))) as usual:
        assert usual.info.get_parameters()["connect_timeout"] == "5"


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


def test_a_connection_that_cannot_be_prepared_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Opened:
        closed = 0

        def close(self) -> None:
            self.closed += 1

    opened = Opened()

    def refuse(*_: object) -> None:
        raise UsageError("It is of another encoding.")

    monkeypatch.setattr("psycopg.connect", lambda *_, **__: opened)
    monkeypatch.setattr("ollm.store.team_archive.connection.prepare_connection", refuse)

    with pytest.raises(UsageError, match="encoding"):
        open_connection(ArchiveTarget(url="postgresql://db/team"))
    assert opened.closed == 1

"""The connection: faults are sentences, a password is never in them."""

import pytest

from ollm.domain.errors import OllmError, UsageError
from ollm.store.team_archive.connection import ArchiveAwayError, ArchiveTarget, open_connection
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

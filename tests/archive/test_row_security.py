"""The archive's database and its row security."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from ollm.archive.connection import (
    STEPS,
    ArchiveAwayError,
    ArchiveTarget,
    migrate_schema,
    open_connection,
    read_schema_version,
    translate_faults,
)
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


SECRET = "the launch code is swordfish"


class People:
    """alice and bob share a team; eve has a role of her own; mallory may log in and nothing more."""

    def __init__(self, server: PostgresServer, url: str, root: Path) -> None:
        self.url = url
        self.names = {name: f"{name}_{uuid4().hex[:8]}" for name in ("alice", "bob", "eve", "mallory")}
        for role in self.names.values():
            server.create_role(role)
        admin = ArchiveMachine(root / "admin", url)
        for name in ("alice", "bob"):
            admin.run("setup", "--person", self.names[name], "--team", "rockets")
        admin.run("setup", "--person", self.names["eve"])
        self.alice, self.bob, self.eve, self.mallory = (
            ArchiveMachine(root / name, self.url_of(name)) for name in self.names
        )
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA own AUTHORIZATION {self.names['eve']}")
        self.session = self.alice.record(SECRET)
        self.alice.run("push")

    def url_of(self, name: str) -> str:
        return self.url.replace("postgres@", f"{self.names[name]}@")

    def connect(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self.url_of(name), autocommit=True)


@pytest.fixture(scope="module")
def people(postgres: PostgresServer, archive_template: str, tmp_path_factory: pytest.TempPathFactory) -> People:
    return People(postgres, postgres.create_database(archive_template), tmp_path_factory.mktemp("people"))


def test_a_team_sees_each_others_sessions_and_nobody_else_does(people: People) -> None:
    for person in (people.alice, people.bob):
        assert [row["sessionId"] for row in person.json("list")] == [people.session]
        assert [hit["sessionId"] for hit in person.json("search", "swordfish")] == [people.session]
        assert person.json("search", "swordf")

    assert (
        people.eve.json("list") == people.eve.json("search", "swordfish") == people.eve.json("search", "swordf") == []
    )
    people.eve.run("pull", people.session, code=1)
    people.mallory.run("list", code=1)
    assert "--person" in people.mallory.warned


HOSTILE = {
    "reads the tables": "SELECT 1 FROM ollm.sessions UNION ALL SELECT 1 FROM ollm.records UNION ALL SELECT 1 FROM ollm.messages",
    "names the owner": "SELECT * FROM ollm.sessions WHERE owner = '{alice}'",
    "reads the words": "SELECT words FROM ollm.messages",
    "a function that talks": (
        "CREATE FUNCTION pg_temp.leak(text) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'leaked: %', $1; END $$; SELECT * FROM ollm.messages WHERE pg_temp.leak(text)"
    ),
    "an operator that fails": "SELECT * FROM ollm.messages WHERE text::int = 1",
    "another search path": (
        "CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'leaked: %', $1; END $$; SET search_path = pg_temp, pg_catalog;"
        " SELECT * FROM ollm.search_messages('swordfish', 10)"
    ),
    "a search of everything": "SELECT * FROM ollm.search_messages('%', 1000)",
    "an error of a text that it does not see": (
        "SELECT * FROM ollm.search_messages('swordfish', 9, of_words => '{{}}', of_part => '%swordfish' || chr(92))"
    ),
    "an error of a text that it does not see, by its words": (
        "SELECT * FROM ollm.search_messages('sword' || chr(92), 9, of_words => ARRAY['swordfish' || chr(92), chr(39)],"
        " of_phrases => ARRAY[NULL, chr(92)])"
    ),
    "a search without limits": "SELECT * FROM ollm.search_messages(NULL, -1, NULL, NULL, NULL, NULL, NULL, NULL)",
    "a function that acts as another": (
        "CREATE FUNCTION own.act() RETURNS bigint LANGUAGE sql SET role = '{alice}' AS"
        " $$ SELECT count(*) FROM ollm.sessions $$; SELECT own.act()"
    ),
    "a function that is handed the rows": (
        "CREATE FUNCTION own.see(ollm.messages) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$ SELECT true $$;"
        " SELECT m.text FROM ollm.messages AS m WHERE own.see(m)"
    ),
    "a reference that asks whether it is there": (
        "CREATE TABLE own.probe (id uuid REFERENCES ollm.sessions); INSERT INTO own.probe VALUES ('{session}')"
    ),
    "a rule on the table": "CREATE RULE spy AS ON INSERT TO ollm.records DO ALSO NOTIFY spied",
    "what others delete": "SELECT * FROM ollm.deletions",
    "deletes in another's name": "INSERT INTO ollm.deletions (session_id, owner) VALUES ('{session}', '{alice}')",
    "who holds what": "SELECT 1 FROM ollm.leases UNION ALL SELECT 1 FROM ollm.team_members",
    "large objects": "SELECT lo_get(oid) FROM pg_largeobject_metadata",
    "files of the server": "COPY ollm.messages TO '/tmp/taken'",
    "who is in the team": "SELECT * FROM ollm.team_members",
    "takes another's name": "SELECT set_config('role', '{alice}', false)",
    "becomes the owner": "SET ROLE {alice}",
    "puts itself into the team": "INSERT INTO ollm.team_members VALUES ('rockets', '{eve}')",
    "adds itself": "SELECT ollm.add_person('{eve}', 'rockets')",
    "gives its session to another": (
        "INSERT INTO ollm.sessions (session_id, owner, writer, host)"
        " VALUES ('00000000-0000-4000-8000-000000000009', '{alice}', 'x', 'x')"
    ),
    "takes a session over": "UPDATE ollm.sessions SET owner = '{eve}'",
    "deletes": "DELETE FROM ollm.sessions",
    "deletes its records": "DELETE FROM ollm.records",
    "writes into it": (
        "INSERT INTO ollm.records (session_id, seq, kind, key, position, digest)"
        " VALUES ('{session}', 99, 'message', '99', 99, '')"
    ),
    "holds it": "INSERT INTO ollm.leases (session_id, holder, host) VALUES ('{session}', 'eve', 'eve')",
    "turns it off": "ALTER TABLE ollm.messages DISABLE ROW LEVEL SECURITY",
    "sets row security off": "SET row_security = off; SELECT * FROM ollm.messages",
    "asks the statistics": "SELECT most_common_vals FROM pg_stats WHERE schemaname = 'ollm'",
    "a view of its own": "CREATE TEMP VIEW v AS SELECT * FROM ollm.messages; SELECT * FROM v",
    "copies it": "CREATE TEMP TABLE t AS SELECT * FROM ollm.records; SELECT * FROM t",
    "replaces the search": "CREATE OR REPLACE FUNCTION ollm.viewer() RETURNS name LANGUAGE sql AS $$ SELECT '{alice}' $$",
    "a function that says who it is": (
        "CREATE FUNCTION own.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '{alice}'::text $$;"
        " SET search_path = own, pg_catalog; DELETE FROM ollm.sessions"
    ),
    "an operator that says who it is": (
        "CREATE FUNCTION own.say(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;"
        " CREATE OPERATOR own.= (LEFTARG = text, RIGHTARG = text, FUNCTION = own.say);"
        " SET search_path = own, pg_catalog; UPDATE ollm.sessions SET title = 'mine'"
    ),
    "a table in the schema": "CREATE TABLE ollm.trap (a int)",
}


@pytest.mark.parametrize("attempt", HOSTILE)
def test_a_hostile_role_learns_and_changes_nothing(people: People, attempt: str) -> None:
    statements = HOSTILE[attempt].format(**people.names, session=people.session)
    learnt: list[object] = []
    refusals: list[str] = []
    for name in ("eve", "mallory"):
        with people.connect(name) as connection:
            try:
                cursor = connection.execute(statements.encode())
                while True:
                    learnt += cursor.fetchall() if cursor.description else []
                    if not cursor.nextset():
                        break
            except psycopg.Error as error:
                refusals.append(error.diag.message_primary or "")

    assert not [text for text in refusals if any(word in text for word in ("leaked", "swordfish", "LIKE pattern"))]
    assert [row for row in learnt if row != ("none",)] == []
    with people.connect("alice") as connection:
        assert connection.execute("SELECT owner FROM ollm.sessions").fetchall() == [(people.names["alice"],)]
        assert connection.execute("SELECT count(*) FROM ollm.records WHERE body IS NOT NULL").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM ollm.leases").fetchone() == (0,)


def test_one_of_the_team_reads_and_takes_a_copy_but_does_not_write(people: People) -> None:
    with people.connect("bob") as connection:
        assert connection.execute("UPDATE ollm.sessions SET title = 'mine'").rowcount == 0
        assert connection.execute("DELETE FROM ollm.records").rowcount == 0

    people.bob.run("forget", people.session, "--yes", code=5)
    people.bob.run("pull", people.session)
    assert SECRET in people.bob.ollm("sessions", "view", people.session)
    people.bob.go_on(people.session, "A word of bob's")
    people.bob.run("push", code=1)
    assert "--fork" in people.bob.warned
    people.bob.run("pull", people.session, "--fork")
    (fork,) = people.bob.ids() - {people.session}
    people.bob.run("push", fork)
    assert fork in {row["sessionId"] for row in people.alice.json("list")}
    people.bob.run("forget", fork, "--yes")


def test_nobody_stands_in_the_way_of_anothers_deletion(people: People) -> None:
    session = people.alice.record("To be deleted")
    people.alice.run("push")
    for name in ("bob", "eve"):
        with people.connect(name) as connection:
            connection.execute("INSERT INTO ollm.deletions VALUES (%s, ollm.viewer())", (session,))
    people.alice.ollm("sessions", "delete", session, "--yes")

    people.alice.run("push")

    assert session not in {row["sessionId"] for row in people.alice.json("list")}
    assert people.alice.json("status")["deletionsWaiting"] == 0


def test_a_login_may_act_as_the_person_it_belongs_to_and_as_no_other(
    people: People, postgres: PostgresServer, tmp_path: Path
) -> None:
    login = f"login_{uuid4().hex[:8]}"
    postgres.create_role(login)
    with psycopg.connect(people.url, autocommit=True) as admin:
        admin.execute(f"GRANT {people.names['alice']} TO {login}")
    url = people.url.replace("postgres@", f"{login}@")

    as_alice = ArchiveMachine(tmp_path / "a", url, owner=people.names["alice"])
    as_eve = ArchiveMachine(tmp_path / "b", url, owner=people.names["eve"])

    assert [row["owner"] for row in as_alice.json("list")] == [people.names["alice"]]
    assert as_alice.json("search", "swordfish")
    as_eve.run("list", code=1)

"""Many sessions are sent over two connections, each once; what cannot be sent is named and holds up nobody."""

import psycopg

from ollm.app.archive_pushing import MIN_SHARED_SESSIONS
from tests.servers.archive_machine import MakeMachine

# The first batch waits until two connections of ours are there, and fails when they do not come.
WAIT_FOR_TWO = """
CREATE TABLE public.both_came (at timestamptz);
CREATE FUNCTION public.wait_for_two() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    FOR attempt IN 1..500 LOOP
        PERFORM pg_stat_clear_snapshot();
        IF EXISTS (SELECT FROM public.both_came) OR (SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'ollm') = 2
        THEN
            INSERT INTO public.both_came VALUES (now());
            RETURN NULL;
        END IF;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RAISE EXCEPTION 'it stayed alone';
END $$;
CREATE TRIGGER wait AFTER INSERT ON ollm.records FOR EACH STATEMENT EXECUTE FUNCTION public.wait_for_two();
"""


def test_many_sessions_are_sent_over_two_connections_each_once(machine: MakeMachine, archive_url: str) -> None:
    laptop, reader = machine("laptop", redact=False), machine("reader", redact=False)
    names = {laptop.record(f"Question {number}", f"Answer {number}") for number in range(MIN_SHARED_SESSIONS + 4)}
    forgotten = min(names)
    with psycopg.connect(archive_url, autocommit=True) as connection:
        connection.execute("INSERT INTO ollm.deletions (session_id, owner) VALUES (%s, 'postgres')", (forgotten,))
        connection.execute(WAIT_FOR_TWO)
        laptop.run("push", "--json", code=1)
        rows = connection.execute("SELECT session_id::text, count(*) FROM ollm.records GROUP BY 1").fetchall()

    assert f"Session {forgotten} was deleted from the archive" in laptop.said
    names.remove(forgotten)
    assert dict(rows) == dict.fromkeys(names, 3)
    assert laptop.json("status")["unsentSessions"] == 1
    for name in names:
        reader.run("pull", name)
        assert reader.document(name) == laptop.document(name)

"""`archive push`: what was said reaches the archive once, in order, redacted, and only what is new the next time."""

import psycopg
import pytest

from tests.servers.archive_machine import MakeMachine, make_call

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def test_the_first_push_says_what_is_sent_and_the_second_has_nothing_to_send(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("Where is the total?", "In cart.py.")

    said = laptop.run("push")

    assert "first push: 1 session " in laptop.warned
    assert "secrets redacted" in laptop.warned
    assert said.startswith("Sent 1 session (3 records)")
    assert "Nothing to send" in laptop.run("push")
    assert laptop.warned == ""


def test_only_what_is_new_is_sent_and_nothing_is_stored_twice(machine: MakeMachine, archive_url: str) -> None:
    laptop = machine("laptop")
    session = laptop.record("One", "Two", calls=(make_call("c1", "the file"),))
    laptop.run("push")

    laptop.go_on(session, "Three")

    assert laptop.json("push")["records"] == 2  # the message, and the head that counts it
    with psycopg.connect(archive_url) as connection:
        rows = connection.execute("SELECT kind, key FROM ollm.records ORDER BY seq").fetchall()
        assert sorted(rows) == [("call", "c1"), ("head", ""), ("message", "1"), ("message", "2"), ("message", "3")]
        assert connection.execute("SELECT message_count, last_seq FROM ollm.sessions").fetchone() == (3, 6)


def test_what_comes_back_is_what_was_sent_byte_for_byte_without_redaction(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop", redact=False), machine("desktop", redact=False)
    session = laptop.record(
        f"key={KEY} \u0000 ünï\u2028", "Two", calls=(make_call("c1", "x" * 9000), make_call("c2", "y"))
    )
    laptop.run("push")

    desktop.run("pull", session[:8])

    assert desktop.document(session) == laptop.document(session)
    assert KEY in desktop.ollm("sessions", "view", session)


def test_secrets_do_not_leave_the_machine(machine: MakeMachine, archive_url: str) -> None:
    laptop = machine("laptop")
    call = make_call("c1", f"OPENAI_API_KEY={KEY}", name="shell", command=f"curl -H 'Authorization: Bearer {KEY}' x")
    session = laptop.record(f"my key is {KEY}", "Noted.", calls=(call, make_call("c2", "ok", password="hunter2secret")))

    laptop.run("push")

    with psycopg.connect(archive_url) as connection:
        everything = str(connection.execute("SELECT body FROM ollm.records").fetchall())
        everything += str(connection.execute("SELECT text FROM ollm.messages").fetchall())
        everything += str(connection.execute("SELECT * FROM ollm.sessions").fetchall())
    assert KEY not in everything
    assert "hunter2secret" not in everything
    assert KEY in laptop.ollm("sessions", "view", session)


def test_only_sessions_of_the_chosen_workspaces_leave(machine: MakeMachine) -> None:
    laptop = machine("laptop", workspaces=["/srv/team/*"])
    wanted = laptop.record("In the team's project", workspace="/srv/team/shop")
    laptop.record("Private", workspace="/home/me/diary")
    laptop.record("Nowhere")

    laptop.run("push")

    assert [row["sessionId"] for row in laptop.json("list")] == [wanted]


def test_without_an_archive_nothing_is_sent(machine: MakeMachine) -> None:
    laptop = machine("laptop", url=None)
    laptop.record("Stay here")

    laptop.run("push", code=2)

    assert "nothing is sent" in laptop.warned
    assert not (laptop.home / "archive.db").exists()
    assert laptop.json("status") == {"configured": False}


@pytest.mark.parametrize(
    ("url", "code"),
    [("postgresql://nobody@127.0.0.1:1/none", 1), ("postgresql://[", 1), ("not a url", 2), ("http://db?a=b", 2)],
)
def test_an_archive_that_is_not_there_is_said_in_a_sentence(machine: MakeMachine, url: str, code: int) -> None:
    laptop = machine("laptop", url=url)
    laptop.record("Stay here")

    laptop.run("push", code=code)

    assert ("postgresql://USER@HOST/DATABASE" if code == 2 else "archive") in laptop.warned
    assert "Traceback" not in laptop.warned

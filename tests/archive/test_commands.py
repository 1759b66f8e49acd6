"""ollm archive: push, pull, forget, list, search, status and setup, as its settings say."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from ollm.app.workspace import WorkspaceScope
from ollm.archive.team_archive import find_url
from ollm.domain.errors import UsageError
from tests.servers.archive_machine import MakeMachine, make_call
from tests.servers.postgres import PostgresServer, free_port


def test_nothing_of_the_archive_is_imported_for_another_command() -> None:
    code = (
        "import sys; from ollm.cli.entry import main; main(['sessions', 'list']);"
        "print([name for name in sys.modules if 'psycopg' in name or 'team_archive' in name])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_list_names_who_and_where_and_shows_no_control_characters(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    laptop.record("Red \x1b[31malert\x07 \u202e evil", workspace="/srv/shop")
    laptop.run("push")

    said = desktop.run("list")

    assert "postgres on " in said
    assert "/srv/shop" in said
    assert not any(mark in said for mark in ("\x1b", "\x07", "\u202e"))
    assert "\x1b" not in desktop.run("search", "alert")
    assert "postgres on" in desktop.said


def test_an_empty_archive_and_no_match_are_said(machine: MakeMachine) -> None:
    laptop = machine("laptop")

    laptop.run("list")
    assert "no session" in laptop.warned
    laptop.run("search", "anything")
    assert "no matches" in laptop.warned


def test_tasks_are_hidden_until_they_are_asked_for_and_are_deleted_with_their_conversation(
    machine: MakeMachine,
) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    talk, task = laptop.record("Where is the total?"), laptop.record("Explore the total")
    path = laptop.home / "sessions" / f"{task}.json"
    parent = f'"origin":"task","parent":{{"sessionId":"{talk}","callId":"c1"}}'
    path.write_text(re.sub(r'"origin":[^,}]+', parent, path.read_text()))
    laptop.run("push")

    both = ("list",), ("search", "total")
    for words in (*(("archive", *words) for words in both), *(("sessions", *words) for words in both)):
        shown, everything = (
            {row["sessionId"] for row in json.loads(desktop.ollm(*words, *more, "--json"))} for more in ((), ("--all",))
        )
        assert (shown, everything) == ({talk}, {talk, task})
    assert "☁ ↳ Explore the total" in desktop.ollm("sessions", "list", "--all")

    laptop.run("forget", talk, "--yes")

    assert laptop.json("list", "--all") == []


def test_a_session_goes_on_elsewhere_and_comes_back(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("Said on the laptop")
    laptop.run("push")

    desktop.run("pull", session)
    desktop.go_on(session, "Said on the desktop")
    desktop.run("push")
    laptop.run("pull", session)

    assert laptop.document(session) == desktop.document(session)
    assert "Said on the desktop" in laptop.ollm("sessions", "view", session)
    assert "up to date" in laptop.run("pull", session)


def test_words_that_only_this_machine_has_are_never_overwritten(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One")
    laptop.run("push")
    desktop.run("pull", session)
    desktop.go_on(session, "From the desktop")
    desktop.run("push")
    laptop.go_on(session, "From the laptop")

    for command in (("pull", session), ("push",)):
        laptop.run(*command, code=1)
        assert f"Keep both with `ollm archive push {session} --fork`" in " ".join(laptop.warned.split())
    assert f"push {session} --fork" in laptop.run("status", session, code=5)

    laptop.run("pull", session, "--fork")
    (fork,) = laptop.ids() - {session}
    assert "From the desktop" in laptop.ollm("sessions", "view", fork)
    assert "From the laptop" in laptop.ollm("sessions", "view", session)
    laptop.run("push", fork)
    assert {row["sessionId"] for row in desktop.json("list")} == {session, fork}


def test_what_is_forgotten_is_gone_there_stays_here_and_is_not_sent_again(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session, other = laptop.record("Forget me"), laptop.record("Keep me")
    laptop.run("push")
    desktop.run("pull", session)

    laptop.run("forget", session, code=2)
    laptop.run("forget", session, "--yes")

    assert [row["sessionId"] for row in laptop.json("list")] == [other]
    assert laptop.json("search", "forget") == []
    laptop.go_on(session, "More here")
    assert laptop.json("status")["unsentSessions"] == 0
    laptop.run("push")
    laptop.run("push", session, code=1)
    assert "not sent again" in laptop.warned
    desktop.go_on(session, "More")
    desktop.run("push", code=1)
    desktop.run("push")
    assert [row["sessionId"] for row in laptop.json("list")] == [other]
    assert "Forget me" in laptop.ollm("sessions", "view", session)


def test_an_unknown_or_ambiguous_id_is_said(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("One")
    laptop.run("push")

    for name in ("00000000", "zz", "%%%%", "'; DROP TABLE ollm.sessions; --"):
        laptop.run("pull", name, code=1 if name == "00000000" else 2)

    assert len(laptop.json("list")) == 1


def test_a_session_of_a_folder_that_is_elsewhere_goes_on_here(machine: MakeMachine, tmp_path: Path) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("In the shop", workspace="/home/somebody/else/shop")
    laptop.run("push")
    here = tmp_path / "shop"
    here.mkdir()

    said = desktop.run("pull", session, "--workspace", str(here))

    assert str(here) in said
    assert desktop.document(session) == laptop.document(session)
    with desktop.inside():
        scope = WorkspaceScope(desktop.process, here)
        assert [found.session_id for found in scope.context.list_sessions()] == [session]
        assert scope.context.owns(desktop.process.session_files.describe_session(session))
        scope.close()


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


@pytest.mark.parametrize(
    ("url", "code"),
    [("postgresql://nobody@127.0.0.1:1/none", 1), ("postgresql://[", 2), ("not a url", 2), ("http://db?a=b", 2)],
)
def test_an_archive_that_is_not_there_is_said_in_a_sentence(machine: MakeMachine, url: str, code: int) -> None:
    laptop = machine("laptop", url=url)
    laptop.record("Stay here")

    laptop.run("push", code=code)

    assert ("postgresql://USER@HOST/DATABASE" if code == 2 else "archive") in laptop.warned
    assert "Traceback" not in laptop.warned


def test_status_counts_what_is_not_sent_yet(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("One")
    laptop.run("push")
    laptop.record("Two")

    found = laptop.json("status")

    assert (found["reachable"], found["unsentSessions"], found["sessions"], found["ownSessions"]) == (True, 1, 1, 1)
    assert "1 session " in laptop.run("status")


def test_status_of_an_archive_that_is_away_says_so_and_what_waits(machine: MakeMachine) -> None:
    laptop = machine("laptop", url=f"postgresql://me:hunter2@127.0.0.1:{free_port()}/team")
    laptop.record("One")

    said = laptop.run("status", code=1)

    assert "Cannot reach the archive" in said
    assert "1 session " in said
    assert "hunter2" not in said


def test_an_empty_database_is_set_up_once_and_people_are_added(machine: MakeMachine, postgres: PostgresServer) -> None:
    admin = machine("admin", url=postgres.create_database())
    postgres.create_role("grace hopper")

    admin.run("setup")
    said = admin.run("setup", "--person", "grace hopper", "--team", "navy")

    assert "Added grace hopper to team navy." in said
    admin.run("setup", "--team", "navy", code=2)
    admin.run("setup", "--person", "nobody_knows", code=1)


def test_the_url_may_stand_in_a_variable(machine: MakeMachine, archive_url: str) -> None:
    laptop = machine("laptop", url=None, urlEnv="TEAM_ARCHIVE")
    with pytest.raises(UsageError, match="TEAM_ARCHIVE"):
        find_url(laptop.process)

    laptop.environment["TEAM_ARCHIVE"] = archive_url
    session = laptop.record("By the variable")
    laptop.run("push")

    assert [row["sessionId"] for row in laptop.json("list")] == [session]
    assert archive_url not in laptop.ollm("config", "show")


def test_a_workspaces_own_file_cannot_set_an_archive(machine: MakeMachine) -> None:
    laptop = machine("laptop", url=None)
    project = laptop.home / "project"
    (project / ".ollm").mkdir(parents=True)
    (project / ".ollm" / "config.yaml").write_text("archive: {url: 'postgresql://evil/db', push: live}\n")
    laptop.ollm("trust", str(project))

    laptop.ollm("config", "check", "--workspace", str(project), code=2)

    assert "can only be set in your own config file" in laptop.said + laptop.warned


@pytest.mark.parametrize("mistake", [{"workspace": ["/srv/*"]}, {"workspaces": "/srv/*"}, {"redact": "maybe"}])
def test_a_mistake_in_the_section_turns_the_archive_off(machine: MakeMachine, mistake: dict[str, object]) -> None:
    laptop = machine("laptop", **mistake)
    laptop.record("Stay here")

    laptop.run("push", code=2)

    assert "nothing is sent" in laptop.warned
    assert str(next(iter(mistake))) in laptop.warned


def test_a_password_is_shown_in_no_form_of_the_url_wrong_ones_included(machine: MakeMachine) -> None:
    for url in (
        "host=db.invalid dbname=team password=hunter2 user=me",
        "host=db.invalid dbname=team password='hunter2 hunter2' user=me",
        "host=db.invalid dbname=team password='hunter2 user=me",
        "postgresql://me:hunter2@db.invalid/team",
        "postgresql://me:x?hunter2@db.invalid/team",
        "postgresql://me:hunter2?x@db.invalid/team",
        "postgresql://me:x/hunter2@db.invalid/team",
        "postgresql://me:hunter2%zz@db.invalid/team",
        "postgresql://me:hunter2@[::1/team",
        "postgres//me:hunter2@db.invalid/team",
    ):
        laptop = machine("laptop", url=url)
        assert "hunter2" not in laptop.ollm("config", "show")
        with contextlib.suppress(AssertionError):  # each ends with a code of its own
            laptop.run("status")
        assert "hunter2" not in laptop.said + laptop.warned
        assert not [log for log in (laptop.home / "logs").glob("*") if "hunter2" in log.read_text()]

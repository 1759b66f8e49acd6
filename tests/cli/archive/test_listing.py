"""`archive list` and `archive search` for people."""

import json
import re

from tests.servers.archive_machine import MakeMachine


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

"""`archive list` and `archive search` for people."""

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

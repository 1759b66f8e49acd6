"""Modes: the tools they show, and when another one is proposed."""

from __future__ import annotations

import pytest

from ollm.domain.context import ModeName
from ollm.domain.tools import ToolCategory
from ollm.services.mode_proposal import propose_mode
from ollm.services.modes import MODES, make_mode_change, shows_tool, to_history_entry
from tests.covers import covers

ALL: tuple[ToolCategory | None, ...] = ("read", "notes", "write", "web", "run", None)  # none: of an extension


def list_shown(mode: ModeName) -> tuple[ToolCategory | None, ...]:
    return tuple(category for category in ALL if shows_tool(mode, category))


def test_code_and_debug_show_every_tool() -> None:
    assert list_shown("code") == ALL == list_shown("debug")


def test_plan_shows_only_tools_that_read_and_sets_read_only() -> None:
    assert list_shown("plan") == ("read", "notes", "web")
    assert MODES["plan"].approval == "read-only"


def test_assistant_shows_what_reads_and_what_extensions_bring() -> None:
    assert list_shown("assistant") == ("read", "notes", "web", None)


@covers("H150")
def test_a_change_is_written_down_as_the_history_keeps_it() -> None:
    step = to_history_entry(make_mode_change("assistant", "code", "auto", 0.95))

    assert list(step) == ["from", "to", "timestamp", "trigger", "confidence"]
    assert (step["from"], step["to"], step["trigger"], step["confidence"]) == ("assistant", "code", "auto", 0.95)


@pytest.mark.parametrize(
    ("text", "current", "expected"),
    [
        ("Why does the parser fail? Here is the traceback of the crash", "code", "debug"),
        ("Make a plan for the migration, and an approach before you change anything", "code", "plan"),
        ("Implement the cache and add a test", "assistant", "code"),
        ("Explain what is the difference between the two", "code", "assistant"),
        ("Thanks", "code", None),
        ("Implement the cache and add a test", "code", None),
        ("", "code", None),
    ],
)
def test_a_mode_is_proposed_when_a_message_plainly_fits_it(text: str, current: ModeName, expected: str | None) -> None:
    found = propose_mode(text, current)

    assert (found.mode if found else None) == expected
    assert found is None or 0.75 <= found.confidence <= 0.95


def test_a_very_long_message_is_judged_quickly() -> None:
    propose_mode("why does " + "x " * 500_000 + " fail", "code")

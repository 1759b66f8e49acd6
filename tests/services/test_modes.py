"""Modes: the tools they show, and when another one is proposed."""

from __future__ import annotations

from ollm.domain.context import ModeName
from ollm.domain.tools import ToolCategory
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

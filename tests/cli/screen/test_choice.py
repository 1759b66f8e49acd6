"""Which sessions fit what was typed."""

import pytest

from ollm.cli.screen.choice import SessionChoice, build_search_text, filter_sessions
from ollm.cli.sessions.session_list import SessionListItem


def item(name: str, **more: str) -> SessionListItem:
    return SessionListItem(**{"session_id": name, "title": "", "model": "", "updated_at": 0, **more})  # type: ignore[arg-type]


ITEMS = [
    item("aaaa1111", title="Fix the Parser", model="qwen3", last="all tests pass"),
    item("bbbb2222", title="Straße planen", model="llama3", origin="/old/place"),
    item("cccc3333", model="qwen3"),
]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["aaaa1111", "bbbb2222", "cccc3333"]),
        ("  ", ["aaaa1111", "bbbb2222", "cccc3333"]),
        ("PARSER fix", ["aaaa1111"]),
        ("parser llama3", []),
        ("qwen3", ["aaaa1111", "cccc3333"]),
        ("tests", ["aaaa1111"]),
        ("STRASSE", ["bbbb2222"]),
        ("/old", ["bbbb2222"]),
        ("cccc", ["cccc3333"]),
    ],
)
def test_every_typed_word_must_be_somewhere_in_the_session(typed: str, found: list[str]) -> None:
    assert [line.session_id for line in filter_sessions(ITEMS, typed)] == found


def test_a_session_without_an_origin_is_not_found_by_none() -> None:
    assert "none" not in build_search_text(ITEMS[0])


def test_a_choice_names_no_session_and_no_text_by_itself() -> None:
    assert SessionChoice(action="new") == SessionChoice(action="new", session_id=None, text="")

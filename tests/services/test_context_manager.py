"""Context entries: kept, ordered, expired and refused as promised."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.clock import parse_stamp
from ollm.services.context_manager import SOURCES, ContextManager, fit_entries
from ollm.services.token_counting import TokenCounter
from tests.covers import covers

words = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40).filter(str.strip)
contents = st.builds(lambda text, times: f"{text}\n\t" * times + text, words, st.sampled_from((0, 1, 120)))
entries = st.dictionaries(
    words, st.tuples(contents, st.integers(-100, 100) | st.floats(-1e6, 1e6), st.sampled_from(SOURCES)), max_size=12
)


def filled(wanted: dict[str, tuple[str, float, str]]) -> ContextManager:
    manager = ContextManager()
    for key, (content, priority, source) in wanted.items():
        assert manager.add_context(key, content, priority=priority, source=source)
    return manager


@covers("P18", "S5.1", "S5.2", "D274")
@given(entries, words, words)
def test_an_entry_that_was_removed_is_gone(others: dict[str, tuple[str, float, str]], key: str, content: str) -> None:
    """Feature: services-sessions, Property 18: Context add-remove round-trip."""
    manager = filled(others)
    manager.add_context(key, content)

    assert manager.has_context(key)
    assert manager.remove_context(key)
    assert not manager.has_context(key)
    assert key not in [entry.key for entry in manager.get_context()]
    assert not manager.remove_context(key)


@covers("P19", "S5.3", "S5.6", "D260", "D275")
@given(entries)
def test_every_entry_comes_back_as_it_was_given(wanted: dict[str, tuple[str, float, str]]) -> None:
    """Feature: services-sessions, Property 19: Context retrieval completeness."""
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(len(wanted))]
    clock = iter(moments)
    manager = ContextManager(clock=lambda: next(clock))
    for key, (content, priority, source) in wanted.items():
        manager.add_context(key, content, priority=priority, source=source)
    kept = {entry.key: entry for entry in manager.get_context()}

    assert {key: (one.content, one.priority, one.source) for key, one in kept.items()} == wanted
    assert [parse_stamp(kept[key].timestamp) for key in wanted] == moments
    others = ContextManager()
    assert all(others.add_entry(entry) for entry in kept.values())
    assert [(one.key, one.content, one.priority, one.source) for one in others.get_context()] == [
        (one.key, one.content, one.priority, one.source) for one in manager.get_context()
    ]
    for source in SOURCES:
        assert {e.key for e in filled(wanted).get_context_by_source(source)} == {
            k for k in wanted if wanted[k][2] == source
        }


@covers("P20", "S5.4", "S5.7")
@given(entries)
def test_the_system_prompt_is_told_all_of_them(wanted: dict[str, tuple[str, float, str]]) -> None:
    """Feature: services-sessions, Property 20: Context inclusion in system prompt."""
    additions = filled(wanted).get_system_prompt_additions()

    assert all(content in additions for content, _, _ in wanted.values())


@covers("P21", "S5.5", "S5.8", "D620")
@given(entries)
def test_higher_priorities_come_first_and_ties_keep_insertion(wanted: dict[str, tuple[str, float, str]]) -> None:
    """Feature: services-sessions, Property 21: Context priority ordering."""
    manager = filled(wanted)
    order = [entry.key for entry in manager.get_context()]
    places = {key: place for place, key in enumerate(wanted)}

    assert order == sorted(wanted, key=lambda key: (-wanted[key][1], places[key]))
    additions, at = manager.get_system_prompt_additions(), 0
    for key in order:
        part = f": {key}\n\n{wanted[key][0]}"
        at = additions.find(part, at) + len(part)
        assert at >= len(part), "each stands behind the one before it"


@covers("D281")
def test_the_same_key_replaces_the_content_and_keeps_its_place() -> None:
    manager = filled({"a": ("one", 50, "user"), "b": ("two", 50, "hook")})

    manager.add_context("a", "three")

    assert [(entry.key, entry.content) for entry in manager.get_context()] == [("a", "three"), ("b", "two")]


@covers("D284")
def test_a_ttl_is_looked_at_when_a_turn_starts_and_not_inside_one() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    manager = ContextManager(clock=lambda: moment)
    manager.add_context("build", "green", ttl_seconds=60)
    manager.add_context("house", "style", ttl_seconds=1e300)

    moment += timedelta(seconds=61)
    assert manager.has_context("build")
    assert manager.begin_turn() == ("build",)
    assert [entry.key for entry in manager.get_context()] == ["house"]


@covers("D283", "D285")
def test_saying_the_same_again_changes_no_byte_of_the_prompt() -> None:
    manager = ContextManager()
    manager.add_context("a", "one", source="hook")
    before = manager.get_system_prompt_additions()

    manager.add_context("a", "one", source="hook")

    assert manager.get_system_prompt_additions() == before == "## From a hook: a\n\none"


def test_a_volatile_entry_stays_out_of_the_system_prompt() -> None:
    manager = ContextManager()
    manager.add_context("git", "On branch main", volatile=True, source="system")

    assert manager.get_system_prompt_additions() == ""
    assert "On branch main" in manager.render_volatile_entries()


@covers("D619")
@pytest.mark.parametrize(
    "wrong",
    [
        {"key": ""},
        {"key": "  "},
        {"key": "k" * 201},
        {"key": "a\nb"},
        {"content": ""},
        {"content": " \n"},
        {"content": "bell\x07"},
        {"priority": math.nan},
        {"priority": math.inf},
        {"priority": "high"},
        {"priority": True},
        {"ttl_seconds": 0},
        {"ttl_seconds": -1},
        {"ttl_seconds": math.nan},
        {"source": "stranger"},
    ],
)
def test_an_invalid_entry_is_skipped_with_one_warning(wrong: dict[str, object]) -> None:
    warnings: list[str] = []
    manager = ContextManager(warn=warnings.append)
    manager.add_context("good", "kept")

    given = {"key": "a", "content": "b", **wrong}
    assert not manager.add_context(given.pop("key"), given.pop("content"), **given)  # type: ignore[arg-type]
    assert len(warnings) == 1
    assert [entry.key for entry in manager.get_context()] == ["good"]


@covers("D267")
def test_clearing_leaves_nothing() -> None:
    manager = filled({"a": ("one", 1, "user")})
    manager.clear_context()

    assert manager.get_context() == []
    assert manager.get_system_prompt_additions() == ""


def test_beyond_the_cap_the_lowest_priorities_are_left_out() -> None:
    manager = filled({"low": ("word " * 50, 1, "user"), "high": ("word " * 50, 90, "user")})

    kept, left = fit_entries(manager.get_context(), TokenCounter().count_text, 80)

    assert [entry.key for entry in kept] == ["high"]
    assert [entry.key for entry in left] == ["low"]

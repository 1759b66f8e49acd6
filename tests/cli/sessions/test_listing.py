"""`sessions search`, and times as people write them."""

from datetime import UTC, datetime

import pytest

from ollm.cli.sessions.listing import parse_since
from ollm.domain.clock import parse_stamp
from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.sessions.samples import json_of
from tests.covers import covers
from tests.store.sessions.support import AT, Home


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


@covers("H473")
def test_search_finds_with_number_role_time_and_snippet(home):
    session_id = home.recorded("hello there", "the configuration of it")
    (hit,) = json_of("sessions", "search", "config", "--json", home=home)
    assert hit == {
        "sessionId": session_id,
        "messageId": 2,
        "number": 2,
        "role": "user",
        "timestamp": AT,
        "title": "hello there",
        "snippet": "the «config»uration of it",
    }
    assert json_of("sessions", "search", "config", "--role", "assistant", "--json", home=home) == []
    assert json_of("sessions", "search", "config", "--since", "2026-01-01", "--model", "m", "--json", home=home)
    for odd in ("", '"', "*", "AND", "NEAR("):
        assert json_of("sessions", "search", odd, "--json", home=home) == []
    assert ollm("sessions", "search", "x", "--since", "yesterday-ish", home=home.root).returncode == 2


@pytest.mark.parametrize(("text", "seconds"), [("7d", 7 * 86_400), ("12h", 12 * 3600), ("90m", 90 * 60), ("0d", 0)])
def test_how_long_ago_is_a_time(text: str, seconds: int) -> None:
    ago = datetime.now(UTC) - parse_stamp(parse_since(text))

    assert seconds - 1 <= ago.total_seconds() <= seconds + 60


def test_messages_are_found_and_narrowed(inside: Inside) -> None:
    home = Home(inside.home)
    first = home.recorded("the red parser breaks", workspace=str(inside.workspace))
    second = home.recorded("the blue parser works", workspace="/elsewhere")

    found = inside.read_json("sessions", "search", "parser")
    assert {hit["sessionId"] for hit in found} == {first, second}
    assert [hit["sessionId"] for hit in inside.read_json("sessions", "search", "parser", "red")] == [first]
    assert [hit["sessionId"] for hit in inside.read_json("sessions", "search", "parser", "--workspace", ".")] == [first]
    assert inside.read_json("sessions", "search", "parser", "--role", "assistant") == []
    assert inside.read_json("sessions", "search", "parser", "--model", "other") == []
    assert inside.read_json("sessions", "search", "parser", "--since", "2027-01-01") == []
    assert len(inside.read_json("sessions", "search", "parser", "--limit", "1")) == 1
    shown = inside.read("sessions", "search", "red")
    assert shown.startswith(f"{first[:4]}")
    assert "#1 user, " in shown
    assert "the red parser" in shown.replace("**", "").replace("[", "").replace("]", "")


def test_no_match_is_said(inside: Inside) -> None:
    done = inside.run("sessions", "search", "nothing")

    assert (done.code, done.out, done.err) == (0, "", "ollm: no matches.\n")


def test_the_list_is_narrowed_to_a_workspace_and_a_number(inside: Inside) -> None:
    home = Home(inside.home)
    for place in (str(inside.workspace), "/elsewhere"):
        home.recorded("hi", workspace=place)

    assert len(inside.read_json("sessions", "list")) == 2
    assert len(inside.read_json("sessions", "list", "--limit", "1")) == 1
    (line,) = inside.read_json("sessions", "list", "--workspace", ".")
    assert line["workspace"] == str(inside.workspace)
    assert inside.read_json("sessions", "list", "--trash") == []


def test_hits_in_tasks_do_not_count_as_too_many(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(inside.home)
    home.recorded("the parser breaks")
    home.recorded("the parser one", "the parser two", "the parser three", origin="task")
    monkeypatch.setattr("ollm.store.session_index.search.MAX_RANKED_HITS", 2)

    shown, everything = inside.run("sessions", "search", "parser"), inside.run("sessions", "search", "parser", "--all")

    assert (shown.code, "more than" in shown.err, shown.out.count("#")) == (0, False, 1)
    assert "more than 2 hits: the newest are shown first." in everything.err

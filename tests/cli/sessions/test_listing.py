"""`sessions search`, and times as people write them."""

import pytest

from tests.cli.command import ollm
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

"""`ollm context`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.recorded_place import RecordedPlace
from tests.covers import covers


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RecordedPlace:
    place = RecordedPlace(tmp_path, capsys)
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.chdir(place.workspace)
    return place


def test_the_context_is_shown_part_by_part(place: RecordedPlace) -> None:
    shown = json.loads(place.run("context", "show", "--json"))

    assert set(shown) == {"window", "limit", "available", "trigger", "parts"}
    assert (shown["window"], shown["limit"]) == (8192, 6963)
    parts = {part["name"]: part["tokens"] for part in shown["parts"]}
    before = sum(parts[name] for name in ("instructions", "context entries", "tool schemas"))
    assert abs(shown["available"] - (6963 - before)) <= 1, "each part is rounded"
    assert parts["user messages"] > 0 < parts["assistant messages"]
    text = place.run("context", "show", place.session[:8])
    assert "tool schemas" in text
    assert "of 6,963 tokens (context window 8,192)" in text


def test_a_workspace_without_a_session_shows_what_a_new_one_starts_with(tmp_path: Path) -> None:
    ended = ollm("context", "show", "--json", home=tmp_path / "home", cwd=tmp_path)

    assert ended.returncode == 0
    assert "a new session starts with" in ended.stderr
    assert json.loads(ended.stdout)["parts"][0]["tokens"] > 0


@covers("S5.7")
@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_the_instructions_of_a_trusted_project_are_shown_with_their_tokens(place: RecordedPlace, name: str) -> None:
    (place.workspace / name).write_text("Write short sentences, always. " * 20, "utf-8")
    before = entries_tokens(place)
    place.run("trust", str(place.workspace))

    assert (before, entries_tokens(place) > 50) == (0, True)
    assert f"Context entries: {name}." in place.run("context", "show")


def entries_tokens(place: RecordedPlace) -> int:
    shown = json.loads(place.run("context", "show", "--json"))
    return next(int(part["tokens"]) for part in shown["parts"] if part["name"] == "context entries")


def test_looking_makes_no_database(place: RecordedPlace) -> None:
    place.run("context", "show")

    assert not (place.workspace / ".ollm").exists()


def test_people_get_bars_and_the_start_of_compaction(place: RecordedPlace) -> None:
    shown = place.run("context", "show")
    lines = shown.splitlines()

    assert lines[0].split() == ["part", "tokens"]
    assert max(line.count("█") for line in lines[1:] if not line.startswith("[")) == 30
    (bar,) = [line for line in lines if line.startswith("[")]
    assert bar.index("]") == 31
    assert "(context window 8,192)" in bar
    assert any(line.startswith("Compaction starts when messages exceed ") for line in lines)
    named = json.loads(place.run("context", "show", place.session[:8], "--json"))
    assert named["window"] == 8192
    assert named["trigger"] < named["available"] <= named["limit"] <= named["window"]

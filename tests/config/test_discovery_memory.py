"""What is remembered of the settings for finding files counts only for what it was taken from."""

from pathlib import Path

import pytest

from ollm.config.discovery_memory import (
    BUILTIN_IGNORES,
    SettingSources,
    WalkSettings,
    recall_walk_settings,
    remember_walk_settings,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    (made / "config.yaml").write_text("provider: {model: a}\n")
    return made


def recall(home: Path, workspace: Path | str = "/nowhere", **environment: str) -> tuple[object, ...] | None:
    found = recall_walk_settings(SettingSources(environment, str(home), str(workspace), "1"))
    return found and (found.max_depth, found.follow_symlinks, found.builtin_ignores)


def remember(home: Path, *ignores: str, **environment: str) -> None:
    settings = WalkSettings(3, follow_symlinks=True, builtin_ignores=ignores)
    remember_walk_settings(SettingSources(environment, str(home), "/nowhere", "1"), settings)


def test_without_any_settings_the_defaults_hold(tmp_path: Path) -> None:
    assert recall(tmp_path, OLLM_HOME="x", PATH="y") == (None, False, BUILTIN_IGNORES)


def test_what_was_remembered_is_recalled_for_the_same_sources_alone(home: Path) -> None:
    assert recall(home) is None
    remember(home, "a", "b c\udcff", "")
    assert recall(home) == (3, True, ("a", "b c\udcff", ""))
    assert recall(home, OLLM_MODEL="other") is None
    assert recall(home, OLLAMA_HOST="other") is None
    assert recall_walk_settings(SettingSources({}, str(home), "/nowhere", "2")) is None
    (home / "trust.json").write_text("{}")
    assert recall(home) is None
    (home / "trust.json").unlink()
    (home / "config.yaml").write_text("provider: {model: b}\n")
    assert recall(home) is None


def test_the_same_again_is_not_written_again(home: Path) -> None:
    remember(home, "a")
    memory = home / "cache" / "walk-settings"
    first = memory.stat().st_ino
    remember(home, "a")
    assert memory.stat().st_ino == first
    memory.write_text("damaged")
    remember(home, "a")
    assert recall(home) == (3, True, ("a",))
    remember(home, "b")
    assert recall(home) == (3, True, ("b",))


def test_a_secret_is_not_in_the_memory_and_a_variable_counts_by_its_value(home: Path) -> None:
    remember(home, "x", OLLM_API_KEY="1234567890", OLLM_MODEL="m")
    assert recall(home, OLLM_API_KEY="other", OLLM_MODEL="m") == (3, True, ("x",))
    assert recall(home, OLLM_MODEL="m") is None
    assert recall(home, OLLM_API_KEY="other", OLLM_MODEL="n") is None


def test_what_cannot_be_kept_is_read_every_time(home: Path, tmp_path: Path) -> None:
    remember(home, "two\nlines")
    assert recall(home) is None
    remember(home, "x")
    (home / "config.yaml").unlink()
    (home / "config.yaml").mkdir()
    assert recall(home) is None
    (tmp_path / "project" / ".ollm").mkdir(parents=True)
    (tmp_path / "project" / ".ollm" / "config.yaml").write_text("")
    assert recall(tmp_path / "none", tmp_path / "project") is None
    remember(tmp_path / "none", "x", OLLM_MODEL="m")
    assert not (tmp_path / "none").exists()

"""The environment and the home directory."""

from pathlib import Path

import pytest

from ollm.config.environment import (
    Home,
    find_home,
    find_user_home,
    has_proxy,
    read_log_level,
    wants_colour,
)


def test_the_home_is_moved_as_a_whole(tmp_path: Path) -> None:
    assert find_home({"OLLM_HOME": f" {tmp_path} "}).root == tmp_path
    assert find_home({"HOME": "/home/me"}).root == Path("/home/me/.ollm")
    assert find_home({"HOME": "/home/me", "OLLM_HOME": " "}).root == Path("/home/me/.ollm")
    assert find_home({"OLLM_HOME": "relative"}).root.is_absolute()


def test_the_password_database_answers_without_a_home() -> None:
    assert find_user_home({}) == Path.home()


@pytest.mark.parametrize(
    ("asked", "level"),
    [("debug", "DEBUG"), (" warn ", "WARNING"), ("ERROR", "ERROR"), ("loud", "INFO"), ("", "INFO")],
)
def test_a_log_level_that_is_none_is_info(asked: str, level: str) -> None:
    assert read_log_level({"OLLM_LOG_LEVEL": asked}) == level


def test_a_proxy_is_known_by_any_of_its_names() -> None:
    assert not has_proxy({"https_proxy": "http://x"})
    assert not has_proxy({"http_proxy": ""})
    assert all(has_proxy({name: "http://x"}) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"))


def test_colour_is_left_out_on_request_and_on_dumb_terminals() -> None:
    assert wants_colour({"TERM": "xterm"})
    assert wants_colour({"NO_COLOR": ""})
    assert not wants_colour({"NO_COLOR": "1"})
    assert not wants_colour({"TERM": "dumb"})


HOME = Home(Path("/h"))


def test_the_files_of_the_home_have_the_documented_names() -> None:
    names = {
        "config": "config.yaml",
        "grants": "grants.yaml",
        "trust": "trust.json",
        "input_history": "input-history",
        "sessions": "sessions",
        "legacy_sessions": "session-data",
        "snapshots": "context-snapshots",
        "index": "index.db",
        "global_db": "global.db",
        "models": "models",
        "trash": "trash",
        "undo": "undo",
        "log": "logs/ollm.log",
        "run": "run",
        "cache": "cache",
        "workspaces": "workspaces",
    }

    assert {name: getattr(HOME, name) for name in names} == {name: Path("/h") / path for name, path in names.items()}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~/.ollm/sessions", "/h/sessions"),
        ("~/.ollm", "/h"),
        ("elsewhere", "/h/elsewhere"),
        ("/abs", "/abs"),
        ("~/.ollmx", str(Path.home() / ".ollmx")),
    ],
)
def test_a_path_from_the_settings_moves_with_the_home(text: str, path: str) -> None:
    assert HOME.resolve_path(text) == Path(path)

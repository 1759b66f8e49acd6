"""Where everything of ours is: under one root, under the names of the design."""

from pathlib import Path

import pytest

from ollm.config.paths import Home

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

"""A configuration file that has not changed is not read as YAML again, and never read wrongly because of that."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ollm.config.load import load_settings
from ollm.config.paths import Home
from ollm.config.yaml_cache import parse_yaml_cached
from ollm.config.yaml_tree import SourcePosition, parse_yaml

PLACE = SourcePosition(file="/x/config.yaml", name="config.yaml")
TEXT = "# mine\nsessions:\n  maxSessions: 7\npolicy:\n  rules:\n    - {tool: ls, action: deny}\nloopDetecton: 1\n"


def test_the_second_reading_is_equal_to_the_first_down_to_every_place(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.config.write_text(TEXT, encoding="utf-8")

    assert load_settings(home, {}) == load_settings(home, {})
    assert (home.cache / "config.json").stat().st_mode & 0o777 == 0o600


def test_an_unchanged_file_is_read_without_the_yaml_library(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.config.write_text(TEXT, encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from ollm.config.load import load_settings; from ollm.config.paths import Home\n"
        f"found = load_settings(Home(root=Path({str(tmp_path)!r})), {{}})\n"
        "print(found.settings.sessions.max_sessions, len(found.problems), 'ruamel.yaml' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]

    assert [run.stdout for run in runs] == ["7 1 True\n", "7 1 False\n"]


def test_a_changed_file_is_read_anew_however_quickly_it_changed(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    for number in range(1, 6):
        home.config.write_text(f"sessions: {{maxSessions: {number}}}\n", encoding="utf-8")
        assert load_settings(home, {}).settings.sessions.max_sessions == number


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"form": 1, "text": "a: 1\\n", "tree": 7}', b'{"form": 99, "text": "a: 1\\n", "tree": null}'],
)
def test_a_damaged_memory_only_means_reading_anew(tmp_path: Path, damage: bytes) -> None:
    memory = tmp_path / "cache" / "config.json"
    memory.parent.mkdir()
    memory.write_bytes(damage)

    assert parse_yaml_cached("a: 1\n", PLACE, memory) == parse_yaml("a: 1\n", PLACE)


def test_a_memory_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()

    assert parse_yaml_cached("a: 1\n", PLACE, tmp_path / "cache" / "config.json") == parse_yaml("a: 1\n", PLACE)
    assert parse_yaml_cached("a: 1\n", PLACE, tmp_path / "no" / "cache" / "config.json") == parse_yaml("a: 1\n", PLACE)
    assert not (tmp_path / "no").exists()


scalars = some.sampled_from(
    ["1", "1.0", "-0.0", ".inf", ".nan", "true", "null", "text", "'quo ted'", "2024-01-01", "1e400", "é"]
)
texts = some.recursive(
    scalars,
    lambda inner: some.one_of(
        some.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        some.dictionaries(some.sampled_from("abcd"), inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        ),
    ),
    max_leaves=8,
)


@given(text=texts)
def test_whatever_the_text_its_tree_is_remembered_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    memory = tmp_path_factory.mktemp("memory") / "cache" / "config.json"
    whole = f"# one\nkey: {text}\n"

    first = parse_yaml_cached(whole, PLACE, memory)
    again = parse_yaml_cached(whole, PLACE, memory)

    assert repr(first) == repr(again) == repr(parse_yaml(whole, PLACE))


def test_a_file_of_comments_is_remembered_too(tmp_path: Path) -> None:
    memory = tmp_path / "cache" / "config.json"

    assert parse_yaml_cached("# nothing\n", PLACE, memory) is None
    assert memory.exists()
    assert parse_yaml_cached("# nothing\n", PLACE, memory) is None

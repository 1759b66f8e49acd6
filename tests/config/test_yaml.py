"""YAML with places, and mappings read into settings."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import Meta

from ollm.config.environment import Home
from ollm.config.load import load_settings
from ollm.config.validation import MAX_NUMBER, SettingsReader
from ollm.config.yaml_tree import InvalidYaml, SourcePosition, parse_yaml, parse_yaml_cached, to_plain_value
from ollm.domain.struct import Data

FILE = SourcePosition(file="c.yaml")


def test_a_value_knows_its_line_and_column() -> None:
    entry = parse_yaml("a:\n  b: 5\n", FILE)

    assert entry is not None
    assert str(entry.value["a"].value["b"].place) == "c.yaml:2:3"
    assert str(SourcePosition(file="c.yaml", name="your file", line=1, column=2)) == "your file:1:2"
    assert str(SourcePosition(file="OLLM_MODEL")) == "OLLM_MODEL"


def test_an_anchor_is_followed_and_merged() -> None:
    entry = parse_yaml("base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\n", FILE)

    assert entry is not None
    assert to_plain_value(entry)["more"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "duplicate key a"),
        ("a: &x [*x]\n", "endless"),
        ("a: !!python/object:os.system x\n", "means nothing here"),
        ("? [1]\n: 2\n", "keys must be plain words"),
        ("a:\n  <<: 5\n", "takes a mapping"),
        ("a: [\n", "is not YAML"),
        ("[" * 100, "is not YAML"),
    ],
)
def test_hostile_text_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidYaml, match=told) as raised:
        parse_yaml(text, FILE)

    assert raised.value.place.file == "c.yaml"


def test_a_bomb_of_aliases_ends() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(InvalidYaml, match="endless"):
        parse_yaml("\n".join(lines), FILE)


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
        "import sys; from pathlib import Path; from ollm.config.load import load_settings; from ollm.config.environment import Home\n"
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
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'[2, "a: 1\\n", 7]',
        b'[99, "a: 1\\n", null]',
        b'{"form": 1, "text": "a: 1\\n", "tree": 7}',
    ],
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


class Inner(Data, frozen=True):
    api_key: str | None = None
    count: Annotated[int, Meta(ge=1)] = 1


class Outer(Data, frozen=True):
    inner: Inner = Inner()
    colour: Literal["red", "green"] = "red"
    names: tuple[str, ...] = ()
    share: float = 0.5


def read(text: str, fatal: tuple[str, ...] = ()) -> tuple[dict[str, object], list[str], SettingsReader]:
    reader = SettingsReader(fatal)
    entry = parse_yaml(text, SourcePosition(file="c"))
    assert entry is not None
    return reader.read_struct(Outer, entry), [f"{m.key}: {m.message}" for m in reader.mistakes], reader


def test_numbers_without_end_are_refused() -> None:
    values, told, _ = read(f"share: .inf\ninner: {{count: {MAX_NUMBER + 1}}}\n")

    assert values == {"inner": {}}
    assert told == ["share: expected a finite number", "inner.count: the number is too large"]

"""YAML with places: values know their line, and hostile text ends in an error with a place."""

import pytest

from ollm.config.yaml_tree import InvalidYaml, SourcePosition, parse_yaml, to_plain_value

FILE = SourcePosition(file="c.yaml")


def test_a_value_knows_its_line_and_column() -> None:
    entry = parse_yaml("a:\n  b: 5\n", FILE)

    assert entry is not None
    assert str(entry.value["a"].value["b"].place) == "c.yaml:2:3"
    assert str(SourcePosition(file="c.yaml", name="your file", line=1, column=2)) == "your file:1:2"
    assert str(SourcePosition(file="OLLM_MODEL")) == "OLLM_MODEL"


def test_words_are_those_of_yaml_1_2() -> None:
    entry = parse_yaml("a: yes\nb: true\nc: 0o17\nd: 2026-01-01\ne: ~\n", FILE)

    assert entry is not None
    assert to_plain_value(entry) == {"a": "yes", "b": True, "c": 15, "d": "2026-01-01", "e": None}


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

"""One key set anew: that value changes, every other character stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.yaml_edit import format_flow_value, set_key
from ollm.config.yaml_tree import SourcePosition, parse_yaml, to_plain_value
from ollm.domain.errors import UsageError

TEXT = "# mine\nprovider:\n  model: qwen  # the small one\n  type: ollama\n\nsessions: {maxSessions: 5}\n"


def parse(text: str) -> object:
    entry = parse_yaml(text, SourcePosition(file="t"))
    return {} if entry is None else to_plain_value(entry)


def test_only_the_value_changes() -> None:
    assert set_key(TEXT, ["provider", "model"], "llama3") == TEXT.replace("qwen", "llama3")


def test_a_new_key_is_put_into_its_section() -> None:
    assert parse(set_key(TEXT, ["provider", "baseUrl"], "http://x:1"))["provider"]["baseUrl"] == "http://x:1"  # type: ignore[index]
    assert set_key(TEXT, ["sessions", "trashDays"], 3).count("#") == TEXT.count("#")


def test_a_new_section_is_added_behind_everything() -> None:
    assert set_key(TEXT, ["policy", "approval"], "ask") == TEXT + "policy:\n  approval: ask\n"
    assert set_key("", ["a"], True) == "a: true\n"


def test_line_ends_stay_what_they_are() -> None:
    assert set_key("a: 1\r\n", ["b"], 2) == "a: 1\r\nb: 2\r\n"


def test_it_refuses_rather_than_lose_a_comment() -> None:
    with pytest.raises(UsageError, match="Cannot set names without changing other parts"):
        set_key("names:\n  - a # first\n  - b\n", ["names"], ["c"])


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**6), 10**6)
        | st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    )
)
def test_every_value_on_one_line_reads_back(value: object) -> None:
    text = f"key: {format_flow_value(value)}\n"

    assert parse(text) == {"key": value}

"""Settings as people read them: secrets hidden, every value with where it was set, a schema for editors."""

from ollm.config.show import render_yaml
from ollm.config.yaml_tree import SourcePosition, parse_yaml, to_plain_value


def test_what_was_set_is_followed_by_its_place_and_the_text_reads_back() -> None:
    document = {"a": {"b": [1, "x y"], "c": None}, "d": {}}

    text = render_yaml(document, {"a.b": SourcePosition(file="f.yaml", line=3, column=1)})

    assert '  b: [1, "x y"]  # f.yaml:3:1\n' in text
    entry = parse_yaml(text, SourcePosition(file="t"))
    assert entry is not None
    assert to_plain_value(entry) == document

"""Settings as people read them: secrets hidden, every value with where it was set, a schema for editors."""

import json
from pathlib import Path

import msgspec

from ollm.config.settings import Settings
from ollm.config.show import SECRET_MASK, build_schema, redact_settings, render_yaml
from ollm.config.yaml_tree import SourcePosition, parse_yaml, to_plain_value
from tests.config.files import loaded


def test_secrets_are_hidden_wherever_they_stand(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        """
        provider: {type: openai, apiKey: sk-12345, baseUrl: "http://me:hunter2@host/v1"}
        mcpServers: {a: {command: x, env: {ANY: value}, headers: {Authorization: abc}}}
        """,
    )

    text = json.dumps(redact_settings(found.settings))

    assert not any(secret in text for secret in ("sk-12345", "hunter2", "value", "abc"))
    assert f"http://{SECRET_MASK}@host/v1" in text


def test_what_was_set_is_followed_by_its_place_and_the_text_reads_back() -> None:
    document = {"a": {"b": [1, "x y"], "c": None}, "d": {}}

    text = render_yaml(document, {"a.b": SourcePosition(file="f.yaml", line=3, column=1)})

    assert '  b: [1, "x y"]  # f.yaml:3:1\n' in text
    entry = parse_yaml(text, SourcePosition(file="t"))
    assert entry is not None
    assert to_plain_value(entry) == document


def test_the_schema_marks_unknown_keys_and_knows_both_forms() -> None:
    schema = build_schema()

    assert schema["$defs"]["Settings"]["additionalProperties"] is False
    assert set(schema["$defs"]["Settings"]["properties"]["services"]["properties"]) >= {"session", "compression"}
    names = {field.encode_name for field in msgspec.structs.fields(Settings)}
    assert names <= set(schema["$defs"]["Settings"]["properties"])

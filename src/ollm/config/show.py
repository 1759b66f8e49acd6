"""Settings for people and editors: YAML with secrets hidden, and a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ollm.config.change import format_flow_value, require_known_key
from ollm.config.load import split_key
from ollm.config.settings import MODEL_URLS, ModelSettings, Settings
from ollm.config.validation import SERVICES
from ollm.config.yaml_tree import SourcePosition

SECRET_MASK = "********"  # noqa: S105 - the mask, not a secret
SECRET_NAME = re.compile(r"(?i)(api[-_]?key|secret|passw(or)?d|token|credentials?|authorization|cookie)$")
URL_PASSWORD = re.compile(r"""(?<=//)[^@\s]*:\S*(?=@)|(?<=\bpassword=)(?:'[^']*|"[^"]*|[^\s&]+)""")


def redact_settings(settings: Settings) -> dict[str, Any]:
    """Return the whole document with every secret as `********`."""
    hidden: dict[str, Any] = _hide_secrets(msgspec.to_builtins(settings), everything=False)
    return hidden


def _hide_secrets(value: Any, *, everything: bool) -> Any:
    if isinstance(value, Mapping):
        return {key: _hide_entry(key, item, everything) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hide_secrets(item, everything=everything) for item in value]
    if isinstance(value, str):
        return SECRET_MASK if everything and value else URL_PASSWORD.sub(SECRET_MASK, value)
    return value


def _hide_entry(key: str, value: Any, everything: bool) -> Any:
    secret = isinstance(value, str) and SECRET_NAME.search(key) is not None
    return _hide_secrets(value, everything=everything or secret or key in ("env", "headers"))


def find_value(document: Mapping[str, Any], key: str) -> Any:
    """Find the value of a dotted key; that of a section is the mapping of its keys."""
    require_known_key(key)
    value: Any = document
    for part in split_key(key):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def render_yaml(document: Mapping[str, Any], sources: Mapping[str, SourcePosition]) -> str:
    """Render block YAML, with the source after every value that is not a default."""
    return "\n".join(_render_lines(document, sources, "", "")) + "\n"


def _render_lines(
    document: Mapping[str, Any], sources: Mapping[str, SourcePosition], path: str, indent: str
) -> Iterator[str]:
    for key, value in document.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping) and value and name not in sources:
            yield f"{indent}{format_flow_value(key)}:"
            yield from _render_lines(value, sources, name, indent + "  ")
        else:
            said = f"  # {sources[name]}" if name in sources else ""
            yield f"{indent}{format_flow_value(key)}: {format_flow_value(value)}{said}"


def build_schema() -> dict[str, Any]:
    """Build the JSON Schema of the file for editors; it marks unknown keys."""
    (found, model, urls), definitions = msgspec.json.schema_components((Settings, ModelSettings, MODEL_URLS))
    for definition in definitions.values():
        definition["additionalProperties"] = False
    properties = definitions["Settings"]["properties"]
    properties["models"] |= {"properties": {"urls": urls}, "additionalProperties": model}
    services = {name: {"$ref": properties[section]["$ref"]} for name, section in SERVICES.items()}
    properties["services"] = {"type": "object", "properties": services, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ollm configuration",
        **found,
        "$defs": definitions,
    }

"""Conversion of a model's arguments to a tool (T10.1, T12.1).

Obvious variants are accepted: `"5"` for 5, snake_case, one string for a list, JSON inside a string, null for "not
given". All other mistakes are reported at once, one line each, with the expected value and the closest valid name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from ollm.config.validation import explain_mismatch, strip_annotation
from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.text import format_count, suggest_names

MAX_MISTAKES = 20
NULL = {"type": "null"}
BOOLEAN_WORDS = {"true": True, "yes": True, "y": True, "on": True, "1": True}
BOOLEAN_WORDS |= {"false": False, "no": False, "n": False, "off": False, "0": False}


def describe_tool(tool: type) -> str:
    """Return the class's docstring on one line."""
    return " ".join(inspect.cleandoc(tool.__doc__ or "").split())


@lru_cache(maxsize=256)
def build_parameters(tool: type) -> JsonObject:
    """Build the JSON Schema for the model, without bounds, defaults and null."""
    (reference,), parts = msgspec.json.schema_components([tool], ref_template="{name}")
    return _simplify_schema(reference, parts)


def _simplify_schema(schema: JsonObject, parts: Mapping[str, JsonObject]) -> JsonObject:
    if "anyOf" in schema:
        choices = [_simplify_schema(choice, parts) for choice in schema["anyOf"] if choice != NULL]
        found = choices[0] if len(choices) == 1 else {"anyOf": choices}
    elif "$ref" in schema:
        found = _simplify_object(parts[schema["$ref"]], parts)
    elif schema.get("type") == "array":
        most = {"maxItems": schema["maxItems"]} if "maxItems" in schema else {}
        found = {"type": "array", "items": _simplify_schema(schema.get("items", {}), parts), **most}
    elif "enum" in schema:
        found = {"type": "string", "enum": [str(value) for value in schema["enum"]]}
    else:
        found = {"type": schema["type"]} if "type" in schema else {}
    return {**found, "description": schema["description"]} if "description" in schema else found


def _simplify_object(schema: JsonObject, parts: Mapping[str, JsonObject]) -> JsonObject:
    properties = {name: _simplify_schema(value, parts) for name, value in schema["properties"].items()}
    required = {"required": schema["required"]} if schema["required"] else {}
    return {"type": "object", "properties": properties, **required}


def find_mistakes(value: Any, kind: type[msgspec.Struct]) -> list[str]:
    """Describe the first twenty mistakes, one line each."""
    found = list(islice(_check_object(value, kind, ""), MAX_MISTAKES + 1))
    return found if len(found) <= MAX_MISTAKES else [*found[:MAX_MISTAKES], "and more."]


def _check_object(value: Any, kind: type[msgspec.Struct], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: {explain_mismatch(kind, value, where)}."
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    prefix = f"{where}." if where else ""
    for key in value:
        if key not in fields:
            yield f"{prefix}{str(key)[:60]}: no such parameter; {_suggest_parameter(str(key), list(fields))}"
    for name, field in fields.items():
        if name in value:
            yield from _check_value(value[name], field.type, f"{prefix}{name}")
        elif field.required:
            expected = explain_mismatch(field.type, None, name).removesuffix(", not nothing")
            yield f"{prefix}{name}: missing; {expected or 'expected a value'}."


def _suggest_parameter(key: str, names: list[str]) -> str:
    near = suggest_names(key, names)
    return f'did you mean "{near[0]}"?' if near else f"the parameters are {', '.join(names) or 'none'}."


def _check_value(value: Any, kind: Any, path: str) -> Iterator[str]:
    inner = _strip_optional(kind)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and value is not None:
        yield from _check_object(value, inner, path)
        return
    items = [] if get_origin(inner) not in (tuple, list) or not isinstance(value, list) else value
    wrong = [line for at, item in enumerate(items) for line in _check_value(item, get_args(inner)[0], f"{path}[{at}]")]
    yield from wrong
    if not wrong and (expected := explain_mismatch(kind, value, path)):
        yield f"{path}: {expected}{'' if expected.endswith('?') else '.'}"


def _strip_optional(kind: Any) -> Any:
    """Return the bare type, without annotations and `| None`."""
    kind = strip_annotation(kind)
    rest = [part for part in get_args(kind) if part is not type(None)]
    return _strip_optional(rest[0]) if get_origin(kind) in (Union, UnionType) and len(rest) == 1 else kind


def parse_arguments(tool: Any, arguments: Any) -> Any:
    """Build an instance of a tool's class from these arguments. Raises ToolFailure("ValidationError")."""
    if tool.exclusive and isinstance(arguments, dict):
        arguments = drop_empty_rivals(arguments, tool.exclusive)
    try:
        return msgspec.convert(arguments, tool)
    except (msgspec.ValidationError, RecursionError):
        return _parse_tolerantly(tool, arguments)


def drop_empty_rivals(arguments: JsonObject, rivals: tuple[str, ...]) -> JsonObject:
    """Drop the empty ones among mutually exclusive parameters if another has a value: models fill in every parameter
    they see."""
    empty = {name for name in rivals if name in arguments and arguments[name] in ("", 0, None, "null", "none")}
    says = any(name in arguments and name not in empty for name in rivals)
    return {name: value for name, value in arguments.items() if name not in empty} if says and empty else arguments


def _parse_tolerantly(tool: Any, arguments: Any) -> Any:
    given = _decode_json(arguments) if isinstance(arguments, str) and not tool.strict else arguments
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise _make_failure(tool.name, ["the arguments must be a JSON object, single and complete."])
    schema = build_parameters(tool)
    named = tool.reshape(_apply_aliases(given, tool.aliases, schema["properties"]))
    shaped = given if tool.strict else coerce_value(named, schema)
    found = find_mistakes(shaped, tool)
    if found:
        raise _make_failure(tool.name, found)
    try:
        return msgspec.convert(shaped, tool)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _make_failure(tool.name, [f"{error}."]) from error


def _make_failure(name: str, lines: list[str]) -> ToolFailure:
    listed = "\n".join(f"- {line}" for line in lines)
    return ToolFailure(
        "ValidationError", f"{name} was not run: {format_count(len(lines), 'mistake')} in its arguments.\n{listed}"
    )


def _apply_aliases(given: JsonObject, aliases: Mapping[str, str], names: Mapping[str, Any]) -> JsonObject:
    meant = {key: key if key in names else aliases.get(str(key), key) for key in given}
    return {key if meant[key] in given else meant[key]: value for key, value in given.items()}


def coerce_value(value: Any, schema: JsonObject) -> Any:  # noqa: PLR0911 - one return per kind of type
    """Convert the value to the schema's form if that is unambiguous; otherwise return it unchanged."""
    match schema.get("type"):
        case "object" if value is not None:
            return _coerce_object(_decode_json(value) if isinstance(value, str) else value, schema)
        case "array" if value is not None:
            return _coerce_list(value, schema["items"])
        case "boolean" if isinstance(value, str | int):
            return BOOLEAN_WORDS.get(str(value).strip().lower(), value)
        case "integer" | "number":
            return _coerce_number(value, whole=schema["type"] == "integer")
        case "string" if "enum" in schema:
            wanted = str(value).strip().lower()
            return next((choice for choice in schema["enum"] if choice.lower() == wanted), value)
        case "string":
            return _coerce_text(value)
    return value


def _coerce_object(value: Any, schema: JsonObject) -> Any:
    if not isinstance(value, dict):
        return value
    properties, required = schema["properties"], schema.get("required", ())
    named = {_to_camel(key) if _to_camel(key) in properties else key: item for key, item in value.items()}
    return {
        name: coerce_value(item, properties.get(name, {}))
        for name, item in named.items()
        if item is not None or name in required or name not in properties
    }


def _to_camel(name: object) -> str:
    first, *rest = str(name).split("_")
    return first + "".join(word.capitalize() for word in rest)


def _coerce_list(value: Any, item: JsonObject) -> Any:
    if isinstance(value, str):
        value = _decode_json(value)
    if isinstance(value, str | dict):
        value = [value]
    return [coerce_value(each, item) for each in value] if isinstance(value, list | tuple) else value


def _coerce_number(value: Any, *, whole: bool) -> Any:
    if isinstance(value, str):
        try:
            value = float(value) if not value.strip().lstrip("+-").isdecimal() else int(value)
        except ValueError:
            return value
    if whole and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _coerce_text(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _decode_json(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return text

"""Arguments as models write them, made into a tool (T10.1, T12.1).

What is plainly meant is understood: `"5"` for 5, snake_case, one string for a list, JSON inside a string, null for "not
given". Everything else is told at once, one line per mistake, with what was expected and the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
from msgspec import inspect as types

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.tools.framework.argument_errors import find_mistakes
from ollm.tools.framework.schema import get_struct_type, is_optional, unwrap_type


class ToolParameters(Protocol):
    """What is asked of a tool's class here."""

    name: ClassVar[str]
    aliases: ClassVar[Mapping[str, str]]
    exclusive: ClassVar[tuple[str, ...]]

    @classmethod
    def reshape(cls, arguments: JsonObject) -> JsonObject: ...


ToolType = TypeVar("ToolType", bound=ToolParameters)

BOOLEAN_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_arguments(tool: type[ToolType], arguments: Any) -> ToolType:
    """The tool with these arguments, or ToolFailure("ValidationError")."""
    if tool.exclusive and isinstance(arguments, dict):
        arguments = drop_empty_rivals(arguments, tool.exclusive)
    try:
        made: ToolType = msgspec.convert(arguments, tool)
    except (msgspec.ValidationError, RecursionError):
        return _parse_tolerantly(tool, arguments)
    return made


def drop_empty_rivals(arguments: JsonObject, rivals: tuple[str, ...]) -> JsonObject:
    """Without the empty ones of parameters that exclude each other, where one of them says something: models fill in
    all that they are shown."""
    empty = {name for name in rivals if name in arguments and arguments[name] in ("", 0, None, "null", "none")}
    says = any(name in arguments and name not in empty for name in rivals)
    return {name: value for name, value in arguments.items() if name not in empty} if says and empty else arguments


def _parse_tolerantly(tool: type[ToolType], arguments: Any) -> ToolType:
    given = _decode_json(arguments) if isinstance(arguments, str) else arguments
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise _make_failure(tool.name, [f"the arguments must be a JSON object, got {_describe_kind(arguments)}."])
    info = get_struct_type(tool)
    shaped = _coerce_value(tool.reshape(_apply_aliases(given, tool, info)), info)
    found = find_mistakes(shaped, info)
    if found:
        raise _make_failure(tool.name, found)
    try:
        made: ToolType = msgspec.convert(shaped, tool)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _make_failure(tool.name, [f"{error}."]) from error
    return made


def _make_failure(name: str, lines: list[str]) -> ToolFailure:
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    listed = "\n".join(f"- {line}" for line in lines)
    return ToolFailure("ValidationError", f"{name} was not run: {count} in its arguments.\n{listed}")


def _apply_aliases(given: JsonObject, tool: type[ToolParameters], info: types.StructType) -> JsonObject:
    names = {field.encode_name for field in info.fields}
    renamed: JsonObject = {}
    for key, value in given.items():
        name = key if key in names else tool.aliases.get(str(key), key)
        if name not in given or name == key:
            renamed[name] = value
        else:
            renamed[key] = value
    return renamed


def _coerce_value(value: Any, info: types.Type) -> Any:  # noqa: PLR0911 - one return per kind of type
    """The value in the form the type wants, where that is plain; otherwise the value as it is."""
    if value is None and is_optional(info):
        return None
    info = unwrap_type(info)
    match info:
        case types.StructType():
            return _coerce_struct(_decode_json(value) if isinstance(value, str) else value, info)
        case types.VarTupleType() | types.ListType():
            return _coerce_list(value, info.item_type)
        case types.BoolType():
            return BOOLEAN_WORDS.get(str(value).strip().lower(), value) if isinstance(value, str | int) else value
        case types.IntType() | types.FloatType():
            return _coerce_number(value, whole=isinstance(info, types.IntType))
        case types.LiteralType():
            wanted = str(value).strip().lower()
            return next((choice for choice in info.values if str(choice).lower() == wanted), value)
        case types.StrType():
            return _coerce_text(value)
    return value


def _coerce_struct(value: Any, info: types.StructType) -> Any:
    if not isinstance(value, dict):
        return value
    by_name: dict[Any, types.Field] = {field.encode_name: field for field in info.fields}
    snake: dict[Any, str] = {field.name: field.encode_name for field in info.fields}
    shaped: dict[Any, Any] = {}
    for key, item in value.items():
        name = snake.get(key, key)
        field = by_name.get(name)
        if field is None:
            shaped[name] = item
        elif item is not None or field.required or is_optional(field.type):
            shaped[name] = _coerce_value(item, field.type)
    return shaped


def _coerce_list(value: Any, item: types.Type) -> Any:
    if isinstance(value, str):
        value = _decode_json(value)
    if isinstance(value, str | dict):
        value = [value]
    return [_coerce_value(each, item) for each in value] if isinstance(value, list | tuple) else value


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
    """What a string holds when it holds a JSON object or list; otherwise the string itself."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return text


def _describe_kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), type(value).__name__)

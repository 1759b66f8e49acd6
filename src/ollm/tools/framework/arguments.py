"""Arguments as models write them, made into a tool (T10.1, T12.1).

What is plainly meant is understood: `"5"` for 5, snake_case, one string for a list, JSON inside a string, null for "not
given". Everything else is told at once, one line per mistake, with what was expected and the nearest valid name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
from msgspec import inspect as types

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.text import format_count, suggest_names


def describe_tool(tool: type) -> str:
    """The class's own docstring, on one line."""
    return " ".join(inspect.cleandoc(tool.__doc__ or "").split())


@lru_cache(maxsize=256)
def get_struct_type(tool: type) -> types.StructType:
    found = types.type_info(tool)
    assert isinstance(found, types.StructType)
    return found


def build_parameters(tool: type) -> JsonObject:
    return build_schema(get_struct_type(tool))


def unwrap_type(info: types.Type) -> types.Type:
    """The type itself, without annotations and without `| None`."""
    while True:
        if isinstance(info, types.Metadata):
            info = info.type
        elif isinstance(info, types.UnionType) and (rest := _drop_none(info)) is not None:
            info = rest
        else:
            return info


def _drop_none(info: types.UnionType) -> types.Type | None:
    rest = [member for member in info.types if not isinstance(member, types.NoneType)]
    return rest[0] if len(rest) == 1 else None


def is_optional(info: types.Type) -> bool:
    """True if null is a value of this type."""
    if isinstance(info, types.Metadata):
        return is_optional(info.type)
    if isinstance(info, types.UnionType):
        return any(isinstance(member, types.NoneType) for member in info.types)
    return isinstance(info, types.AnyType | types.NoneType)


def find_note(info: types.Type) -> str:
    """The description an annotation carries, however deep it is."""
    if isinstance(info, types.Metadata):
        text = (info.extra_json_schema or {}).get("description", "")
        return str(text) or find_note(info.type)
    if isinstance(info, types.UnionType):
        return next((note for member in info.types if (note := find_note(member))), "")
    return ""


def build_schema(info: types.Type) -> JsonObject:
    note, info = find_note(info), unwrap_type(info)
    schema = _build_bare_schema(info)
    return {**schema, "description": note} if note else schema


def _build_bare_schema(info: types.Type) -> JsonObject:  # noqa: PLR0911 - one return per kind of type
    match info:
        case types.StructType():
            return _build_object_schema(info)
        case types.VarTupleType() | types.ListType():
            most = {"maxItems": info.max_length} if info.max_length else {}
            return {"type": "array", "items": build_schema(info.item_type), **most}
        case types.LiteralType():
            return {"type": "string", "enum": [str(value) for value in info.values]}
        case types.IntType() | types.FloatType():
            return {"type": "integer" if isinstance(info, types.IntType) else "number"}
        case types.BoolType():
            return {"type": "boolean"}
        case types.StrType():
            return {"type": "string"}
        case types.AnyType():
            return {}
    raise TypeError(f"no JSON Schema for a parameter of type {info!r}")


def _build_object_schema(info: types.StructType) -> JsonObject:
    properties = {field.encode_name: build_schema(field.type) for field in info.fields}
    required = [field.encode_name for field in info.fields if field.required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


MAX_MISTAKES = 20


def find_mistakes(value: Any, info: types.StructType) -> list[str]:
    """One line per mistake, the first twenty."""
    found: list[str] = []
    for line in _check_object(value, info, ""):
        if len(found) == MAX_MISTAKES:
            return [*found, "and more."]
        found.append(line)
    return found


def describe_type(info: types.Type) -> str:  # noqa: PLR0911 - one return per kind of type
    info = unwrap_type(info)
    match info:
        case types.IntType() | types.FloatType():
            return ("a whole number" if isinstance(info, types.IntType) else "a number") + _describe_bounds(info)
        case types.StrType():
            return "text that is not empty" if info.min_length else "text"
        case types.BoolType():
            return "true or false"
        case types.LiteralType():
            return "one of " + ", ".join(str(value) for value in info.values)
        case types.VarTupleType() | types.ListType():
            least = "a list with at least one item" if info.min_length else "a list"
            most = f" of at most {info.max_length} items" if info.max_length else ""
            return f"{least}{most}, each {describe_type(info.item_type)}"
        case types.StructType():
            return "an object with " + ", ".join(field.encode_name for field in info.fields)
    return "a value"


def _describe_bounds(info: types.IntType | types.FloatType) -> str:
    words = {"of at least": info.ge, "greater than": info.gt, "of at most": info.le, "less than": info.lt}
    return "".join(f" {word} {bound:g}" for word, bound in words.items() if bound is not None)


def _check_object(value: Any, info: types.StructType, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: expected {describe_type(info)}, got {_describe_value(value)}."
        return
    fields = {field.encode_name: field for field in info.fields}
    for key in value:
        if key not in fields:
            yield _describe_unknown(str(key), list(fields), where)
    for name, field in fields.items():
        path = f"{where}.{name}" if where else name
        if name in value:
            yield from _check_value(value[name], field.type, path)
        elif field.required:
            note = find_note(field.type).rstrip(".")
            yield f"{path}: missing; expected {describe_type(field.type)}" + (f" ({note})." if note else ".")


def _describe_unknown(key: str, names: list[str], where: str) -> str:
    near = suggest_names(key, names)
    hint = f'did you mean "{near[0]}"?' if near else f"the parameters are {', '.join(names) or 'none'}."
    return f"{where + '.' if where else ''}{key[:60]}: no such parameter; {hint}"


def _check_value(value: Any, info: types.Type, path: str) -> Iterator[str]:
    if value is None and is_optional(info):
        return
    info = unwrap_type(info)
    if isinstance(info, types.StructType):
        yield from _check_object(value, info, path)
    elif isinstance(info, types.VarTupleType | types.ListType) and isinstance(value, list):
        if len(value) < (info.min_length or 0):
            yield f"{path}: expected {describe_type(info)}, got an empty list."
        if len(value) > (info.max_length or len(value)):
            yield f"{path}: expected {describe_type(info)}, got {len(value)}."
        for index, item in enumerate(value):
            yield from _check_value(item, info.item_type, f"{path}[{index}]")
    elif not _fits(value, info):
        yield f"{path}: expected {describe_type(info)}, got {_describe_value(value)}."


def _fits(value: Any, info: types.Type) -> bool:  # noqa: PLR0911 - one return per kind of type
    match info:
        case types.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _is_within(value, info)
        case types.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool) and _is_within(value, info)
        case types.StrType():
            return isinstance(value, str) and len(value) >= (info.min_length or 0)
        case types.BoolType():
            return isinstance(value, bool)
        case types.LiteralType():
            return value in info.values
        case types.VarTupleType() | types.ListType():
            return False
    return True


def _is_within(value: float, info: types.IntType | types.FloatType) -> bool:
    return (
        (info.ge is None or value >= info.ge)
        and (info.gt is None or value > info.gt)
        and (info.le is None or value <= info.le)
        and (info.lt is None or value < info.lt)
    )


def _describe_value(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool) or value is None else type(value).__name__
    named = {"None": "null", "True": "true", "False": "false", "dict": "an object", "list": "a list"}
    return named.get(text, text if len(text) <= 60 else text[:57] + "...")


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
    listed = "\n".join(f"- {line}" for line in lines)
    return ToolFailure(
        "ValidationError", f"{name} was not run: {format_count(len(lines), 'mistake')} in its arguments.\n{listed}"
    )


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
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return text


def _describe_kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), type(value).__name__)

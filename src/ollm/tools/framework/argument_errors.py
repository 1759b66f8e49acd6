"""What is wrong with a call's arguments, all of it, in words a model can act on (T12.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import inspect as types

from ollm.domain.suggest import suggest_names
from ollm.tools.framework.schema import find_note, is_optional, unwrap_type

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
    """A type in words."""
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
            return f"{least}, each {describe_type(info.item_type)}"
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

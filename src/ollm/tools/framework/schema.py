"""JSON Schemas of tool parameters (T1.6): short, because every model reads them with every request.

No titles, defaults, null branches or bounds (a value out of bounds is explained when it comes), and structs are
where they are used instead of in `$defs`.
"""

from __future__ import annotations

import inspect
from functools import lru_cache

from msgspec import inspect as types

from ollm.domain.messages import JsonObject


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
    """Whether null is a value of this type."""
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
            return {"type": "array", "items": build_schema(info.item_type)}
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

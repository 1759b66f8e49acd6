"""The base classes of all data: frozen structs, camelCase on disk and on the wire, snake_case in code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

if sys.modules.get("typing_extensions", sys) is None:
    del sys.modules["typing_extensions"]  # The command hides it until msgspec is loaded.

T = TypeVar("T")


class Data(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Frozen data with camelCase names outside. Make changed copies with `msgspec.structs.replace`."""


class SparseData(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Like `Data`, but fields with their default value are not written."""


def convert_or_describe(value: Mapping[str, Any], kind: type[T], expected: Mapping[str, str]) -> T | str:
    """Convert a mapping; for a wrong field return a sentence with what is `expected` of it."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        key = str(error).partition("`$.")[2].partition("`")[0].partition("[")[0]
        return f"{key}: expected {expected[key]}"

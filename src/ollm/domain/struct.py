"""The base classes of all data: frozen structs, camelCase on disk and on the wire, snake_case in code."""

from __future__ import annotations

import msgspec


class Data(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Frozen data with camelCase names outside. Make changed copies with `msgspec.structs.replace`."""


class SparseData(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Like `Data`, but fields with their default value are not written."""

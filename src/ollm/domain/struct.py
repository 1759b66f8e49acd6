"""The one way data looks here: frozen structs, camelCase on disk and on the wire, snake_case in code."""

from __future__ import annotations

import msgspec


class Data(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Frozen data with camelCase names outside. Change is a copy: `msgspec.structs.replace`."""


class SparseData(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Like `Data`, but fields that hold their default are not written."""

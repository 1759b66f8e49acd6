"""RE2 for bytes: linear time on any rule and any name, and nothing printed about a bad expression."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

_MEMORY = 64 << 20
_NOTHING: frozenset[str] = frozenset()


def _options(*, ignore_case: bool) -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = True
    options.case_sensitive = not ignore_case
    return options


def compile_bytes(expression: bytes, *, ignore_case: bool = False) -> Any:
    import re2

    return re2.compile(expression, _options(ignore_case=ignore_case))


def compile_set(expressions: list[bytes], *, ignore_case: bool = False) -> Any:
    """All of them at once: `.Match(text)` gives the numbers of those that match the whole text, or None."""
    import re2

    together = re2.Set.FullMatchSet(_options(ignore_case=ignore_case))
    for expression in expressions:
        together.Add(expression)
    together.Compile()
    return together


def compile_for_names(expressions: list[bytes], *, ignore_case: bool = False) -> Any:
    """One expression that finds paths in a text in which each stands between `NUL /` and NUL; None for none at all."""
    if not expressions:
        return None
    together = b"|".join(b"(?:" + expression + b")" for expression in expressions)
    return compile_bytes(rb"\x00/(?:" + together + rb")\x00", ignore_case=ignore_case)


def matching(expression: Any, base: bytes, names: Sequence[str]) -> frozenset[str] | set[str]:
    """Those names of a directory whose path matches: one search for all of them. `base` is empty or ends with `/`."""
    if expression is None or not names:
        return _NOTHING
    start = b"\0/" + base
    text = start + os.fsencode(("\0\0/" + os.fsdecode(base)).join(names)) + b"\0"
    cut = len(start)
    return {os.fsdecode(found.group()[cut:-1]) for found in expression.finditer(text)}

"""RE2 for bytes: linear time on any rule and any name, and nothing printed about a bad expression."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

_MAX_MEMORY_BYTES = 64 << 20
_NOTHING: frozenset[str] = frozenset()


def _make_options(*, ignore_case: bool) -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    options.never_capture = True
    options.case_sensitive = not ignore_case
    return options


@lru_cache(maxsize=512)
def compile_bytes(expression: bytes, *, ignore_case: bool = False) -> Any:
    import re2

    return re2.compile(expression, _make_options(ignore_case=ignore_case))


def compile_set(expressions: list[bytes], *, ignore_case: bool = False, anywhere: bool = False) -> Any:
    """All at once: `.Match(text)` gives the numbers of those that match the whole text (or some of it), or None."""
    import re2

    kind = re2.Set.SearchSet if anywhere else re2.Set.FullMatchSet
    together = kind(_make_options(ignore_case=ignore_case))
    for expression in expressions:
        together.Add(expression)
    together.Compile()
    return together


class NameSearch:
    """Finds, among the names of a directory, those whose path matches one of the expressions: one search for all."""

    def __init__(self, expressions: Sequence[bytes], *, ignore_case: bool = False) -> None:
        together = b"|".join(b"(?:" + expression + b")" for expression in expressions)
        self._whole = rb"\x00/(?:" + together + rb")\x00"
        self._ignore_case = ignore_case
        self._any = compile_set([self._whole], ignore_case=ignore_case, anywhere=True)

    @cached_property
    def _each(self) -> Any:
        return compile_bytes(self._whole, ignore_case=self._ignore_case)

    def find_matches(self, base: str, names: Sequence[str]) -> frozenset[str] | set[str]:
        """`base` is the directory's path, empty or ending with `/`. Each path is between `NUL /` and NUL."""
        text = os.fsencode(f"\0/{base}" + f"\0\0/{base}".join(names) + "\0")
        if not names or not self._any.Match(text):
            return _NOTHING
        cut = len(os.fsencode(base)) + 2
        spans = [found.span() for found in self._each.finditer(text)]
        return set(os.fsdecode(b"\0".join([text[start + cut : end - 1] for start, end in spans])).split("\0"))

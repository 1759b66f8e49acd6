"""Regular expressions that are compiled when they are first used: most modules never need theirs."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """Stands for the compiled expression; a method is looked up there once and then found here."""

    def __init__(self, expression: str | bytes, flags: int = 0) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, found)
        return found


def compile_late(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, without its cost at import. Use its methods; the functions of `re` do not take it."""
    return cast("re.Pattern[AnyStr]", LazyPattern(expression, flags))

"""How the tables of this package are written: names as words in a text, and expressions as texts, which `re` compiles
and remembers when they are first needed: most never are."""

from __future__ import annotations


def split_names(text: str) -> tuple[str, ...]:
    """The words of a text, in their order."""
    return tuple(text.split())

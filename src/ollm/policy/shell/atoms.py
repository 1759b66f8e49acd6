"""The smallest piece of a word."""

from __future__ import annotations

from typing import Literal, NamedTuple

AtomKind = Literal["plain", "quoted", "value", "unknown", "several", "split", "guess"]


class Atom(NamedTuple):
    """One character of a word and how it came about: a `value` is a variable's, sure and open to globbing; unknown
    ones hold no character, `several` neither, and blanks in what it turns out to be make more than one word of it; a
    guess holds a likely one."""

    character: str
    kind: AtomKind

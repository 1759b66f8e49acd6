"""The smallest piece of a word."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["plain", "quoted", "value", "unknown", "split", "guess"]


class Atom(NamedTuple):
    """One character of a word and how it came about: a `value` is a variable's, sure and open to globbing; unknown
    ones hold no character; a guess holds a likely one."""

    character: str
    kind: Kind

"""Shell program database: the rows of table.txt as records, each built when its program is first met."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs import expressions, git, inner_commands
from ollm.policy.shell.programs.record import Granting, Launching, Program, Reading, Wrapping, Writing, read_row

Part = TypeVar("Part", bound=msgspec.Struct)
UNKNOWN_PROGRAM = Program()
_PARTS: dict[str, tuple[msgspec.Struct, str]] = {  # The second item is the field of a word that is not a flag.
    "reads": (Reading(), ""),
    "writes": (Writing(), "shape"),
    "wraps": (Wrapping(), ""),
    "launches": (Launching(), ""),
    "grants": (Granting(), "depth"),
}
_FUNCTIONS: dict[str, Any] = {
    **vars(inner_commands),
    **vars(expressions),
    **vars(git),
}  # The table names these functions.


@cache
def get_program(name: str) -> Program:
    """Return the record of a program, or an empty record if the program is unknown."""
    row = read_row(name)
    return _build_program(row) if row else UNKNOWN_PROGRAM


def _build_program(row: str) -> Program:
    facts = {key: text for key, _, text in (fact.strip().partition(" ") for fact in row.split(";"))}
    own = {word: word for word in facts.pop("options", "").split()}
    if "wraps" in facts:
        own["stops"] = "stops"
    parts: dict[str, Any] = {"options": _build_options({**facts, **own})}
    for key, (blank, first) in _PARTS.items():
        if key in facts:
            flags = [field.replace("_", "-") for field in blank.__struct_fields__]
            words = {word if word in flags else first: word for word in facts.pop(key).split()}
            parts[key] = _fill_part(blank, {**facts, **words})
    letters = dict(word.split("=") for word in facts.pop("flag-letters", "").split())
    record = msgspec.structs.replace(UNKNOWN_PROGRAM, **parts, flag_letters=letters)
    return _fill_part(record, facts)


def _build_options(facts: Mapping[str, str]) -> OptionGrammar:
    words = facts.get("long", "").split()
    grammar = OptionGrammar(
        long_values=tuple(word[:-1] for word in words if word.endswith("=")),
        optional=tuple(word[:-1] for word in words if word.endswith("?")),
        known=(*(word for word in words if not word.endswith(("=", "?"))), "help", "version"),
    )
    return _fill_part(grammar, facts)


def _fill_part(blank: Part, facts: Mapping[str, str]) -> Part:
    """Return a part of a record with the fields that the facts name."""
    given = {
        name: _read_fact(key, facts[key], getattr(blank, name))
        for name in blank.__struct_fields__
        if (key := name.replace("_", "-")) in facts
    }
    return msgspec.structs.replace(blank, **given)


def _read_fact(key: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        return True
    if isinstance(default, int):
        return int(text)
    if isinstance(default, tuple):
        return tuple(text.split())
    return _FUNCTIONS[text] if default is None and key != "flags" else text

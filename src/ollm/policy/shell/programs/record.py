"""The record of one shell program: its options, and what it reads, writes, runs and wraps."""

from __future__ import annotations

from ollm.domain.struct import Data
from ollm.policy.shell.options import OptionGrammar


class Reading(Data, frozen=True):
    """How a program that only reads treats its words. Every operand is a path, and every option that the grammar does
    not know may be anything.

    `danger`: options that run something or write. `names`: options that take the files to read from a file.
    `skip`: so many operands are no paths (a pattern), unless one of `pattern_options` gives it. `paths` false: operands
    are text. `read_options`: options whose value is a file read. `output`: the operand from which on files are
    written. `deep`: options that make it read a whole tree, hidden files too, `selecting` those that do so for the
    names in their value, `following` those that follow its links. `walks`: options with which it goes through trees,
    and `compares`: it goes through directories without any.
    """

    danger: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    skip: int = 0
    pattern_options: tuple[str, ...] = ()
    paths: bool = True
    read_options: tuple[str, ...] = ()
    output: int | None = None
    deep: tuple[str, ...] = ()
    selecting: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    walks: tuple[str, ...] = ()
    compares: bool = False


class Program(Data, frozen=True):
    """What is known of one program; a part that is None says that it does no such thing, or that nobody knows."""

    options: OptionGrammar = OptionGrammar()
    reads: Reading | None = None


def list_options(flags: str = "", values: str = "", longs: str = "", joined: str = "") -> OptionGrammar:
    """All options of a program: letters that stand alone, letters that take a value, and long ones, written `name`,
    `name=` with a value and `name?` where the value can only stand behind an equals sign. `joined` are letters whose
    value can only stand in the same word."""
    words = longs.split()
    return OptionGrammar(
        flags=flags,
        values=values,
        joined=joined,
        long_values=tuple(word[:-1] for word in words if word.endswith("=")),
        optional=tuple(word[:-1] for word in words if word.endswith("?")),
        known=(*(word for word in words if not word.endswith(("=", "?"))), "help", "version"),
    )


def read_files(flags: str = "", values: str = "", longs: str = "", joined: str = "", **facts: object) -> Program:
    """The record of a program that reads the files it is given."""
    return Program(options=list_options(flags, values, longs, joined), reads=Reading(**facts))  # type: ignore[arg-type]  # checked by msgspec's constructor


def read_text(flags: str = "", values: str = "", longs: str = "", joined: str = "", **facts: object) -> Program:
    """The record of a program whose operands are text."""
    return read_files(flags, values, longs, joined, paths=False, **facts)

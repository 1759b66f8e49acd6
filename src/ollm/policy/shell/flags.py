"""Flags in any order and spelling: `-rf`, `-r -f`, `--recursive --force`, abbreviated, after operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ollm.policy.shell import ShellWord
from ollm.policy.shell.programs import get_program

_FLAG_LETTERS: dict[str, str] = {
    "recursive": "rR",
    "force": "f",
    "interactive": "i",
    "verbose": "v",
    "all": "a",
    "quiet": "q",
    "yes": "y",
    "in-place": "i",
    "global": "g",
    "output": "o",
    "message": "m",
    "user": "u",
}


class FlagSet(frozenset[str]):
    """The flags a command has: single letters, and long names with everything they could abbreviate."""

    def has(self, name: str, program: str) -> bool:
        bare, _, subcommand = program.partition(" ")
        own = get_program(bare).flag_letters
        known = {**_FLAG_LETTERS, **own.get("", {}), **own.get(subcommand, {})}
        letters = (known["recursive"] if name in "rR" else name) if len(name) == 1 else known.get(name, "")
        if any(f"-{letter}" in self for letter in letters):
            return True
        if len(name) == 1:
            return any(name in spelled and self._is_spelled(long) for long, spelled in known.items())
        return self._is_spelled(name)

    def _is_spelled(self, name: str) -> bool:
        """Written out, or abbreviated."""
        return any(name.startswith(given[2:]) for given in self if given.startswith("--") and len(given) > 2)


class RequiredFlags(frozenset[tuple[str, str]]):
    """Flags a rule asks for, each with the program it is about; `wanted <= flags` reads as it should."""

    def __le__(self, flags: object) -> bool:
        return isinstance(flags, FlagSet) and all(flags.has(name, program) for program, name in self)


def parse_required_flags(flags: Iterable[str], command: Sequence[str]) -> RequiredFlags:
    """Names with or without dashes; `-rf` asks for both letters. `command` is the program and its subcommand."""
    names: list[str] = []
    for flag in flags:
        bare = flag.lstrip("-").partition("=")[0]
        clustered = flag.startswith("-") and not flag.startswith("--")
        names += list(bare) if clustered else [bare]
    plain = [command[0].rpartition("/")[2], *(word for word in command[1:2] if not word.startswith("-"))]
    return RequiredFlags((" ".join(plain), name) for name in names if name)


def collect_flags(words: Sequence[ShellWord]) -> FlagSet:
    """All flags before `--`, wherever they are."""
    program = words[0].text.rpartition("/")[2] if words else ""
    found: set[str] = set()
    for word in words[1:]:
        text = word.text
        if text == "--":
            break
        if text.startswith("--"):
            found.add(text.partition("=")[0])
        elif text.startswith("-"):
            found |= {f"-{letter}" for letter in text[1:] if letter.isalnum()}
        elif program == "git" and text.startswith("+") and len(text) > 1 and "push" in {one.text for one in words}:
            found.add("--force")
    return FlagSet(found)

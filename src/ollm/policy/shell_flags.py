"""Flags in any order and spelling: `-rf`, `-r -f`, `--recursive --force`, abbreviated, after operands (safety 1.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ollm.policy.shell_commands import Word

_LETTERS: dict[str, str] = {
    "recursive": "rR", "force": "f", "interactive": "i", "verbose": "v", "all": "a", "quiet": "q", "delete": "d",
    "no-verify": "n", "yes": "y", "in-place": "i", "global": "g", "hard": "", "output": "o", "message": "m",
    "amend": "", "directory": "d", "user": "u", "privileged": "", "archive": "a", "links": "l",
}  # fmt: skip
_IMPLIED = {"cp": {"a": "recursive"}, "rsync": {"a": "recursive"}}
_OF_PROGRAM: dict[tuple[str, str], str] = {("git", "delete"): "dD", ("git", "force"): "fD", ("curl", "all"): ""}


class FlagSet(frozenset[str]):
    """The flags a command has: single letters, and long names with everything they could abbreviate."""

    def has(self, name: str, program: str) -> bool:
        letters = _OF_PROGRAM.get((program, name), _LETTERS.get(name, name if len(name) == 1 else ""))
        if any(f"-{letter}" in self for letter in letters):
            return True
        if len(name) == 1:
            return any(name in letters and self.has(long, program) for long, letters in _LETTERS.items())
        return any(name.startswith(given[2:]) for given in self if given.startswith("--") and len(given) > 2)


class Wanted(frozenset[tuple[str, str]]):
    """Flags a rule asks for, each with the program it is about; `wanted <= flags` reads as it should."""

    def __le__(self, flags: object) -> bool:
        return isinstance(flags, FlagSet) and all(flags.has(name, program) for program, name in self)


def wanted_flags(flags: Iterable[str], program: str) -> Wanted:
    """Names with or without dashes; `-rf` asks for both letters."""
    names: list[str] = []
    for flag in flags:
        bare = flag.lstrip("-").partition("=")[0]
        clustered = flag.startswith("-") and not flag.startswith("--")
        names += list(bare) if clustered else [bare]
    return Wanted((program.rsplit("/", 1)[-1], name) for name in names if name)


def flags_of(words: Sequence[Word]) -> FlagSet:
    """All flags before `--`, wherever they stand."""
    program = words[0].text.rsplit("/", 1)[-1] if words else ""
    found: set[str] = set()
    for word in words[1:]:
        text = word.text
        if text == "--":
            break
        if text.startswith("--"):
            found.add(text.partition("=")[0])
        elif text.startswith("-"):
            found |= {f"-{letter}" for letter in text[1:] if letter.isalnum()}
        elif (
            program == "git"
            and text.startswith("+")
            and len(text) > 1
            and words[1:2]
            and "push" in {one.text for one in words}
        ):
            found.add("--force")
    for letter, name in _IMPLIED.get(program, {}).items():
        if f"-{letter}" in found:
            found.add(f"--{name}")
    return FlagSet(found)

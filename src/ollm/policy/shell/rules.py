"""Matches rules against a simple command: decoded words, whole words only.

A rule that allows is matched strictly: a bare program name, words in order, nothing unknown. A rule that restricts is
matched generously: any path to the program, flags in any order and spelling. If the words are unknown before the
command runs, a restricting rule may answer "maybe", which asks.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ollm.policy.rules import Condition, compile_pattern, is_under
from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.record import Program, read_table
from ollm.policy.shell.words import ShellWord
from ollm.system.paths import Boundary


def _has_flags(wanted: Iterable[str], command: Sequence[str], words: Sequence[ShellWord]) -> bool:
    """Return True if words have all flags of a rule, in any spelling: names with or without dashes; `-rf` means both
    letters. `command` is the program of the rule and its subcommand."""
    given, names = collect_flags(words), list[str]()
    for flag in wanted:
        bare = flag.lstrip("-").partition("=")[0]
        names += bare if flag.startswith("-") and not flag.startswith("--") else [bare]
    subcommand = next((word for word in command[1:2] if not word.startswith("-")), "")
    program = get_program(command[0].rpartition("/")[2])
    common = dict(word.split("=") for word in read_table()["@flag-letters"].split())
    own = {name.rpartition("."): spelled for name, spelled in program.flag_letters.items()}
    letters = common | {name: spelled for (place, _, name), spelled in own.items() if place in ("", subcommand)}
    return all(_is_given(name, given, letters) for name in names if name)


def _is_given(name: str, given: set[str], letters: Mapping[str, str]) -> bool:
    """Return True if a flag is given by letter, by long name or by a possible abbreviation."""
    if len(name) > 1:
        return _is_spelled(name, given) or any(f"-{letter}" in given for letter in letters.get(name, ""))
    same = letters["recursive"] if name in "rR" else name
    longs = [long for long, spelled in letters.items() if name in spelled]
    return any(f"-{letter}" in given for letter in same) or any(_is_spelled(long, given) for long in longs)


def _is_spelled(name: str, given: set[str]) -> bool:
    return any(name.startswith(one[2:]) for one in given if one.startswith("--") and len(one) > 2)


def collect_flags(words: Sequence[ShellWord]) -> set[str]:
    """Collect all flags before `--`, at any position."""
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
    return found


RuleMatch = Literal["yes", "maybe", "no"]
_NO_BREAK = "\u00a0"
_BOUNDARIES = "/=:,@"


class CommandView:
    """A command part prepared once for comparison with all rules."""

    def __init__(self, part: CommandPart) -> None:
        self.part = part
        self.words = part.words
        self.texts = [word.text for word in part.words]
        self.known = [word.static and not word.glob for word in part.words]
        self.open = part.may_differ or any(not word.static and word.might_be_option for word in part.words[1:])
        self.names = self._normalize_names()
        self.bare = bool(part.words) and part.words[0].static and "/" not in self.texts[0]
        self.kept = self._drop_harmless_options()

    def _normalize_names(self) -> frozenset[str]:
        if not self.texts:
            return frozenset()
        last = self.texts[0].rpartition("/")[2].casefold()
        return frozenset((last, last.removesuffix(".exe")))

    def _drop_harmless_options(self) -> list[ShellWord]:
        """Remove global options that change nothing: `git --no-pager diff` is `git diff`."""
        harmless = get_program(self.texts[0] if self.texts else "").harmless_globals.split()
        index = 1
        while index < len(self.texts) and self.texts[index] in harmless:
            index += 1
        return [*self.words[:1], *self.words[index:]]


def split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def match_condition(condition: Condition, view: CommandView, boundary: Boundary, *, allows: bool) -> RuleMatch:
    compare = _match_allowing if allows else _match_restricting
    answers = [compare(condition, str(value), view, boundary) for value in condition.values]
    return "yes" if "yes" in answers else "maybe" if "maybe" in answers else "no"


def _match_allowing(condition: Condition, value: str, view: CommandView, boundary: Boundary) -> RuleMatch:
    if not view.bare or not view.words:
        return "no"
    words = split_words(value)
    texts = [word.text if word.static else "\0" for word in view.kept]
    match condition.operator:
        case "program" | "startsWith":
            held = texts[: len(words)] == words and _has_flags(condition.flags, words, view.words)
        case "equals":
            held = texts == words and not view.part.may_differ
        case "contains":
            held = any(texts[index : index + len(words)] == words for index in range(len(texts)))
        case "matches":
            held = all(view.known) and _matches_whole_words(value, texts)
        case _:
            held = _are_all_under(value, view, boundary)
    return "yes" if held else "no"


def count_covered_words(condition: Condition, view: CommandView) -> int:
    """Count the words that an allow condition spells out, including options."""
    if condition.operator not in ("startsWith", "equals", "program"):
        return 0
    texts = [word.text for word in view.words]
    lengths = [len(words) for value in condition.values if texts[: len(words := split_words(str(value)))] == words]
    return max(lengths, default=0)


def _matches_whole_words(value: str, texts: Sequence[str]) -> bool:
    line = " ".join(text.replace(" ", _NO_BREAK) for text in texts)
    found = compile_pattern(value, longest=True).match(line)
    return found is not None and (
        found.end() == len(line) or line[found.end()] == " " or line[found.end() - 1 : found.end()] == " "
    )


def _match_restricting(condition: Condition, value: str, view: CommandView, boundary: Boundary) -> RuleMatch:
    if not view.words:
        return "no"
    words = split_words(value)
    if not words:
        return "no"
    match condition.operator:
        case "program":
            return _match_program(words, condition.flags, view)
        case "startsWith" | "equals":
            return _match_words(words, view, exact=condition.operator == "equals")
        case "contains":
            held = _mentions(value, words, view)
            if not held and len(words) > 1:
                return _match_words(words, view, exact=False)
        case "matches":
            held = _matches_somewhere(value, view)
        case _:
            held = _is_any_under(value, view, boundary)
    return "yes" if held else "no"


def _matches_somewhere(value: str, view: CommandView) -> bool:
    """Search the line for an expression. Blanks inside a word do not match, so quoted text is not a command."""
    line = " ".join(text.replace(" ", _NO_BREAK).replace("\n", _NO_BREAK) for text in view.texts)
    name, rest = min(view.names, key=len), line.split(" ")[1:]
    bare = (" ".join([name, *rest[_count_leading(name, rest, sure) :]]) for sure in (True, False))
    return any(compile_pattern(value).search(one) is not None for one in (line, " ".join([name, *rest]), *bare))


def _count_leading(name: str, words: Sequence[str], sure: bool) -> int:
    """Count the words before the subcommand: options and their values. Unless `sure`, an unknown option counts as
    taking a value."""
    program, index = get_program(name), 0
    valued, harmless = program.global_values.split(), program.harmless_globals.split()
    while index < len(words) and _is_option(words[index]):
        unknown = "=" not in words[index] and words[index] not in harmless
        index += 2 if words[index] in valued or (unknown and not sure) else 1
    return index


def _match_program(words: list[str], flags: Sequence[str], view: CommandView) -> RuleMatch:
    named = _match_order(words, view)
    if named == "no" or not flags or _has_flags(flags, words, view.words):
        return named
    return "maybe" if view.open else "no"


def _match_words(words: list[str], view: CommandView, *, exact: bool) -> RuleMatch:
    """Match a rule's words: options count as flags at any position, and other words keep their order."""
    plain = [words[0], *(word for word in words[1:] if not _is_option(word))]
    options = [word for word in words[1:] if _is_option(word)]
    named = _match_order(plain, view)
    if named == "no":
        return "no"
    if exact and view.texts != words:
        operands = [word for word in view.words[1:] if not _is_option(word.text)]
        if len([word for word in operands if word.static]) > len(plain) - 1:
            return "no"
        if len(operands) > len(plain) - 1:
            return "maybe"  # An unknown word may be an option at run time, or nothing.
    if _has_flags(options, plain, view.words):
        return named
    return "maybe" if view.open else "no"


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and word != "--"


def _match_order(words: list[str], view: CommandView) -> RuleMatch:
    """Match the program, then the rule's other words in order, skipping options and their values."""
    if words[0].rpartition("/")[2].casefold() not in view.names:
        return "no"
    wanted = words[1:]
    if not wanted:
        return "yes"
    program = get_program(words[0])
    index, unknown = 1, False
    while index < len(view.texts) and wanted:
        text = view.texts[index]
        if text == wanted[0]:
            wanted = wanted[1:]
        elif _is_option(text):
            index += _count_skipped(view.texts, index, program, wanted[0])
        elif text == "--":
            pass
        else:
            unknown = not view.words[index].static
            break
        index += 1
    if not wanted:
        return "yes"
    return "maybe" if unknown or view.part.may_differ else "no"


def _count_skipped(texts: Sequence[str], index: int, program: Program, wanted: str) -> int:
    """Return 1 if the option takes the next word as its value, else 0. An unknown option does so if the rule would not
    match otherwise."""
    option, rest = texts[index], texts[index + 1 :]
    if option in program.global_values.split():
        return 1
    if option in program.harmless_globals.split():
        return 0
    return int("=" not in option and wanted in rest and rest[0] != wanted)


def _mentions(value: str, words: list[str], view: CommandView) -> bool:
    texts = view.texts
    if any(texts[index : index + len(words)] == words for index in range(len(texts))) or (
        words[0].casefold() in view.names and texts[1 : len(words)] == words[1:]
    ):
        return True
    if all(_is_option(word) for word in words) and _has_options(words, view):
        return True
    return " " not in value and any(_is_component(value, text) for text in texts)


def _has_options(words: list[str], view: CommandView) -> bool:
    """Return True if these very options are given, abbreviated or clustered. Letters do not match long names."""
    given = collect_flags(view.words)
    longs = [word for word in words if word.startswith("--")]
    letters = [f"-{letter}" for word in words if not word.startswith("--") for letter in word[1:]]
    abbreviated = all(
        any(word.startswith(one) and len(one) > 3 for one in given if one.startswith("--")) for word in longs
    )
    return abbreviated and all(letter in given for letter in letters)


def _is_component(value: str, text: str) -> bool:
    """Return True if the value is whole components of a path or setting: `.ssh` in `~/.ssh/id`, not `rm` in `--rm`."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before = start == 0 or text[start - 1] in _BOUNDARIES or value[0] in _BOUNDARIES
        after = end == len(text) or text[end] in _BOUNDARIES or value[-1] in _BOUNDARIES
        if before and after:
            return True
        start = text.find(value, start + 1)
    return False


def _list_path_words(view: CommandView) -> list[ShellWord]:
    return [word for word in view.words[1:] if not word.text.startswith("-")]


def _are_all_under(value: str, view: CommandView, boundary: Boundary) -> bool:
    words, places = _list_path_words(view), view.part.directories
    if not words or places is None or not all(view.known):
        return False
    return all(is_under(word.text, value, boundary, allows=True, base=place) for word in words for place in places)


def _is_any_under(value: str, view: CommandView, boundary: Boundary) -> bool:
    home = boundary.places.user_home
    for word in view.words[1:]:
        text = word.text.partition("=")[2] if word.text.startswith("-") else word.text
        if home is not None and (text == "~" or text.startswith("~/")):
            text = str(home / text[2:])
        places = view.part.directories or (boundary.workspace,)
        if text and any(is_under(text, value, boundary, allows=False, base=place) for place in places):
            return True
    return False

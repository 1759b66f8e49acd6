"""Options read as getopt reads them: clustered, joined, abbreviated, after operands, up to `--`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ollm.domain.struct import Data
from ollm.policy.shell.words import ShellWord, make_part_of

_NUMBER = r"[-+]?(0[xX][0-9a-fA-F]+|\d+)"


class OptionGrammar(Data, frozen=True):
    """How a program's options look. `values` are short options (one string of letters) and long ones that take a
    value in the next word, `joined` and `optional` those whose value can only be in the same word; `known` are other
    long options that matter or must not be taken for an abbreviation. `flags` are the short options that take no
    value, None when not all options are listed: then none of them counts as unknown."""

    values: str = ""
    long_values: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    flags: str | None = None
    joined: str = ""
    optional: tuple[str, ...] = ()
    numeric: bool = False  # only a number is taken as a value out of the next word
    stops: bool = False  # options end at the first operand
    single_dash: bool = False  # `-name` is one option, not a cluster


class ShellOption(Data, frozen=True):
    """One option: its name without dashes, its value if it has one, and the place of the word it is in."""

    name: str
    index: int
    value: ShellWord | None = None
    abbreviates: tuple[str, ...] = ()
    long: bool = False

    @property
    def spelled(self) -> str:
        return f"{'--' if self.long else '-'}{self.name}"

    def is_any(self, names: Iterable[str]) -> bool:
        return any(name == self.name or name in self.abbreviates for name in names)


class OptionScan(Data, frozen=True):
    """The words of a command sorted out. `uncertain` are places of words that may turn out to be options."""

    options: tuple[ShellOption, ...]
    operands: tuple[tuple[int, ShellWord], ...]
    uncertain: tuple[int, ...]
    unknown: tuple[ShellOption, ...] = ()


def scan_options(words: Sequence[ShellWord], grammar: OptionGrammar, start: int = 1) -> OptionScan:
    """Sort the words after the program's name into options and operands."""
    options: list[ShellOption] = []
    operands: list[tuple[int, ShellWord]] = []
    uncertain: list[int] = []
    index = start
    while index < len(words):
        word = words[index]
        if word.text == "--" and word.static:
            operands += list(enumerate(words))[index + 1 :]
            break
        if not word.static and word.might_be_option:
            uncertain.append(index)
        if word.text.startswith("-") and len(word.text) > 1:
            found, following = _parse_option(words, index, grammar)
            uncertain += [place for place in range(index + 1, min(following, len(words))) if words[place].several]
            options, index = [*options, *found], following
            continue
        operands.append((index, word))
        index += 1
        if grammar.stops:
            operands += list(enumerate(words))[index:]
            break
    return OptionScan(
        options=tuple(options),
        operands=tuple(operands),
        uncertain=tuple(uncertain),
        unknown=tuple(one for one in options if not _is_listed(one, grammar)),
    )


def _is_listed(option: ShellOption, grammar: OptionGrammar) -> bool:
    """Whether the grammar has the option, by its name or by one that it abbreviates."""
    if grammar.flags is None:
        return True
    letters = grammar.flags + grammar.values + grammar.joined
    return bool(option.abbreviates) or (len(option.name) == 1 and option.name in letters and not option.long)


def _parse_option(words: Sequence[ShellWord], index: int, grammar: OptionGrammar) -> tuple[list[ShellOption], int]:
    text = words[index].text
    if text.startswith("--") or grammar.single_dash:
        return _parse_long_option(words, index, grammar)
    found: list[ShellOption] = []
    for place, letter in enumerate(text[1:], 2):
        rest = text[place:]
        if rest and letter in grammar.values + grammar.joined:
            return [*found, ShellOption(name=letter, index=index, value=make_part_of(words[index], rest))], index + 1
        following = words[index + 1] if index + 1 < len(words) else None
        if letter in grammar.values and not (
            grammar.numeric and following and not re.fullmatch(_NUMBER, following.text)
        ):
            return [*found, ShellOption(name=letter, index=index, value=following)], index + 2
        found.append(ShellOption(name=letter, index=index))
    return found, index + 1


def _parse_long_option(words: Sequence[ShellWord], index: int, grammar: OptionGrammar) -> tuple[list[ShellOption], int]:
    word = words[index]
    name, equals, rest = word.text.lstrip("-").partition("=")
    everything = (*grammar.known, *grammar.long_values, *grammar.optional)
    full = (name,) if name in everything else tuple(one for one in everything if name and one.startswith(name))
    if equals:
        value = make_part_of(word, rest)
        return [ShellOption(name=name, index=index, value=value, abbreviates=full, long=True)], index + 1
    if any(one in grammar.long_values for one in full):
        following = words[index + 1] if index + 1 < len(words) else None
        return [ShellOption(name=name, index=index, value=following, abbreviates=full, long=True)], index + 2
    return [ShellOption(name=name, index=index, abbreviates=full, long=True)], index + 1

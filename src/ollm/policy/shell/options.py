"""Option parsing like getopt's: clustered, joined, abbreviated, after operands, up to `--`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from ollm.domain.struct import Data
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, is_stream
from ollm.policy.shell.words import ShellWord, make_part_of

_NUMBER = r"[-+]?(0[xX][0-9a-fA-F]+|\d+)"


class OptionGrammar(Data, frozen=True):
    """Grammar of a program's options. `values` are short options (one string of letters) and long ones that take a
    value in the next word; for `joined` and `optional` the value can only be in the same word. `known` are other long
    options that matter or must not be taken for an abbreviation. `flags` are the short options without a value. If it
    is None, the list is incomplete and no short option counts as unknown."""

    values: str = ""
    long_values: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    flags: str | None = None
    joined: str = ""
    optional: tuple[str, ...] = ()
    numeric: bool = False  # Only a number counts as a value in the next word.
    stops: bool = False  # Options end at the first operand.
    single_dash: bool = False  # In this style `-name` is one option, not a cluster.


class ShellOption(Data, frozen=True):
    """One option: its name without dashes, its value if any, and the index of its word."""

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
    """The words of a command, sorted. `uncertain` are the indices of words that may be options."""

    options: tuple[ShellOption, ...]
    operands: tuple[tuple[int, ShellWord], ...]
    uncertain: tuple[int, ...]
    unknown: tuple[ShellOption, ...] = ()


def scan_options(words: Sequence[ShellWord], grammar: OptionGrammar) -> OptionScan:
    options: list[ShellOption] = []
    operands: list[tuple[int, ShellWord]] = []
    uncertain: list[int] = []
    index = 1
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


TEXT_OPTIONS = frozenset({"-m", "--message", "-am", "-b", "--body", "-t", "--title", "-e", "--grep", "--author"})
_STEERING_OPTION = (
    r"--?([\w.-]*-)?(shell|exec|toolexec|config|configfile|config-file|conf|rc|rcfile|plugin|plugins|command|cmd|program|hook"
    r"|hooks|script|loader|require|import|eval|preload|wrapper|runner|executable|interpreter|linker|rustc|compiler|overlay"
    r"|modfile|template|file|prefix|rootdir|root|dir|directory|cwd|workdir|basetemp|confcutdir|override-ini|init-script"
    r"|node-options|userconfig|globalconfig|output|out|output-file|log-file|junitxml|junit-xml|report|profile|settings"
    r"|env|env-file|init|makefile|justfile|manifest-path|target-dir|rulesdir|parser|formatter|resolver|transform|setup"
    r"|globalsetup|setupfiles|testrunner|environment|strategy|upload-pack|receive-pack|ldflags|gccgoflags|extld|extldflags"
    r"|python-executable|custom-typeshed-dir|cache-dir|python)(=.*)?"
)


def find_ungranted(name: str, steering: str, words: Sequence[ShellWord], judge: PathJudge) -> tuple[str, ...]:
    """Return the reasons why a grant for the first words does not cover the whole command. `steering` are the letters
    of options that make the program use something else."""
    found = [*_find_unknown_words(words), *_find_steering_options(name, steering, words)]
    for word in _drop_texts(words):
        for candidate in list_path_candidates(word) if "://" not in word.text else ():
            objections = judge.check_read(candidate) if not is_stream(candidate.text) else NO_OBJECTIONS
            found += [*objections.locks, *objections.remarks]
    return tuple(dict.fromkeys(found))


def _drop_texts(words: Sequence[ShellWord]) -> list[ShellWord]:
    """Drop the program, values of options that take a text, and quoted sentences."""
    rest = [word for before, word in pairwise(words) if before.text not in TEXT_OPTIONS]
    return [word for word in rest if not (word.quoted and " " in word.text)]


def list_path_candidates(word: ShellWord) -> Iterator[ShellWord]:
    """List the paths a word may contain: all of it, after `=`, `:`, `@` or `,`, or joined to an option letter."""
    text = word.text
    rests = [text, *re.split(r"[=@,]|:(?!//)", text)[1:]]
    if re.match(r"-[A-Za-z][^-]", text):
        rests.append(text[2:])
    for rest in dict.fromkeys(rests):
        if rest.startswith(("/", "~", "..", ".")) or "/" in rest:
            yield msgspec.structs.replace(word, text=rest, known=rest if word.static else "")


def _find_unknown_words(words: Sequence[ShellWord]) -> list[str]:
    unknown = [
        word
        for place, word in enumerate(words[1:], 1)
        if not word.static and not (words[place - 1].text in TEXT_OPTIONS and not word.several)
    ]
    return ["a word of it is only known when it runs"] if unknown else []


def _find_steering_options(name: str, letters: str, words: Sequence[ShellWord]) -> Iterator[str]:
    for place, word in enumerate(words[1:], 1):
        if words[place - 1].text in TEXT_OPTIONS:
            continue
        cluster = re.match(r"-[A-Za-z]*", word.text) if not word.text.startswith("--") else None
        steers = cluster is not None and any(letter in cluster.group() for letter in letters)
        setting = name in ("make", "just", "mvn", "gradle") and re.match(r"[A-Za-z_]\w*[:?+]?=", word.text)
        if steers or setting or re.fullmatch(_STEERING_OPTION, word.text, re.IGNORECASE | re.DOTALL):
            yield f"{word.text.partition('=')[0]} can make {name} run or use something else"


def check_secrets(words: Sequence[ShellWord], judge: PathJudge) -> Objections:
    """Check for files that need a confirmation to read, named to a command that does more than read."""
    candidates = (one for word in _drop_texts(words) for one in list_path_candidates(word))
    return sum((judge.check_secret(one) for one in candidates), NO_OBJECTIONS)


def check_mentions(words: Sequence[ShellWord], judge: PathJudge, known: Collection[str]) -> Objections:
    """Check for protected files in arguments of unknown meaning. `known` are the words to skip."""
    found = NO_OBJECTIONS
    for word in (word for word in _drop_texts(words) if word.text not in known):
        value = word.text.partition("=")[2] if word.text.startswith("-") or "=" in word.text else word.text
        for candidate in dict.fromkeys((value, *(one.text for one in list_path_candidates(word)))):
            found += judge.check_protected(msgspec.structs.replace(word, text=candidate))
    return found

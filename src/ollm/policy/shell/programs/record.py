"""Record of a shell program: its options, what it reads, writes, runs and wraps, and how it is granted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from ollm.domain.struct import Data
from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.options import OptionGrammar, scan_options
from ollm.policy.shell.paths import PathJudge
from ollm.policy.shell.words import ShellWord, drop_prefix

MAX_WORDS = 6000  # A line with more words is too long to be read.
WordDangers = list[tuple[int, str]]  # Places of words, each with the reason to ask.


class InnerCommand(Data, frozen=True):
    """A command inside another: as words, or as a script to parse. `arguments` are `$0`, `$1` … of a script. `more`
    means that words may be appended; a `guess` is one of several readings."""

    words: tuple[ShellWord, ...] = ()
    script: str | None = None
    static: bool = True
    arguments: tuple[str, ...] = ()
    more: bool = False
    guess: bool = False


class Reading(Data, frozen=True):
    """Words of a program that only reads. Every operand is a path, and an option that is not in the grammar may do
    anything.

    `danger`: options that run something or write. `names`: options that take the list of files to read from a file.
    `skip`: the number of leading operands that are not paths (a pattern), unless one of `pattern_options` gives it.
    `text`: operands are text, not paths. `read_options`: options whose value is a file to read. `output`: the index
    of the first operand that is written, if not 0. `deep`: options that read a whole tree, including hidden files;
    `selecting`: those that do so for the names in their value; `following`: those that follow links. `walks`:
    options that traverse trees; `compares`: it traverses directories without any option. `responses`: `@FILE`
    stands for the words in a file. `setting`: an expression for operands that set or reveal more, explained by
    `setting_reason`. `evaluate` finds words that are code. `script`: its first operand is a script, and the
    function says whether that only prints. `only_with`: it only reads if its first word is one of these. `exact`:
    so simple that the analysis cannot be wrong.
    """

    danger: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    skip: int = 0
    pattern_options: tuple[str, ...] = ()
    text: bool = False
    read_options: tuple[str, ...] = ()
    output: int = 0
    deep: tuple[str, ...] = ()
    selecting: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    walks: tuple[str, ...] = ()
    compares: bool = False
    responses: bool = False
    setting: str = ""
    setting_reason: str = ""
    evaluate: Callable[[Sequence[ShellWord]], WordDangers] | None = None
    script: Callable[[str], bool] | None = None
    only_with: tuple[str, ...] = ()
    exact: bool = False


class Writing(Data, frozen=True):
    """Words of a program that writes. `all` operands are written, the `last` one (the others are read), the `first`
    one, those named by `settings` like `of=…`, or only the values of the options in `targets`. Before the paths there
    are `before` other operands, unless one of `before_options` replaces them. `moves`: sources are written too.
    `removing`: options that include everything below. `needs`: it writes only with one of these."""

    shape: Literal["all", "last", "first", "option", "settings"] = "all"
    targets: tuple[str, ...] = ()
    before: int = 0
    before_options: tuple[str, ...] = ()
    moves: bool = False
    removing: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


class Wrapping(Data, frozen=True):
    """Words of a wrapper: options, then `operands` arguments, then the command, as words or joined
    `as_script`.
    `scripts` are options whose value is a script, `logs` those that write a file. A `harmless` wrapper does not change
    what it runs."""

    operands: int = 0
    assignments: bool = False
    as_script: bool = False
    more: bool = False
    scripts: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    harmless: bool = False


class Launching(Data, frozen=True):
    """A program that starts a command found among its words. `after`: the command follows one of these, or the name if
    there are none. The command is the rest of the words, after at most `own` others, or one quoted word; `one_word`:
    only the latter, `split`: only the former. `marked`: one word counts only after a mark."""

    after: tuple[str, ...] = ()
    own: int = MAX_WORDS
    one_word: bool = False
    split: bool = False
    marked: bool = False


class Granting(Data, frozen=True):
    """Number of words that name an operation, and the subcommands to which it applies; others are granted word by word.
    `third` are words whose successor belongs to the name. `never`: not granted by its name alone."""

    depth: int = 0
    subcommands: tuple[str, ...] = ()
    third: tuple[str, ...] = ()
    never: bool = False


class Program(Data, frozen=True):
    """Record of one program. A part that is None means that the program does no such thing, or that it is unknown.

    `inspect` replaces the general analysis of words, `find_commands` the general unwrapping. `commands` are options
    whose value is a command, `acting` others that make it run or use something else; `acting_words` is an expression
    for such words. `code`: its words may be programs in another language. `changes`: its effect on the shell.
    `evaluates`: it evaluates subscripts. `fed`: how it uses its input. `steering` letters are for grants,
    `flag_letters` for rules, by name or `SUBCOMMAND.NAME`. `global_values` are options with a value before the
    subcommand, `harmless_globals` those without an effect.
    """

    options: OptionGrammar = OptionGrammar()
    reads: Reading | None = None
    writes: Writing | None = None
    wraps: Wrapping | None = None
    launches: Launching | None = None
    grants: Granting | None = None
    inspect: Callable[[CommandPart, PathJudge], CommandPart] | None = None
    find_commands: Callable[[Program, Sequence[ShellWord]], list[InnerCommand]] | None = None
    commands: str = ""
    acting: str = ""
    acting_words: str = ""
    kind: Literal["program", "shell", "interpreter"] = "program"
    code: bool = False
    changes: str = ""
    evaluates: bool = False
    sets_variables: bool = False
    fed: Literal["data", "script", "commands", "words"] = "data"
    versioned: bool = False
    steering: str = ""
    flag_letters: Mapping[str, str] = {}
    global_values: str = ""
    harmless_globals: str = ""

    @property
    def runs_others(self) -> bool:
        """True if it may start another program named in its words."""
        parts = (self.wraps, self.launches, self.find_commands)
        return any(part is not None for part in parts) or bool(self.commands or self.code or self.kind == "shell")


@cache
def read_table() -> dict[str, str]:
    """Return the rows of table.txt by name: the facts of each program, and the options of git's verbs."""
    text = Path(__file__).with_name("table.txt").read_text(encoding="utf-8")
    rows: dict[str, str] = {}
    for row in re.sub(r"\n[ ]+", " ", text).split("\n"):
        names, found, facts = row.partition(" = ")
        if found and not row.startswith("#"):
            rows.update(dict.fromkeys(names.split(), facts))
    return rows


def read_row(name: str) -> str:
    """Return the row of a program or of a verb of git, with the rows that it refers to by `@NAME`, or ""."""
    rows = read_table()
    return re.sub(r"@[\w-]+", lambda found: rows[found[0]], rows.get(name, ""))


def split_names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class FileTargets(Data, frozen=True):
    """Words that name files written and files read; `removed` ones include everything in them."""

    written: tuple[ShellWord, ...] = ()
    read: tuple[ShellWord, ...] = ()
    removed: tuple[ShellWord, ...] = ()


def find_targets(program: Program, words: Sequence[ShellWord]) -> FileTargets:
    """Find the words that name files written and read; empty if the program is not known to write."""
    writer, found = program.writes, scan_options(words, program.options)
    if writer is None or (writer.needs and not any(option.is_any(writer.needs) for option in found.options)):
        return FileTargets()
    skip = 0 if any(option.is_any(writer.before_options) for option in found.options) else writer.before
    operands = [word for _, word in found.operands][skip:]
    written = [option.value for option in found.options if option.is_any(writer.targets) and option.value]
    deep = any(option.is_any(writer.removing) for option in found.options)
    match writer.shape:
        case "all":
            return FileTargets(written=(*written, *operands), removed=tuple(operands) if deep else ())
        case "first":
            return FileTargets(written=(*written, *operands[:1]), read=tuple(operands[1:]))
        case "option":
            return FileTargets(written=tuple(written))
        case "settings":
            return FileTargets(written=_find_settings(words, "of="), read=_find_settings(words, "if="))
    return _find_copy_targets(writer, operands, written)


def _find_copy_targets(writer: Writing, operands: list[ShellWord], directories: list[ShellWord]) -> FileTargets:
    """Return the files a copy writes: the last operand, and each source's name inside it if it is a directory."""
    sources, places = (operands, directories) if directories else (operands[:-1], operands[-1:])
    inside = [_join_name(place, source) for place in places for source in sources]
    moved = tuple(sources) if writer.moves else ()
    return FileTargets(written=(*places, *inside, *moved), read=tuple(sources), removed=moved)


def _join_name(place: ShellWord, source: ShellWord) -> ShellWord:
    name = source.text.rstrip("/").rpartition("/")[2]
    if name in ("", ".", ".."):
        return place
    text = f"{place.text.rstrip('/')}/{name}"
    static = place.static and source.static
    return ShellWord(text=text, known=text if static else place.known, static=static, glob=place.glob or source.glob)


def _find_settings(words: Sequence[ShellWord], prefix: str) -> tuple[ShellWord, ...]:
    return tuple(drop_prefix(word, len(prefix)) for word in words[1:] if word.text.startswith(prefix))

"""Effects of a simple command beyond its name: read outside, write, run something else, change the shell."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence

import msgspec

from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.options import OptionScan, check_mentions, find_ungranted, scan_options
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections, selects_secrets
from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.inner_commands import abbreviates
from ollm.policy.shell.programs.record import Program, Reading, WordDangers, find_targets
from ollm.policy.shell.words import ShellWord, drop_prefix, make_literal

_VERSION_OPTIONS = frozenset({"--version", "-V", "-v", "-version"})
_SYSTEM_DIRECTORIES = ("/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/lib/", "/opt/homebrew/")


def add_effects(part: CommandPart, judge: PathJudge) -> CommandPart:
    name = find_program_name(part)
    if name is None:
        return part
    program = get_program(name)
    inspected = _inspect_part(part, judge, name, program)
    if inspected.reads:
        return inspected
    return msgspec.structs.replace(inspected, ungranted=find_ungranted(name, program.steering, part.words, judge))


def find_program_name(part: CommandPart) -> str | None:
    """The program as it will be found, without a path before it; None when it is not known."""
    if not part.words or not part.words[0].static:
        return None
    return part.words[0].text.rpartition("/")[2]


def _inspect_part(part: CommandPart, judge: PathJudge, name: str, program: Program) -> CommandPart:
    if program.versioned and _asks_for_version(name, part.words):
        return add_objections(part, NO_OBJECTIONS, reads=True)
    if program.inspect is not None:
        return program.inspect(part, judge)
    if program.reads is None:
        return _inspect_other(part, judge, name, program)
    return _inspect_reader(part, judge, name, program, program.reads)


def _asks_for_version(name: str, words: Sequence[ShellWord]) -> bool:
    """A version is asked of a program of the system: one that a home brings may be a shim, which looks into the
    workspace for what to run."""
    if len(words) != 2 or words[1].text not in _VERSION_OPTIONS:
        return False
    found = shutil.which(name)
    return found is None or os.path.realpath(found).startswith(_SYSTEM_DIRECTORIES)


def _inspect_reader(part: CommandPart, judge: PathJudge, name: str, program: Program, reading: Reading) -> CommandPart:
    found = scan_options(part.words, program.options)
    runs = _find_reading_dangers(part, name, reading, found)
    objections = _check_option_values(found, reading, judge)
    for word in find_targets(program, part.words).written:
        objections += judge.check_write(word)
    responses = [word for word in part.words[1:] if reading.responses and word.text.startswith("@")]
    objections += sum((judge.check_read(drop_prefix(word, 1)) for word in responses), NO_OBJECTIONS)
    if reading.paths:
        objections += judge.check_directory() + _check_operands(found, reading, judge)
    else:
        objections += sum((judge.check_names(word) for _, word in found.operands), NO_OBJECTIONS)
    if reading.output is not None and len(found.operands) > reading.output:
        place, word = found.operands[reading.output]
        runs.append((place, f"{name} writes {word.text}"))
        objections += judge.check_write(word)
    if part.may_differ and reading.paths:
        objections += Objections(remarks=(f"what {name} reads is computed at run time",))
    reads = not reading.only_with or (len(part.words) > 2 and part.words[1].text in reading.only_with)
    named = [f"{name} reads the files that a file names"] if responses else []
    unknown = [*named, *_list_unknown(name, found, reading, judge)]
    return add_objections(part, objections, runs, reads=reads, unknown=unknown)


def _find_reading_dangers(part: CommandPart, name: str, reading: Reading, found: OptionScan) -> WordDangers:
    runs = [
        (one.index, f"{name} {'-' if len(one.name) == 1 else '--'}{one.name} can run, write or read something else")
        for one in found.options
        if one.is_any(reading.danger)
    ]
    if reading.danger or reading.paths:
        runs += [(index, "it may contain an option") for index in found.uncertain]
    if reading.evaluate is not None:
        runs += reading.evaluate(part.words)
    if reading.setting is not None:
        expression, reason = reading.setting
        runs += [(place, reason) for place, word in found.operands if re.fullmatch(expression, word.text, re.DOTALL)]
    return runs


def _check_operands(found: OptionScan, reading: Reading, judge: PathJudge) -> Objections:
    """Every operand is a path, but for a pattern that is surely one."""
    sure = not found.unknown and not any(option.is_any(reading.pattern_options) for option in found.options)
    words = [word for _, word in found.operands]
    operands = words[reading.skip :] if sure else words
    objections = sum((judge.check_read(word) for word in operands), NO_OBJECTIONS)
    return objections + _check_trees(found, reading, operands or [make_literal(".")], judge)


def _check_option_values(found: OptionScan, reading: Reading, judge: PathJudge) -> Objections:
    """Files named in the values of options, and in those of options that nobody knows."""
    objections = NO_OBJECTIONS
    for option in found.options:
        unknown = option in found.unknown or (option.long and not option.abbreviates)
        if option.value is not None and (unknown or option.value.glob or option.is_any(reading.read_options)):
            objections += judge.check_read(option.value)
    return objections


def _list_unknown(name: str, found: OptionScan, reading: Reading, judge: PathJudge) -> list[str]:
    unknown = [f"it is not known what {name} {one.spelled} does" for one in found.unknown if reading.exact]
    if any(option.is_any(reading.names) for option in found.options):
        unknown.append(f"{name} reads the files that a file names")
    if any(option.is_any(reading.selecting) for option in found.options):
        return unknown  # the names it reads are given, and looked at
    if reading.compares or any(option.is_any(reading.walks) for option in found.options):
        places = [word for _, word in found.operands] or [make_literal(".")]
        secrets = sum((judge.check_tree(word) for word in places), NO_OBJECTIONS)
        unknown += [*secrets.locks, *secrets.remarks]
    return unknown


def _check_trees(found: OptionScan, reading: Reading, places: Sequence[ShellWord], judge: PathJudge) -> Objections:
    """Secret files and links out in directories that are read with everything below them."""
    objections = NO_OBJECTIONS
    for option in found.options:
        chosen = option.value is not None and option.is_any(reading.selecting) and selects_secrets(option.value)
        if chosen or option.is_any(reading.deep):
            objections += sum((judge.check_tree(word) for word in places), NO_OBJECTIONS)
        if option.is_any(reading.following):
            objections += sum((judge.check_links(word) for word in places), NO_OBJECTIONS)
    if reading.compares:
        objections += sum((judge.check_links(word) for word in places), NO_OBJECTIONS)
    return objections


def _inspect_other(part: CommandPart, judge: PathJudge, name: str, program: Program) -> CommandPart:
    objections = Objections(remarks=(f"{name} {program.changes}",)) if program.changes else NO_OBJECTIONS
    if program.kind != "program" and _reads_script(part):
        objections += Objections(remarks=(f"{name} runs what it reads",))
    named = find_targets(program, part.words)
    for word in named.written:
        objections += judge.check_write(word)
    for word in named.removed:
        objections += judge.check_removal(word)
    for word in named.read:
        objections += judge.check_read(word)
    known = {word.text for word in (*named.written, *named.read, *named.removed)}
    objections += check_mentions(part.words, judge, known)
    return add_objections(part, objections, _find_acting_words(name, program, part.words))


def _reads_script(part: CommandPart) -> bool:
    """A shell or interpreter without a script of its own: it runs its input, or what another command prints."""
    words = [word for word in part.words[1:] if not word.text.startswith(("-", "+"))]
    streams = [word for word in words[:1] if word.descriptor or word.text in ("/dev/stdin", "/dev/fd/0")]
    return not words or bool(streams) or any(word.text in ("-s", "-") for word in part.words)


def _find_acting_words(name: str, program: Program, words: Sequence[ShellWord]) -> WordDangers:
    """Options, in any spelling, with which the program runs or uses something else."""
    options = [*program.commands.split(), *program.acting.split()]
    letters = "".join(option[1] for option in options if len(option) == 2)
    clustered = rf"-[a-zA-Z0-9]*[{letters}].*" if letters else "(?!)"
    return [
        (index, f"{name} {word.text} can run something else")
        for index, word in enumerate(words[1:], 1)
        if abbreviates(word.text, options)
        or re.fullmatch(clustered, word.text, re.DOTALL)
        or (program.acting_words and re.fullmatch(program.acting_words, word.text, re.DOTALL))
    ]

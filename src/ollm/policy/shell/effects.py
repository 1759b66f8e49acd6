"""What a simple command would do beyond its name: read outside, write, run something else, change the shell."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence

import msgspec

from ollm.policy.shell import scripts
from ollm.policy.shell.arguments import TEXT_OPTIONS, find_ungranted, list_path_candidates
from ollm.policy.shell.evaluated import find_value_dangers
from ollm.policy.shell.git import parse_git
from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.options import OptionGrammar, OptionScan, ShellOption, scan_options
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, selects_secrets
from ollm.policy.shell.programs import PROGRAMS, search_tools, system_tools
from ollm.policy.shell.programs.record import Program, Reading
from ollm.policy.shell.runners import INTERPRETERS
from ollm.policy.shell.tables import split_names
from ollm.policy.shell.words import ShellWord, drop_prefix, make_literal
from ollm.policy.shell.wrappers import SHELLS
from ollm.policy.shell.writers import FileTargets, find_targets

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})


def add_effects(part: CommandPart, judge: PathJudge) -> CommandPart:
    """The part with everything that its words give away."""
    name = find_program_name(part)
    if name is None:
        return part
    inspected = _inspect_part(part, judge, name)
    if inspected.reads:
        return inspected
    return msgspec.structs.replace(inspected, ungranted=find_ungranted(name, part.words, judge))


def _inspect_part(part: CommandPart, judge: PathJudge, name: str) -> CommandPart:
    if name == "git":
        return _inspect_git(part, judge)
    if name in ("find", "gfind"):
        return _inspect_find(part, judge)
    if name == "sed":
        return _inspect_script(
            part, judge, scripts.find_sed_dangers(part.words), scripts.SED_GRAMMAR, ("e", "f", "expression", "file")
        )
    if name in _AWKS:
        return _inspect_script(part, judge, scripts.find_awk_dangers(part.words), scripts.AWK_GRAMMAR, ("f", "file"))
    known = PROGRAMS.get(name)
    if known is None or known.reads is None:
        return _inspect_other(part, judge, name)
    return _inspect_reader(part, judge, name, known, known.reads)


def find_program_name(part: CommandPart) -> str | None:
    """The program as it will be found, without a path before it; None when it is not known."""
    if not part.words or not part.words[0].static:
        return None
    return part.words[0].text.rsplit("/", 1)[-1]


def _add_objections(
    part: CommandPart,
    found: Objections,
    runs: Sequence[tuple[int, str]] = (),
    *,
    reads: bool = False,
    git: bool = False,
    unknown: Sequence[str] = (),
) -> CommandPart:
    locks = tuple(dict.fromkeys((*part.locks, *found.locks)))
    bare = bool(part.words) and "/" not in part.words[0].text
    return msgspec.structs.replace(
        part,
        remarks=tuple(dict.fromkeys((*part.remarks, *found.remarks))),
        locks=locks,
        opens=(*part.opens, *found.opens),
        runs=(*part.runs, *runs),
        unknown=(*part.unknown, *unknown),
        reads=reads and bare and not part.may_differ,
        git=git,
    )


def _inspect_reader(part: CommandPart, judge: PathJudge, name: str, program: Program, reading: Reading) -> CommandPart:
    found = scan_options(part.words, program.options)
    runs = [(one.index, _describe_option(name, one.name)) for one in found.options if one.is_any(reading.danger)]
    if reading.danger or reading.paths:
        runs += [(index, "it may contain an option") for index in found.uncertain]
    runs += find_value_dangers(name, part.words)
    runs += _find_setting_operands(name, [(place, word.text) for place, word in found.operands])
    objections = _check_option_values(found, reading, judge)
    if name == "strings":  # `@FILE` stands for the words in the file, wherever it is
        responses = [drop_prefix(word, 1) for word in part.words[1:] if word.text.startswith("@")]
        objections += sum((judge.check_read(word) for word in responses), NO_OBJECTIONS)
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
    unknown = _list_unknown(name, found, reading, judge)
    return _add_objections(part, objections, runs, reads=_only_asks(name, part), unknown=unknown)


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
        unknown = option in found.unknown
        if option.value is not None and (unknown or option.value.glob or option.is_any(reading.read_options)):
            objections += judge.check_read(option.value)
    return objections


def _list_unknown(name: str, found: OptionScan, reading: Reading, judge: PathJudge) -> list[str]:
    """What only the kernel can hold the program to."""
    unknown = [f"it is not known what {name} {_spell_option(one)} does" for one in found.unknown]
    if any(option.is_any(reading.names) for option in found.options):
        unknown.append(f"{name} reads the files that a file names")
    if any(option.is_any(reading.selecting) for option in found.options):
        return unknown  # the names it reads are given, and looked at
    if reading.compares or any(option.is_any(reading.walks) for option in found.options):
        places = [word for _, word in found.operands] or [make_literal(".")]
        secrets = sum((judge.check_tree(word) for word in places), NO_OBJECTIONS)
        unknown += [*secrets.locks, *secrets.remarks]
    return unknown


def _spell_option(option: ShellOption) -> str:
    return f"{'--' if option.long else '-'}{option.name}"


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


def _find_setting_operands(name: str, operands: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Operands with which a program that tells something sets it, or tells too much."""
    if name == "hostname":
        return [(place, "it sets the computer's name") for place, _ in operands]
    if name == "date":
        return [(place, "it sets the clock") for place, text in operands if not text.startswith("+")]
    if name == "ps":
        return [(place, "it shows other processes' arguments") for place, text in operands if "e" in text]
    return []


def _only_asks(name: str, part: CommandPart) -> bool:
    """`command` is a reader only as `command -v NAME`."""
    return name != "command" or (len(part.words) > 2 and part.words[1].text in ("-v", "-V"))


def _describe_option(name: str, option: str) -> str:
    return f"{name} {'-' if len(option) == 1 else '--'}{option} can run, write or read something else"


def _inspect_find(part: CommandPart, judge: PathJudge) -> CommandPart:
    objections = judge.check_directory()
    runs: list[tuple[int, str]] = []
    words = part.words
    starting, index = True, 1
    unknown: list[str] = []
    while index < len(words):
        word = words[index]
        if not _is_find_word(word):
            unknown.append(f"it is not known what find {word.text} does")
        if word.text in search_tools.FIND_ACTIONS:
            runs.append((index, f"find {word.text} runs, writes or deletes"))
        elif word.text in ("-L", "-follow", "-files0-from"):
            runs.append((index, f"find {word.text} leaves the workspace"))
        elif not word.static and word.might_be_option:
            runs.append((index, "it may contain an option"))
        if word.text.startswith(("-", "(", ")", "!", ",")) and not re.fullmatch(r"-[HLP]|-O\d|-D|--", word.text):
            starting = False
        elif starting and not word.text.startswith("-"):
            objections += judge.check_read(word)
        valued = word.text in search_tools.FIND_VALUE_TESTS or word.text in search_tools.FIND_FILE_TESTS
        if valued and index + 1 < len(words):
            value = words[index + 1]
            objections += (
                judge.check_read(value) if value.glob or word.text in search_tools.FIND_FILE_TESTS else NO_OBJECTIONS
            )
            runs += [(index + 1, "it may contain an option")] if value.several else []
        index += 2 if valued else 1
    if part.may_differ:
        objections += Objections(remarks=("what find reads is computed at run time",))
    return _add_objections(part, objections, runs, reads=True, unknown=unknown)


def _is_find_word(word: ShellWord) -> bool:
    """A path, or a test or action that is known."""
    text = word.text
    if not text.startswith("-") or len(text) < 2:
        return True
    known = (search_tools.FIND_ACTIONS, search_tools.FIND_VALUE_TESTS, search_tools.FIND_FILE_TESTS)
    return (
        text in search_tools.FIND_FLAGS
        or any(text in names for names in known)
        or bool(re.fullmatch(r"-O\d|-newer[aBcmt][aBcmt]", text))
    )


def _inspect_script(
    part: CommandPart,
    judge: PathJudge,
    runs: Sequence[tuple[int, str]],
    grammar: OptionGrammar,
    giving: tuple[str, ...],
) -> CommandPart:
    objections = judge.check_directory()
    found = scan_options(part.words, grammar)
    files = [word for word in scripts.find_data_files(part.words, grammar, giving) if not _is_setting(word)]
    for word in files:
        objections += judge.check_read(word)
    for option in found.options:
        if (
            option.is_any(("f", "file", "i", "include"))
            and option.value is not None
            and find_program_name(part) != "sed"
        ):
            objections += judge.check_read(option.value)
    name = find_program_name(part) or ""
    written = find_targets(name, part.words)
    for word in written.written:
        objections += judge.check_write(word)
    if part.may_differ:
        objections += Objections(remarks=(f"what {name} reads is computed at run time",))
    uncertain = [(index, "it may contain an option") for index in found.uncertain]
    return _add_objections(part, objections, [*runs, *uncertain], reads=True)


def _is_setting(word: ShellWord) -> bool:
    return word.static and re.match(r"[A-Za-z_]\w*=", word.text) is not None


def _inspect_git(part: CommandPart, judge: PathJudge) -> CommandPart:
    found = parse_git(part.words)
    objections = judge.check_directory()
    subcommand = None if found.subcommand is None else part.words[found.subcommand].text
    if found.reads or subcommand == "add":
        for word in found.paths:
            objections += judge.check_read(word)
    else:
        objections += _check_git_writes(part, judge, found.subcommand)
        objections += _check_secrets(part, judge)
    if not found.reads and subcommand == "config":
        settings = tuple(str(place / ".git" / "config") for place in part.directories or ())
        objections += Objections(locks=("it changes git's configuration, which is protected",), opens=settings)
    if part.may_differ:
        objections += Objections(remarks=("git's arguments are computed at run time",))
    if judge.is_in_other_repository():
        objections += Objections(remarks=("it runs in a repository inside the workspace, whose settings it follows",))
    return _add_objections(part, objections, found.dangers, reads=found.reads, git=True, unknown=found.unknown)


_GIT_WRITING = frozenset({"checkout", "restore", "rm", "mv", "clean", "apply", "init", "clone", "worktree"})


def _check_git_writes(part: CommandPart, judge: PathJudge, subcommand: int | None) -> Objections:
    """Protected files named to a git command that changes the work tree."""
    if subcommand is None or part.words[subcommand].text not in _GIT_WRITING:
        return NO_OBJECTIONS
    found = NO_OBJECTIONS
    for word in part.words[subcommand + 1 :]:
        if not word.text.startswith("-"):
            found += judge.check_protected(word)
    return found


def _inspect_other(part: CommandPart, judge: PathJudge, name: str) -> CommandPart:
    if _asks_for_version(name, part.words):
        return _add_objections(part, NO_OBJECTIONS, reads=True)
    objections = (
        Objections(remarks=(f"{name} {system_tools.SHELL_CHANGING_BUILTINS[name]}",))
        if name in system_tools.SHELL_CHANGING_BUILTINS
        else NO_OBJECTIONS
    )
    if (name in SHELLS or name in INTERPRETERS) and _reads_script(part):
        objections += Objections(remarks=(f"{name} runs what it reads",))
    named = find_targets(name, part.words)
    for word in named.written:
        objections += judge.check_write(word)
    for word in named.removed:
        objections += judge.check_removal(word)
    for word in named.read:
        objections += judge.check_read(word)
    objections += _check_mentions(part, judge, named)
    return _add_objections(part, objections, _find_running_options(name, part.words))


def _asks_for_version(name: str, words: Sequence[ShellWord]) -> bool:
    """A version is asked of a program of the system: one that a home brings may be a shim, which looks into the
    workspace for what to run."""
    asks = len(words) == 2 and words[1].text in system_tools.VERSION_OPTIONS
    if not asks or name not in system_tools.VERSIONED_PROGRAMS:
        return False
    found = shutil.which(name)
    return found is None or os.path.realpath(found).startswith(system_tools.SYSTEM_DIRECTORIES)


def _reads_script(part: CommandPart) -> bool:
    """A shell or interpreter without a script of its own: it runs its input, or what another command prints."""
    words = [word for word in part.words[1:] if not word.text.startswith(("-", "+"))]
    streams = [word for word in words[:1] if word.descriptor or word.text in ("/dev/stdin", "/dev/fd/0")]
    return not words or bool(streams) or any(word.text in ("-s", "-") for word in part.words)


_RUNNING_OPTIONS: dict[str, tuple[str, str]] = {  # long ones, which may be abbreviated, and an expression for the rest
    "tar": (
        "to-command checkpoint-action use-compress-program rsh-command rmt-command info-script new-volume-script",
        r"-[A-Za-z]*[IF].*",
    ),
    "env": ("chdir split-string", r"-[a-zA-Z0-9]*[CS].*"),
    "rsync": ("rsh rsync-path", r"-[a-zA-Z]*e.*"),
    "make": ("eval file makefile directory include-dir", r"-[a-zA-Z]*[fCI].*|SHELL=.*"),
    "ssh": ("", r"-[oFS].*"),
    "scp": ("", r"-[oSFD].*"),
    "man": ("pager html browser config-file", r"-[a-zA-Z]*[PHC].*"),
    "perl": ("", r"-[a-zA-Z0-9]*[eEiMm].*"),
    "ruby": ("", r"-[a-zA-Z0-9]*[eir].*"),
    "zip": ("unzip-command", r"-T+.*"),
    "gcc": ("", r"-wrapper|-B.*|-specs.*|-fplugin.*"),
}


def _find_running_options(name: str, words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    if name not in _RUNNING_OPTIONS:
        return []
    longs, expression = _RUNNING_OPTIONS[name]
    return [
        (index, f"{name} {word.text} can run something else")
        for index, word in enumerate(words[1:], 1)
        if _abbreviates(word.text, split_names(longs)) or re.fullmatch(expression, word.text, re.DOTALL)
    ]


def _abbreviates(text: str, longs: Sequence[str]) -> bool:
    given = text[2:].partition("=")[0] if text.startswith("--") else ""
    return bool(given) and any(one.startswith(given) for one in longs)


def _check_secrets(part: CommandPart, judge: PathJudge) -> Objections:
    """Files that may not be read unasked, named to a command that does more than reading."""
    found = NO_OBJECTIONS
    for place, word in enumerate(part.words[1:], 1):
        if part.words[place - 1].text not in TEXT_OPTIONS and not (word.quoted and " " in word.text):
            found += sum((judge.check_secret(one) for one in list_path_candidates(word)), NO_OBJECTIONS)
    return found


def _check_mentions(part: CommandPart, judge: PathJudge, named: FileTargets) -> Objections:
    """Protected files named to a program in words of which nothing is known."""
    found = NO_OBJECTIONS
    texts = [word.text for word in part.words]
    known = {word.text for word in (*named.written, *named.read, *named.removed)}
    for index, word in enumerate(part.words[1:], 1):
        if texts[index - 1] in TEXT_OPTIONS or (word.quoted and " " in word.text) or word.text in known:
            continue
        value = word.text.partition("=")[2] if word.text.startswith("-") or "=" in word.text else word.text
        for candidate in dict.fromkeys((value, *(one.text for one in list_path_candidates(word)))):
            if candidate:
                found += judge.check_protected(msgspec.structs.replace(word, text=candidate))
    return found

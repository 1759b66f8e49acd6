"""sed and awk: whether the little program among their words does more than print."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.options import OptionScan, scan_options
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections
from ollm.policy.shell.programs.inner_commands import make_guess
from ollm.policy.shell.programs.record import (
    InnerCommand,
    Program,
    Reading,
    WordDangers,
    Writing,
    find_targets,
    list_options,
    share_record,
    split_names,
)
from ollm.policy.shell.words import ShellWord

_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|\\%(?:[^%\\\n]|\\.)*%)"
_RANGE = rf"(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
_REPLACE = "|".join(
    rf"s{mark}(?:[^{mark}\\\n]|\\.)*{mark}(?:[^{mark}\\\n]|\\.)*{mark}[gpiIM0-9]*"
    for mark in ("/", r"\|", "#", ",", ":")
)
_TRANSLATE = r"y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/"
_SED_COMMAND = rf"{_RANGE}\{{?\s*(?:[pPdDqQ=nNgGhHxlz](?:\s*\d+)?|{_REPLACE}|{_TRANSLATE})\s*\}}?"
_PLAIN_SED = rf"\s*(?:{_SED_COMMAND})(?:\s*[;\n]\s*(?:{_SED_COMMAND}))*\s*;?\s*"
_SED_RUNS = r"(?:^|[;{}\d$/!\s])e\s+([^\n]+)"
_SED_REPLACES = r"s([^\w\s\\])(?:[^\\\n]|\\.)*?\1((?:[^\\\n]|\\.)*?)\1\w*e"
_AWK_ACTS = r"system|getline|\bclose\b|fflush|@|ARGV|ARGC|ENVIRON|PROCINFO|\|(?!\|)(?<!\|\|)|\bextension\b"
_AWK_STRING = r'"(?:[^"\\\n]|\\.)*"'
_AWK_RUNS = r"""(?:system\s*\(\s*|\|\s*(?:getline|&)?\s*)"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|"""


def _inspect_sed(part: CommandPart, judge: PathJudge) -> CommandPart:
    return _inspect_script(SED, "sed", part, judge, lambda text: re.fullmatch(_PLAIN_SED, text) is not None)


def _inspect_awk(part: CommandPart, judge: PathJudge) -> CommandPart:
    return _inspect_script(AWK, "awk", part, judge, _only_prints)


def _only_prints(program: str) -> bool:
    """True if an awk program neither redirects what it prints nor runs anything. A statement goes on over the end of a
    line behind a comma; and where a regular expression or a comment may be, it is not sure where a string begins."""
    bare = re.sub(_AWK_STRING, "0", program)
    sure = not set(bare) & set('"/#\\')
    redirects = re.search(r"\bprintf?\b[^;}]*>" if sure else r"(?s)print.*>", bare if sure else program)
    return redirects is None and re.search(_AWK_ACTS, program) is None


def _inspect_script(
    record: Program, name: str, part: CommandPart, judge: PathJudge, is_plain: Callable[[str], bool]
) -> CommandPart:
    """A command of which one word is a program, unless options give it, and the others are files."""
    reading = record.reads or Reading()
    found = scan_options(part.words, record.options)
    programs, files = _split_operands(found, reading)
    runs: WordDangers = [
        (one.index, f"{name} -{one.name} writes files, or runs what cannot be checked")
        for one in found.options
        if one.is_any(reading.danger)
    ]
    for index, word in programs:
        if not word.static or not is_plain(word.text):
            runs.append((index, f"the {name} program may write, read other files or run commands"))
    runs += [(index, "it may contain an option") for index in found.uncertain]
    objections = judge.check_directory()
    objections += sum((judge.check_read(word) for word in files if not _is_setting(word)), NO_OBJECTIONS)
    for option in found.options:
        if option.value is not None and option.is_any(reading.read_options):
            objections += judge.check_read(option.value)
    objections += sum((judge.check_write(word) for word in find_targets(record, part.words).written), NO_OBJECTIONS)
    if part.may_differ:
        objections += Objections(remarks=(f"what {name} reads is computed at run time",))
    unknown = [f"it is not known what {name} {one.spelled} does" for one in found.unknown]
    return add_objections(part, objections, runs, reads=True, unknown=unknown)


def _split_operands(found: OptionScan, reading: Reading) -> tuple[list[tuple[int, ShellWord]], list[ShellWord]]:
    """The programs, each with its place, and the files."""
    giving = [option for option in found.options if option.is_any(reading.pattern_options)]
    if not giving:
        return list(found.operands[:1]), [word for _, word in found.operands[1:]]
    return [(one.index, one.value) for one in giving if one.value], [word for _, word in found.operands]


def _is_setting(word: ShellWord) -> bool:
    return word.static and re.match(r"[A-Za-z_]\w*=", word.text) is not None


def _find_in_awk(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    found = (match[0] or match[1] for word in words[1:] for match in re.findall(_AWK_RUNS, word.text))
    return [make_guess(text) for text in found if text.strip()]


def _find_in_sed(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    replaced = [match[1] for word in words[1:] for match in re.findall(_SED_REPLACES, word.text)]
    run = [text for word in words[1:] for text in re.findall(_SED_RUNS, word.text)]
    return [make_guess(text) for text in (*run, *replaced) if text.strip()]


SED = Program(
    options=list_options(
        "nErsuzb",
        "efl",
        "quiet silent debug expression= file= regexp-extended in-place? follow-symlinks line-length= posix separate"
        " sandbox unbuffered null-data zero-terminated binary",
        "i",
    ),
    reads=Reading(danger=("i", "in-place", "f", "file"), pattern_options=("e", "f", "expression", "file")),
    writes=Writing(shape="all", skip=1, skip_options=("e", "f", "expression", "file"), needs=("i", "in-place")),
    inspect=_inspect_sed,
    find_commands=_find_in_sed,
    versioned=True,
)
AWK = Program(
    options=msgspec.structs.replace(
        list_options(
            "bcCghIkMNnOPrsStVdpo",
            "fvFilLoEDWe",
            "file= assign= field-separator= include= load= exec= source= dump-variables? profile? pretty-print? debug?"
            " lint? characters-as-bytes traditional copyright gen-pot trace csv bignum use-lc-numeric"
            " non-decimal-data optimize posix re-interval no-optimize sandbox lint-old",
        ),
        stops=True,
    ),
    reads=Reading(
        danger=(
            *"WfiloDELepdIg",
            *split_names("file include load exec source dump-variables profile pretty-print debug trace gen-pot"),
        ),
        pattern_options=("f", "file"),
        read_options=("f", "file", "i", "include"),
    ),
    inspect=_inspect_awk,
    find_commands=_find_in_awk,
    versioned=True,
)

SCRIPT_TOOLS: dict[str, Program] = {"sed": SED, "gsed": SED, **share_record("awk gawk mawk nawk", AWK)}

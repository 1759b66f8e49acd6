"""Little languages inside arguments: whether a sed or awk program does more than print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.options import OptionGrammar, OptionScan, scan_options
from ollm.policy.shell.words import ShellWord

SED_GRAMMAR = OptionGrammar(
    values="efl",
    long_values=("expression", "file", "line-length"),
    known=("in-place", "quiet", "silent", "regexp-extended", "sandbox", "separate", "null-data", "posix", "debug"),
)
AWK_GRAMMAR = OptionGrammar(
    values="fvFilLoEDW",
    long_values=("file", "assign", "field-separator", "include", "load", "exec", "source"),
    known=("dump-variables", "profile", "pretty-print", "debug", "lint"),
    stops=True,
)
_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|\\%(?:[^%\\\n]|\\.)*%)"
_RANGE = rf"(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
_SUBSTITUTE = (
    r"(?:s/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gpiIM0-9]*"
    r"|s\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\|[gpiIM0-9]*"
    r"|s#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#[gpiIM0-9]*"
    r"|s,(?:[^,\\\n]|\\.)*,(?:[^,\\\n]|\\.)*,[gpiIM0-9]*"
    r"|s:(?:[^:\\\n]|\\.)*:(?:[^:\\\n]|\\.)*:[gpiIM0-9]*"
    r"|y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/)"
)
_SED_COMMAND = rf"{_RANGE}\{{?\s*(?:[pPdDqQ=nNgGhHxlz](?:\s*\d+)?|{_SUBSTITUTE})\s*\}}?"
_PLAIN_SED = rf"\s*(?:{_SED_COMMAND})(?:\s*[;\n]\s*(?:{_SED_COMMAND}))*\s*;?\s*"
_AWK_ACTS = r"system|getline|\bclose\b|fflush|@|ARGV|ARGC|ENVIRON|PROCINFO|\|(?!\|)(?<!\|\|)|\bextension\b"
_AWK_STRING = r'"(?:[^"\\\n]|\\.)*"'
_AWK_PRINTS_TO = r"\bprintf?\b[^;}\n]*>"
_AWK_MAY_PRINT_TO = r"(?s)print.*>"


def find_sed_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """The places of words that make sed write files, run commands, or that are not understood."""
    found = scan_options(words, SED_GRAMMAR)
    dangers = [
        (option.index, "sed -i writes files")
        for option in found.options
        if option.name in ("i", "s") or option.name.startswith("in-p") or option.is_any(("in-place",))
        if option.name != "s"
    ]
    dangers += [
        (option.index, "sed -f runs a script that cannot be checked")
        for option in found.options
        if option.is_any(("f", "file"))
    ]
    for index, script in _find_programs(found, ("e", "expression", "f", "file")):
        if not script.static or not re.fullmatch(_PLAIN_SED, script.text):
            dangers.append((index, "the sed script may write, read other files or run commands"))
    return dangers


def find_awk_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """The same for awk."""
    found = scan_options(words, AWK_GRAMMAR)
    acting = ("W", "f", "i", "l", "o", "D", "E", "L", "file", "include", "load", "exec", "source", "e", "p", "d")
    dangers = [
        (option.index, f"awk -{option.name} runs or writes something that cannot be checked")
        for option in found.options
        if option.is_any(acting) or option.is_any(("dump-variables", "profile", "pretty-print", "debug"))
    ]
    for index, program in _find_programs(found, ("f", "file")):
        if not program.static or re.search(_AWK_ACTS, program.text) or _prints_to_file(program.text):
            dangers.append((index, "the awk program may write, read other files or run commands"))
    return dangers


def _prints_to_file(program: str) -> bool:
    """Whether an awk program redirects what it prints. Where a regular expression or a comment may stand, it is not
    sure where a string begins, and any `>` behind a `print` counts."""
    bare = re.sub(_AWK_STRING, "0", program)
    if set(bare) & set('"/#\\'):
        return re.search(_AWK_MAY_PRINT_TO, program) is not None
    return re.search(_AWK_PRINTS_TO, bare) is not None


def _find_programs(found: OptionScan, giving: tuple[str, ...]) -> list[tuple[int, ShellWord]]:
    given = [(option.index, option.value) for option in found.options if option.is_any(giving) and option.value]
    if any(option.is_any(giving) for option in found.options):
        return [(index, word) for index, word in given if word is not None]
    return list(found.operands[:1])


def find_data_files(words: Sequence[ShellWord], grammar: OptionGrammar, giving: tuple[str, ...]) -> list[ShellWord]:
    """The operands that are files: all of them, or all but the program."""
    found = scan_options(words, grammar)
    skip = 0 if any(option.is_any(giving) for option in found.options) else 1
    return [word for _, word in found.operands[skip:]]

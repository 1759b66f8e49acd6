"""Git commands that write a repository, and the options with which they start no program and write no other place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from ollm.policy.shell.programs.record import read_row, read_table
from ollm.policy.shell.words import ShellWord
from ollm.system.sandbox.git_settings import is_harmless_setting

# Actions of a verb that start a program that the line names, install hooks, or write elsewhere
_FORBIDDEN_ACTIONS = {
    "bisect": {"run", "visualize", "view"},
    "submodule": {"foreach"},
    "lfs": {"install", "update", "uninstall", "env", "smudge", "clean", "filter-process", "dedup", "completion"},
    "maintenance": {"start", "stop", "register", "unregister"},
    "notes": {"edit"},
    "stash": {"create", "store"},
}
_REQUIRED = {"apply": {"--index", "--cached"}, "hash-object": {"-w"}, "init": set[str]()}
# Verbs whose options all are harmless, so that a name that a pattern matches cannot be one that does harm
_GLOBBING = frozenset({"add", "rm", "mv", "restore", "checkout", "commit", "reset", "stash"})
OptionKind = Literal["flag", "value", "optional"]
_MARKS: dict[str, OptionKind] = {"=": "value", "?": "optional"}
GLOBAL_FLAGS = frozenset(read_table()["@git-flags"].split())


class GitVerb(NamedTuple):
    """A git command that writes a repository: its verb, and the folder that `-C` names."""

    name: str
    folder: str


@cache
def _list_options(verb: str) -> dict[str, OptionKind] | None:
    """Return the accepted options of a verb, or None if it does not write a repository."""
    row = read_row(f"git/{verb}")
    if not row:
        return None
    words = f"{row} {read_table()['@common']}".split()
    return {word.rstrip("=?"): _MARKS.get(word[-1], "flag") for word in reversed(words)}


def read_git_verb(words: Sequence[ShellWord]) -> GitVerb | None:
    """Return the verb of a git command that may write the repository in a sandbox, or None. Every word counts: an
    option that is not listed, or might be one at run time, is not accepted."""
    folder, index = "", 1
    while index < len(words) and words[index].text.startswith("-"):
        option = words[index].text
        value = words[index + 1] if index + 1 < len(words) else None
        if option in ("-C", "-c"):
            if value is None or not value.static:
                return None
            if option == "-C":
                folder = value.text if value.text.startswith("/") or not folder else f"{folder}/{value.text}"
            elif not value.text.startswith("protocol.") and not is_harmless_setting(*_split_setting(value.text)):
                return None  # Settings of `protocol.` pass, because GIT_ALLOW_PROTOCOL decides.
            index += 2
        elif option in GLOBAL_FLAGS:
            index += 1
        else:
            return None
    verb = words[index].text if index < len(words) and words[index].static else ""
    known = _list_options(verb)
    if known is None:
        return None
    operands = _read_operands(verb, known, words[index + 1 :])
    if operands is None or not _may_act(verb, operands, {word.text for word in words[index + 1 :]}):
        return None
    return GitVerb(verb, folder)


def _split_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "true"


def _may_act(verb: str, operands: list[str], words: set[str]) -> bool:
    required = _REQUIRED.get(verb)
    if required and required.isdisjoint(words):
        return False
    if operands and operands[0] in _FORBIDDEN_ACTIONS.get(verb, ()):
        return False
    if verb == "init":
        return all(operand == "." for operand in operands)
    if verb == "config":
        return _sets_harmless_key(operands, words)
    return not any("::" in operand for operand in operands if verb in ("fetch", "pull", "push", "remote", "submodule"))


def _sets_harmless_key(operands: list[str], words: set[str]) -> bool:
    """Return True for `git config KEY VALUE` and `--unset KEY` of a key that names no program and no path."""
    if operands[:1] in (["set"], ["unset"]):
        operands = operands[1:] if operands[0] == "set" else [*operands[1:2], ""]
    elif words & {"--unset", "--unset-all"}:
        operands = [*operands[:1], ""]
    return len(operands) == 2 and is_harmless_setting(operands[0], operands[1] or "false")


def _read_operands(verb: str, known: dict[str, OptionKind], words: Sequence[ShellWord]) -> list[str] | None:
    """Return the operands of a command, or None if one of its options is not accepted."""
    operands, waiting, ended = list[str](), iter(words), False
    for word in waiting:
        text = word.text
        if ended or not word.might_be_option:
            certain = ended or verb in _GLOBBING or (word.known[:1] and word.known[0] not in "*?[")
            if (word.glob or not word.static) and (not certain or word.several):
                return None
            operands.append(text)
        elif word.static and text == "--":
            ended = True
        elif text == "-" or (word.static and text[1:].isdecimal() and verb in ("stash", "reflog", "notes")):
            operands.append(text)
        elif not _take_option(word, known, waiting):
            return None
    return operands


def _take_option(word: ShellWord, known: dict[str, OptionKind], following: Iterator[ShellWord]) -> bool:
    """Check one word of options, and take its value from the following word if it has one."""
    text = word.known
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        kind = known.get(name) or known.get(name.removeprefix("no-"))
        if kind is None or len(name) < 2 or (not word.static and not (equals and kind != "flag" and not word.several)):
            return False
        return bool(equals) or kind != "value" or _is_value(next(following, None))
    for position, letter in enumerate(text[1:], 2):
        kind = known.get(letter)
        if kind is None:
            return letter.isdecimal() and position > 2
        if kind != "flag":
            joined = text[position:] or not word.static
            if joined or kind == "optional":
                return word.static or (kind != "optional" and not word.several)
            return _is_value(next(following, None))
    return word.static and len(text) > 1


def _is_value(word: ShellWord | None) -> bool:
    """Return True for the value of an option: static, or one word in quotes whatever it says."""
    return word is not None and (word.static or (word.quoted and not word.several))

"""Programs that run another command they are given: what that command is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.launchers import Finder
from ollm.policy.shell.options import Grammar, scan
from ollm.policy.shell.runners import RUNNERS
from ollm.policy.shell.tables import names
from ollm.policy.shell.unwrap import Inner, joined, rest_of, unwrap
from ollm.policy.shell.words import Word
from ollm.policy.shell.wrapper_table import WRAPPERS

SHELLS = frozenset(names("bash sh dash zsh ksh mksh ash fish rbash csh tcsh yash posh oksh"))
TRANSPARENT = frozenset({"timeout", "time", "nice", "nohup", "stdbuf"})


def inner_commands(program: str, words: Sequence[Word]) -> list[Inner]:
    """The commands that this one would run; none for an ordinary program."""
    name = "sh" if program in SHELLS else program
    finder = _BUILTINS.get(name) or RUNNERS.get(name)
    if finder is not None:
        return finder(words)
    wrapper = WRAPPERS.get(program)
    return [] if wrapper is None else unwrap(wrapper, words)


def _shell(words: Sequence[Word]) -> list[Inner]:
    """`bash -c SCRIPT NAME ARGUMENT…`. A script's file is not looked into."""
    words = [word for word in words if not re.fullmatch(r"\+[a-zA-Z]*", word.text)]
    found = scan(words, Grammar(values="oO", long_values=("rcfile", "init-file"), known=("command",), stops=True))
    if not any(option.is_any(("c", "command")) for option in found.options) or not found.operands:
        return []
    (_, script), *arguments = found.operands
    texts = tuple(word.text for _, word in arguments)
    return [Inner(script=script.text, static=script.static, arguments=texts)]


def _eval(words: Sequence[Word]) -> list[Inner]:
    rest = rest_of(list(words[1:]))
    return [joined(rest)] if rest else []


def _trap(words: Sequence[Word]) -> list[Inner]:
    rest = rest_of(list(words[1:]))
    resets = len(rest) < 2 or (rest[0].static and rest[0].text in ("-", "-p", "-l", ""))
    return [] if resets else [joined(rest[:1])]


def _alias(words: Sequence[Word]) -> list[Inner]:
    values = [word.text.partition("=")[2] for word in words[1:] if "=" in word.text]
    return [Inner(script=value, guess=True) for value in values if value.strip()]


def _callback(words: Sequence[Word]) -> list[Inner]:
    """`mapfile -C COMMAND`."""
    found = scan(words, Grammar(values="dnOsuCc"))
    return [Inner(script=one.value.text, guess=True) for one in found.options if one.name == "C" and one.value]


def _command(words: Sequence[Word]) -> list[Inner]:
    found = scan(words, WRAPPERS["command"].grammar)
    asks_only = any(option.name in ("v", "V") for option in found.options)
    return [] if asks_only else unwrap(WRAPPERS["command"], words)


def _user_shell(program: str) -> Finder:
    """`su [-] [USER] [-c SCRIPT]`: options also stand after the user's name; `runuser -u USER COMMAND` runs words."""

    def inner(words: Sequence[Word]) -> list[Inner]:
        wrapper = WRAPPERS[program]
        grammar = Grammar(values=wrapper.grammar.values, long_values=wrapper.grammar.long_values)
        found = scan(words, grammar)
        if program == "runuser" and any(option.is_any(("u", "user")) for option in found.options):
            return unwrap(wrapper, words)
        scripts = [option.value for option in found.options if option.is_any(wrapper.scripts) and option.value]
        return [Inner(script=value.text, static=value.static) for value in scripts]

    return inner


_BUILTINS: dict[str, Finder] = {
    "sh": _shell,
    "eval": _eval,
    "--": lambda words: [Inner(words=tuple(words[1:]))] if len(words) > 1 else [],
    "trap": _trap,
    "alias": _alias,
    "command": _command,
    "mapfile": _callback,
    "readarray": _callback,
    "su": _user_shell("su"),
    "runuser": _user_shell("runuser"),
}


def splits_off(program: str, words: Sequence[Word]) -> tuple[Word, ...] | None:
    """What a harmless wrapper runs, if this is one used harmlessly; None otherwise."""
    if program not in TRANSPARENT:
        return None
    wrapper = WRAPPERS[program]
    found = scan(words, wrapper.grammar)
    rest = [word for _, word in found.operands]
    own = len(words) - len(rest) + wrapper.operands
    if found.uncertain or len(rest) <= wrapper.operands or not all(word.static for word in words[:own]):
        return None
    if program == "time" and any(option.is_any(("o", "output")) for option in found.options):
        return None
    return tuple(rest_of(rest[wrapper.operands :]))

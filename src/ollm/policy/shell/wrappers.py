"""Programs that run another command they are given: what that command is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.launchers import CommandFinder
from ollm.policy.shell.options import OptionGrammar, scan_options
from ollm.policy.shell.runners import RUNNERS
from ollm.policy.shell.tables import split_names
from ollm.policy.shell.unwrap import InnerCommand, drop_separator, join_script, unwrap_command
from ollm.policy.shell.words import ShellWord
from ollm.policy.shell.wrapper_table import WRAPPERS

SHELLS = frozenset(split_names("bash sh dash zsh ksh mksh ash fish rbash csh tcsh yash posh oksh"))
TRANSPARENT_WRAPPERS = frozenset({"timeout", "time", "nice", "nohup", "stdbuf"})


def find_inner_commands(program: str, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """The commands that this one would run; none for an ordinary program."""
    name = "sh" if program in SHELLS else program
    finder = _BUILTIN_FINDERS.get(name) or RUNNERS.get(name)
    if finder is not None:
        return finder(words)
    wrapper = WRAPPERS.get(program)
    return [] if wrapper is None else unwrap_command(wrapper, words)


def _unwrap_shell(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """`bash -c SCRIPT NAME ARGUMENT…`. A script's file is not looked into."""
    words = [word for word in words if not re.fullmatch(r"\+[a-zA-Z]*", word.text)]
    found = scan_options(
        words, OptionGrammar(values="oO", long_values=("rcfile", "init-file"), known=("command",), stops=True)
    )
    if not any(option.is_any(("c", "command")) for option in found.options) or not found.operands:
        return []
    (_, script), *arguments = found.operands
    texts = tuple(word.text for _, word in arguments)
    return [InnerCommand(script=script.text, static=script.static, arguments=texts)]


def _unwrap_eval(words: Sequence[ShellWord]) -> list[InnerCommand]:
    rest = drop_separator(list(words[1:]))
    return [join_script(rest)] if rest else []


def _unwrap_trap(words: Sequence[ShellWord]) -> list[InnerCommand]:
    rest = drop_separator(list(words[1:]))
    resets = len(rest) < 2 or (rest[0].static and rest[0].text in ("-", "-p", "-l", ""))
    return [] if resets else [join_script(rest[:1])]


def _unwrap_alias(words: Sequence[ShellWord]) -> list[InnerCommand]:
    values = [word.text.partition("=")[2] for word in words[1:] if "=" in word.text]
    return [InnerCommand(script=value, guess=True) for value in values if value.strip()]


def _unwrap_callback(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """`mapfile -C COMMAND`."""
    found = scan_options(words, OptionGrammar(values="dnOsuCc"))
    return [InnerCommand(script=one.value.text, guess=True) for one in found.options if one.name == "C" and one.value]


def _unwrap_command_builtin(words: Sequence[ShellWord]) -> list[InnerCommand]:
    found = scan_options(words, WRAPPERS["command"].grammar)
    asks_only = any(option.name in ("v", "V") for option in found.options)
    return [] if asks_only else unwrap_command(WRAPPERS["command"], words)


def _make_user_shell_finder(program: str) -> CommandFinder:
    """`su [-] [USER] [-c SCRIPT]`: options also stand after the user's name; `runuser -u USER COMMAND` runs words."""

    def inner(words: Sequence[ShellWord]) -> list[InnerCommand]:
        wrapper = WRAPPERS[program]
        grammar = OptionGrammar(values=wrapper.grammar.values, long_values=wrapper.grammar.long_values)
        found = scan_options(words, grammar)
        if program == "runuser" and any(option.is_any(("u", "user")) for option in found.options):
            return unwrap_command(wrapper, words)
        scripts = [option.value for option in found.options if option.is_any(wrapper.scripts) and option.value]
        return [InnerCommand(script=value.text, static=value.static) for value in scripts]

    return inner


_BUILTIN_FINDERS: dict[str, CommandFinder] = {
    "sh": _unwrap_shell,
    "eval": _unwrap_eval,
    "--": lambda words: [InnerCommand(words=tuple(words[1:]))] if len(words) > 1 else [],
    "trap": _unwrap_trap,
    "alias": _unwrap_alias,
    "command": _unwrap_command_builtin,
    "mapfile": _unwrap_callback,
    "readarray": _unwrap_callback,
    "su": _make_user_shell_finder("su"),
    "runuser": _make_user_shell_finder("runuser"),
}


def split_off_command(program: str, words: Sequence[ShellWord]) -> tuple[ShellWord, ...] | None:
    """What a harmless wrapper runs, if this is one used harmlessly; None otherwise."""
    if program not in TRANSPARENT_WRAPPERS:
        return None
    wrapper = WRAPPERS[program]
    found = scan_options(words, wrapper.grammar)
    rest = [word for _, word in found.operands]
    own = len(words) - len(rest) + wrapper.operands
    if found.uncertain or len(rest) <= wrapper.operands or not all(word.static for word in words[:own]):
        return None
    if program == "time" and any(option.is_any(("o", "output")) for option in found.options):
        return None
    return tuple(drop_separator(rest[wrapper.operands :]))

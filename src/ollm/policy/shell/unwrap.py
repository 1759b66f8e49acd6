"""A command inside another one, found by the table of wrappers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.domain.struct import Data
from ollm.policy.shell.options import scan_options
from ollm.policy.shell.words import ShellWord
from ollm.policy.shell.wrapper_table import Wrapper

_ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]*\+?="


class InnerCommand(Data, frozen=True):
    """A command inside another: as words or as a script to be parsed. `arguments` are `$0`, `$1` … of a script.
    `more` says that words may be appended; a `guess` is one of several readings."""

    words: tuple[ShellWord, ...] = ()
    script: str | None = None
    static: bool = True
    arguments: tuple[str, ...] = ()
    more: bool = False
    guess: bool = False


def unwrap_command(wrapper: Wrapper, words: Sequence[ShellWord]) -> list[InnerCommand]:
    found = scan_options(words, wrapper.grammar)
    scripts = [option for option in found.options if option.is_any(wrapper.scripts) and option.value]
    rest = [word for _, word in found.operands]
    inner = [
        InnerCommand(script=" ".join([option.value.text, *(word.text for word in rest)]), static=option.value.static)
        for option in scripts
        if option.value
    ]
    if found.uncertain:
        inner += [InnerCommand(words=tuple(words[index:]), guess=True) for index in range(2, len(words))]
    while wrapper.assignments and rest and (rest[0].text == "-" or re.match(_ASSIGNMENT, rest[0].text)):
        rest = rest[1:]
    rest = drop_separator(rest[wrapper.operands :])
    if wrapper.scripts and len(rest) > 1 and rest[0].text.lstrip("-") in wrapper.scripts:
        inner.append(join_script(rest[1:]))
    elif rest and wrapper.joined:
        inner.append(join_script(rest))
    elif rest:
        inner.append(InnerCommand(words=tuple(rest), more=wrapper.more))
    return inner


def drop_separator(words: list[ShellWord]) -> list[ShellWord]:
    return words[1:] if words and words[0].text == "--" else words


def join_script(words: Sequence[ShellWord], **more: object) -> InnerCommand:
    static = all(word.static for word in words)
    return InnerCommand(script=" ".join(word.text for word in words), static=static, **more)  # type: ignore[arg-type]

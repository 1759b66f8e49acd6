"""Commands that stand as text in a little program of another language: `python -c`, `perl -e`, `awk`, `sed`.

Only what can be read off is found, and it can only forbid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ollm.policy.shell.unwrap import InnerCommand
from ollm.policy.shell.words import ShellWord

_STRING = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_CALL = (
    r"(?:\b(?:system\w*|popen\w*|exec\w*|spawn\w*|getoutput|getstatusoutput|passthru|shell_exec|proc_open|execute)"
    r"|shell-command|shell script|subprocess\.\w+|\b(?:run|call|check_call|check_output|Popen)(?=\s*\())"
    rf"[\s(\[{{]*({_STRING}(?:\s*,\s*\[?\s*{_STRING})*)"
)
_BACKTICKS = r"`([^`]+)`|(?:qx|%x)\s*[({\[/|!]([^)}\]/|!]+)"
_AWK = r"""(?:system\s*\(\s*|\|\s*(?:getline|&)?\s*)"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|"""
_SED_RUNS = r"(?:^|[;{}\d$/!\s])e\s+([^\n]+)"
_SED_REPLACES = r"s([^\w\s\\])(?:[^\\\n]|\\.)*?\1((?:[^\\\n]|\\.)*?)\1\w*e"


def find_in_code(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """What a program in Python, Perl, Ruby, JavaScript, PHP or Lua hands to a shell."""
    return _make_guesses(text for word in words[1:] for text in find_called_commands(word.text))


def find_called_commands(code: str) -> Iterator[str]:
    """The commands in calls that start programs, and between backticks."""
    for call in re.finditer(_CALL, code):
        strings = [one[1:-1] for one in re.findall(_STRING, call.group(1))]
        yield strings[0] if " " in strings[0] else " ".join(strings)
    for found in re.finditer(_BACKTICKS, code):
        yield found.group(1) or found.group(2)


def find_in_awk(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """What awk hands to `system` and to pipes."""
    return _make_guesses(match[0] or match[1] for word in words[1:] for match in re.findall(_AWK, word.text))


def find_in_sed(words: Sequence[ShellWord]) -> list[InnerCommand]:
    """What GNU sed runs with `e` and `s///e`."""
    return _make_guesses(
        text
        for word in words[1:]
        for text in (
            *re.findall(_SED_RUNS, word.text),
            *(found[1] for found in re.findall(_SED_REPLACES, word.text)),
        )
    )


def _make_guesses(texts: Iterator[str]) -> list[InnerCommand]:
    return [InnerCommand(script=text, guess=True) for text in texts if text.strip()]

"""Commands that are written as text in a little program of another language: `python -c`, `perl -e`, `php -r`.

Only what can be read off is found, and it can only forbid."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_CALL = (
    r"(?:\b(?:system\w*|popen\w*|exec\w*|spawn\w*|getoutput|getstatusoutput|passthru|shell_exec|proc_open|execute)"
    r"|shell-command|shell script|subprocess\.\w+|\b(?:run|call|check_call|check_output|Popen)(?=\s*\())"
    rf"[\s(\[{{]*({_STRING}(?:\s*,\s*\[?\s*{_STRING})*)"
)
_BACKTICKS = r"`([^`]+)`|(?:qx|%x)\s*[({\[/|!]([^)}\]/|!]+)"


def find_called_commands(code: str) -> Iterator[str]:
    """The commands in calls that start programs, and between backticks."""
    for call in re.finditer(_CALL, code):
        strings = [one[1:-1] for one in re.findall(_STRING, call.group(1))]
        yield strings[0] if " " in strings[0] else " ".join(strings)
    for found in re.finditer(_BACKTICKS, code):
        yield found.group(1) or found.group(2)

"""The line of a file that what went wrong points at, from the output of a command. Pure.

A tiny model that is asked to mend a file writes it again as it is; shown the one line with a minus it writes another.
"""

from __future__ import annotations

import re

from ollm.providers.text_calls.definitions import find_definitions

_PYTHON_PLACE = r'File "(?:[^"\n]*/)?{name}", line (\d+)'
_OTHER_PLACE = r"(?:^|[\s/]){name}:(?: line)? ?(\d+)[:\s]"
_RETURN = re.compile(
    r"^\s*return\b(?!\s+(?!True\b|False\b|None\b)[A-Za-z_]\w*\s*;?$).*\S"
)  # a name alone is worked out above


def find_suspect_line(path: str, text: str, output: str, request: str) -> str:
    """The line that the output names last, or the only one that a function it names returns by; empty where neither
    stands alone."""
    lines = text.splitlines()
    name = re.escape(path.rpartition("/")[2])
    for pattern in (_PYTHON_PLACE, _OTHER_PLACE):
        if places := re.findall(pattern.format(name=name), output, re.MULTILINE):
            number = int(places[-1]) - 1
            return _check_alone(lines[number], lines) if number < len(lines) else ""
    returned = _find_returned_line(lines, output) or _find_returned_line(lines, request)
    return _check_alone(returned, lines)


def _find_returned_line(lines: list[str], words: str) -> str:
    named = [found for found in find_definitions(lines) if re.search(rf"\b{re.escape(found.name)}\b", words)]
    returns = [line for found in named for line in found.text.split("\n") if _RETURN.match(line)]
    return returns[0] if len(returns) == 1 else ""


def _check_alone(line: str, lines: list[str]) -> str:
    return line if line.strip() and lines.count(line) == 1 else ""

"""What of an output answers a question by rule: its last line, and the line with the highest or lowest number.

A small model reads the last line but one, or takes the first line for the highest. Only what is plain is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolCallRecord

MAX_LINES = 60
MAX_LINE_CHARS = 200
MIN_COUNTED = 3  # lines, from which 1, 2, 3 … are taken for their numbers
_PROGRAM = re.compile(r"\s*(?:python3?|node|sh|bash|ruby|perl)\s+\S+|\s*\./\S+")
_LAST = re.compile(
    r"\b(?:the|its)\s+(?:last|final)\s+(?!commit|change|modif|edit|time|week|month|year|day|name|update|login|version|two|three|few|\d)\w+",
    re.IGNORECASE,
)
_HIGH = re.compile(
    r"\b(?:highest|largest|biggest|maximum|greatest|longest|warmest|hottest|heaviest|tallest|"
    r"(?<!at )most(?!\s+(?:recent|important|of|likely)))\b",
    re.IGNORECASE,
)
_LOW = re.compile(
    r"\b(?:lowest|smallest|minimum|shortest|coldest|coolest|lightest|cheapest|fewest|(?<!at )least)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?%?")
_TOTAL = re.compile(r"^(?:total|sum|average|mean|all)\b|\btotal$", re.IGNORECASE)


def describe_output(request: str, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> str:
    """The line that a question asks for, of what the last command printed."""
    result = records[-1].result if records else None
    if result is None or result.exit_code != 0 or result.full_output:
        return ""
    lines = [line.rstrip() for line in result.llm_content.strip().splitlines() if line.strip()]
    if not 2 <= len(lines) <= MAX_LINES or any(len(line) > MAX_LINE_CHARS for line in lines):
        return ""
    command = str(calls[-1].arguments.get("command", "")) if calls else ""
    if _LAST.search(request) and _PROGRAM.match(command):
        return f"The last line is: {lines[-1]}"
    high, low = _HIGH.search(request), _LOW.search(request)
    line = find_extreme_line(lines, highest=bool(high)) if bool(high) is not bool(low) else ""
    return f"{'Highest' if high else 'Lowest'}: {line}" if line else ""


def find_extreme_line(lines: Sequence[str], *, highest: bool) -> str:
    """The line whose numbers are all the highest, or the lowest, of their columns; none where they disagree."""
    rows = [(line, _read_numbers(line)) for line in lines if not _TOTAL.search(line.strip())]
    if rows and not rows[0][1]:
        rows = rows[1:]  # the heads of the columns
    columns = list(zip(*(numbers for _, numbers in rows), strict=False))
    even = len(rows) > 1 and len({len(numbers) for _, numbers in rows}) == 1
    named = all(re.search(r"[^\W\d]", line) for line, _ in rows)
    told = [column for column in columns if not _is_counted(column)]
    if not even or not named or not told:
        return ""
    best = [max(column) if highest else min(column) for column in told]
    places = {column.index(value) for column, value in zip(told, best, strict=True)}
    alone = all(column.count(value) == 1 for column, value in zip(told, best, strict=True))
    return rows[places.pop()][0].strip() if alone and len(places) == 1 else ""


def _read_numbers(line: str) -> list[float]:
    words = (word.strip("()[]\"'") for word in re.split(r"[\s,;|]+|:\s|:$|=", line))
    return [float(word.rstrip("%")) for word in words if _NUMBER.fullmatch(word)]


def _is_counted(column: Sequence[float]) -> bool:
    """Whether these are the numbers of the lines."""
    counted = ([float(place + start) for place in range(len(column))] for start in (0, 1))
    return len(column) >= MIN_COUNTED and list(column) in counted

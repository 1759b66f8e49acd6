"""A line that the request spells out and wants in one entry of a file of settings or styles, and the command that puts
it there. Pure: words in, commands out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ollm.domain.struct import Data
from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.entry_names import find_meant_entry, says_of_many, strip_kept_parts
from ollm.services.request_reading.setting_entries import FLAT, KEY, STYLES, Entry, count_indent

_YAML = (".yaml", ".yml")
_ADDS = re.compile(
    r"(?:^\s*|[.;:,]\s+|\b(?:and|then|please|now)\s+)(?:in\s+\S+,?\s+)?(?:add|append|insert|put|give|set|write)\b",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"\b(?:should|must|needs?\s+to)\s+(?:have|get)\b|\bneeds\s+an?\b", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)(?P<mark>[`'\"])(?P<line>[\w.-]+\s*[:=]\s*[^`'\n]*?)(?P=mark)(?!\w)")
_BARE = re.compile(
    r"(?<![\w`'\"])(?P<line>[A-Za-z_][\w-]*(?::\s+|\s*=\s*)[\w./#%-]*\w)(?=\s+(?:to|in|under|for|on|at)\b|[.,;!]?\s*$|[.,;]\s)"
)


class AddedLine(Data, frozen=True):
    """What `line` comes behind line `place` of the file, or takes the place of it."""

    entry: str
    line: str
    place: int
    replaces: bool = False


def find_line_command(request: str, primed: str) -> str:
    """The command for such a line, where it is asked for before anything else and the file was shown whole."""
    shown = re.findall(r"^(\S+):\n```\n(.*?)^```$", primed, re.MULTILINE | re.DOTALL) if _ADDS.match(request) else []
    founds = [(path, added) for path, text in shown if (added := find_added_line(request, path, text))]
    return _make_command(*founds[0]) if len(founds) == 1 else ""


def find_line_steps(request: str, texts: Mapping[str, str]) -> list[str]:
    """The step for such a line that is not there."""
    founds = [(path, added) for path, text in texts.items() if (added := find_added_line(request, path, text))]
    if len(founds) != 1:
        return []
    path, added = founds[0]
    return [f"{added.line.strip()} is not under {added.entry} in {path}. Now run {_make_command(path, added)}."]


def find_added_line(request: str, path: str, text: str) -> AddedLine | None:
    """Where the line belongs; none where it is there, or the words leave open in which entry."""
    literals = list(_QUOTED.finditer(request)) or list(_BARE.finditer(request))
    wanted = (_ADDS.search(request) or _NEEDS.search(request)) and asks_for_change(request)
    if len(literals) != 1 or not wanted or not path.endswith((*_YAML, *FLAT, *STYLES)):
        return None
    literal = literals[0]["line"].strip().rstrip(";")
    own = r"[\w.-]+\s*=" if path.endswith(FLAT) else r"[\w.-]+:"
    words = strip_kept_parts(request.replace(literals[0][0], " it "))
    if not re.match(own, literal) or "\\" in literal or says_of_many(words):
        return None
    lines = text.splitlines()
    entry = find_meant_entry(path, lines, words)
    return _place(literal, entry, lines, path) if entry else None


def _place(literal: str, entry: Entry, lines: list[str], path: str) -> AddedLine | None:
    """Behind the last line of the entry, or instead of the one that sets the same."""
    inside = range(entry.start + 1, entry.end)
    first = next((place for place in inside if lines[place].strip()), None)
    if first is None or not KEY.match(lines[first]):
        return None
    depth = count_indent(lines[first])
    line = f"{lines[first][:depth]}{literal}{';' if path.endswith(STYLES) else ''}"
    name = re.split(r"\s*[:=]", literal, maxsplit=1)[0]
    keys = {place: KEY.match(lines[place]) for place in inside if count_indent(lines[place]) == depth}
    same = [place for place, key in keys.items() if key and key["name"] == name]
    if same:
        value = lines[same[0]].strip().rstrip(";").partition(" #")[0]
        plain = len(same) == 1 and not value.endswith((":", "|", ">", "[", "{", "("))
        done = re.sub(r"\s", "", value) == re.sub(r"\s", "", literal)
        return AddedLine(entry=entry.name, line=line, place=same[0], replaces=True) if plain and not done else None
    closed = lines[entry.end - 1].lstrip().startswith("}")
    return AddedLine(entry=entry.name, line=line, place=entry.end - 1 - closed)


def _make_command(path: str, added: AddedLine) -> str:
    change = rf"{added.place + 1}{'c' if added.replaces else 'a'}\{added.line}"
    return f"sed -i {shlex.quote(change)} {shlex.quote(path)}"

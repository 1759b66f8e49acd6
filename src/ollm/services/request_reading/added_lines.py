"""A line that the request spells out and wants in one entry of a file of settings or styles, and the command that puts
it there. Pure: words in, commands out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ollm.domain.struct import Data
from ollm.providers.text_calls.line_edits import count_indent
from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.entry_names import find_meant_entry, says_of_many, strip_kept_parts
from ollm.services.request_reading.plain_words import is_named_file
from ollm.services.request_reading.replaced_names import escape_for_sed, escape_replacement
from ollm.services.request_reading.reservations import SUPPOSED
from ollm.services.request_reading.setting_entries import FLAT, KEY, NESTED, STYLES, Entry
from ollm.services.request_reading.shown_files import list_shown_texts

_FILES = (*NESTED, *FLAT, *STYLES)
_ADDS = re.compile(
    r"(?:^\s*|[.;:,]\s+|\b(?:and|then|please|now)\s+)(?:in\s+\S+,?\s+)?(?:add|append|insert|put|give|set|write)\b",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"\b(?:should|must|needs?\s+to)\s+(?:have|get)\b|\bneeds\s+an?\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"(?<!\w)(?P<mark>[`'\"])(?P<quote>\"?)(?P<key>[\w.-]+)(?P=quote)\s*(?P<sign>[:=])\s*(?P<value>[^`'\n]*?);?(?P=mark)(?!\w)"
)
_ENDS = r"(?=\s+(?:to|in|under|for|on|at|and)\b|[.,;!)]?\s*$|[.,;]\s)"
_BARE = re.compile(rf"(?<![\w`'\"])(?P<key>[A-Za-z_][\w-]*)(?P<sign>:\s+|\s*=\s*)(?P<value>[\w./#%-]*\w){_ENDS}")
_VALUE = rf"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|-?[\w#](?:[\w.#/%-]*[\w%])?){_ENDS}"
_TOLD = re.compile(
    r"\b(?:key|setting|property|option|field|attribute)\s+[`'\"]?(?P<key>[\w.-]+)[`'\"]?\s+(?:with|and|of)\s+"
    rf"(?:the\s+|a\s+)?value\s+(?:of\s+)?(?P<sign>){_VALUE}",
    re.IGNORECASE,
)
_OF = re.compile(
    rf"\ban?\s+[`'\"]?(?P<key>[A-Za-z_][\w-]*)[`'\"]?\s+of\s+(?!an?\b|the\b)(?P<sign>){_VALUE}", re.IGNORECASE
)
_TYPED = re.compile(r"-?\d+(?:\.\d+)?|true|false|null|\"[^\"]*\"", re.IGNORECASE)


class AddedLine(Data, frozen=True):
    """What `line` comes behind line `place` of the file, or takes the place of what is there; `joined`: by a comma."""

    entry: str
    line: str
    place: int
    replaces: str = ""
    joined: bool = False


def find_line_command(request: str, primed: str) -> str:
    """The command for such a line, where it is asked for before anything else and the file was shown whole."""
    shown = list_shown_texts(primed) if _ADDS.match(request) else []
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
    patterns = (_QUOTED, _BARE, _TOLD, _OF)
    literals = next(filter(None, (list(pattern.finditer(request)) for pattern in patterns)), [])
    wanted = (_ADDS.search(request) or _NEEDS.search(request)) and asks_for_change(request)
    here = path.endswith(_FILES) and is_named_file(path, request)
    if len(literals) != 1 or not wanted or not here or SUPPOSED.search(request):
        return None
    if re.search(r"\b(?:to|be|become|by|as|say|says|print|prints)\s+$", request[: literals[0].start()]):
        return None  # it is a value
    words = strip_kept_parts(request.replace(literals[0][0], " `` "))
    lines = text.splitlines()
    entry = None if says_of_many(words) else find_meant_entry(path, lines, words)
    return _place(literals[0], entry, lines, path) if entry else None


def _place(literal: re.Match[str], entry: Entry, lines: list[str], path: str) -> AddedLine | None:
    """Behind the last line of the entry, or instead of the one that sets the same."""
    inside = range(entry.start + 1, entry.end)
    first = next((place for place in inside if lines[place].strip()), None)
    head = KEY.match(lines[first]) if first is not None else None
    setting = _write_setting(literal, lines[first], path) if first is not None and head else ""
    if first is None or not setting:
        return None
    depth = count_indent(lines[first])
    line = lines[first][:depth] + setting
    keys = {place: KEY.match(lines[place]) for place in inside if count_indent(lines[place]) == depth}
    same = [place for place, key in keys.items() if key and key["name"] == literal["key"]]
    if same:
        old = lines[same[0]].strip()
        bare = re.sub(r"[;,]?\s*$", "", old.partition(" #")[0])
        plain = len(same) == 1 and not bare.endswith((":", "|", ">", "[", "{", "("))
        done = re.sub(r"\s", "", bare) == re.sub(r"[\s;]", "", setting)
        line += "," if old.endswith(",") else ""
        added = AddedLine(entry=entry.name, line=line, place=same[0], replaces=lines[same[0]])
        return added if plain and not done else None
    closed = lines[entry.end - 1].lstrip().startswith("}")
    return AddedLine(entry=entry.name, line=line, place=entry.end - 1 - closed, joined=path.endswith(".json"))


def _write_setting(literal: re.Match[str], like: str, path: str) -> str:
    """`key: value` as files of this kind have it; empty where that is not plain."""
    key, sign, value = literal["key"], literal["sign"].strip(), literal["value"].strip().strip("`")
    if "\\" in value or not value or (sign and sign != ("=" if path.endswith(FLAT) else ":")):
        return ""
    if path.endswith((".json", ".toml")) and not _TYPED.fullmatch(value):
        value = "" if sign and path.endswith(".toml") else '"{}"'.format(value.strip("\"'"))
    if not value:
        return ""
    if path.endswith(FLAT):
        return f"{key}={value}" if re.match(r"\s*[\w.-]+=", like) else f"{key} = {value}"
    written = f'"{key}": {value}' if path.endswith(".json") else f"{key}: {value}"
    return f"{written};" if path.endswith(STYLES) else written


def _make_command(path: str, added: AddedLine) -> str:
    number = added.place + 1
    change = rf"{number}a\{added.line}"
    if added.replaces:
        change = f"{number}s/^{escape_for_sed(added.replaces)}$/{escape_replacement(added.line)}/"
    comma = f"-e '{number}s/$/,/' -e " if added.joined else ""
    return f"sed -i {comma}{shlex.quote(change)} {shlex.quote(path)}"

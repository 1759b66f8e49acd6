"""Entries of files of settings, by their names: which lines they are, and the step for one that is to go.

Pure: words and texts in, sentences out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ollm.domain.struct import Data
from ollm.providers.text_calls.line_edits import count_indent
from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.plain_words import CHANGE_VERBS, FILE_NAME, has_file_ending, is_ordered
from ollm.services.request_reading.reservations import SUPPOSED
from ollm.services.request_reading.shown_files import list_shown_texts

NESTED = (".yaml", ".yml", ".json")
FLAT = (".toml", ".ini", ".cfg", ".conf")
STYLES = (".css", ".scss", ".less")
KEY = re.compile(r"^(?P<indent>[ \t]*)(?P<quote>[\"']?)(?P<name>[\w.-]+)(?P=quote)\s*[:=]")
_RULE = re.compile(r"^(?P<indent>[ \t]*)(?P<name>[^{}\n]*[^{}\s])\s*\{\s*$")
_SECTION = re.compile(r"^\[+(?P<name>[^\]\n]+)\]+\s*$")
_FILES = (*NESTED, *FLAT)
KINDS = frozenset(  # words for what an entry is
    (  # noqa: SIM905
        "section entry service rule block job table region environment profile stage key element target container "
        "group step plugin package setting option cluster node component module stanza line property field server"
    ).split()
)
_WORD = r"(?!(?:and|from|in|of|under)\b)[\w.'\"`\[\]-]+"
_ITEM = rf"(?!(?:{'|'.join(CHANGE_VERBS)}|run)\b)(?:the\s+|an?\s+)?{_WORD}(?:\s+{_WORD}){{0,2}}?"
_REMOVED = re.compile(
    rf"\b(?:remove|delete|drop|get\s+rid\s+of)\s+(?P<words>{_ITEM}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_ITEM})*)"
    r"(?:\s+(?:from|in|of|out\s+of|under)\s+(?P<where>(?:[^.;,\n]|\.(?=\w))+?))?(?=\s+(?:and|then)\b|[.;,]\s|[.!]?\s*$)",
    re.IGNORECASE,
)
_FIRST = re.compile(rf"\s*(?:in\s+`?(?:{FILE_NAME})`?,?\s+)?(?:remove|delete|drop|get\s+rid\s+of)\b", re.IGNORECASE)
_NO_PLACE = re.compile(
    r"\b(?:the|my|our|this|that|it|file|config|configuration|settings?|json|ya?ml|toml|ini)\b", re.IGNORECASE
)
_OPENED = re.compile(r"(?:[\[{(|>\\]|\"{3}|'{3})\s*$")  # what goes on below


class Entry(Data, frozen=True):
    """The lines under a name: from its head up to where they end."""

    name: str
    depth: int
    start: int
    end: int
    flat: bool = False  # its lines are no deeper than its head


def list_entries(path: str, lines: list[str]) -> list[Entry]:
    """The entries of a file, outer ones before those in them."""
    if path.endswith(FLAT):
        heads = [(number, found["name"]) for number, line in enumerate(lines) if (found := _SECTION.match(line))]
        ends = [*(number for number, _ in heads[1:]), len(lines)]
        return [
            Entry(name=name, depth=0, start=number, end=_drop_blank(lines, number, end), flat=True)
            for (number, name), end in zip(heads, ends, strict=False)  # no head, no entry
        ]
    made = []
    for number, line in enumerate(lines):
        key = _RULE.match(line) if path.endswith(STYLES) else KEY.match(line)
        if key is None:
            continue
        depth = len(key["indent"])
        end = number + 1
        while end < len(lines) and (not lines[end].strip() or count_indent(lines[end]) > depth):
            end += 1
        end = _drop_blank(lines, number, end)
        opened = line.rstrip().endswith(("{", "[")) and end < len(lines) and lines[end].strip()[:1] in ("}", "]")
        if end > number + 1:
            made.append(Entry(name=key["name"], depth=depth, start=number, end=end + opened))
    return made


def _drop_blank(lines: list[str], start: int, end: int) -> int:
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def is_named(name: str, request: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", request) is not None


def find_entry_steps(request: str, texts: Mapping[str, str], before: Mapping[str, str] | None = None) -> list[str]:
    """The step for each entry that was to go and is there. `before`: files that were changed, as they were. What went
    from one of two places has gone."""
    steps: list[str] = []
    if not asks_for_change(request) or SUPPOSED.search(request):
        return steps
    settings = [path for path in texts if path.endswith(_FILES)]
    named = [path for path in settings if path.rpartition("/")[2] in request]
    elsewhere = any(map(has_file_ending, re.findall(FILE_NAME, request)))
    for path in named or (settings if len(settings) == 1 and not elsewhere else ()):
        text = texts[path]
        lines = text.splitlines()
        for item, where in _list_removed(request):
            first = _find_removed(path, (before or {}).get(path, text).splitlines(), item, where)
            entry = _find_removed(path, lines, item, where) if first else None
            if entry is not None:
                steps.append(f"{entry.name} is still in {path}. Now run {_make_removal(path, lines, entry)}.")
    return steps


def find_removal_command(request: str, primed: str) -> str:
    """The command that takes away the one entry that is to go, where a request says nothing else and the file was shown
    whole."""
    removed = _list_removed(request)
    others = re.search(r"\b(?:and|then)\s+|[.;]\s+\w", request) or SUPPOSED.search(request)
    if len(removed) != 1 or not _FIRST.match(request) or others or not asks_for_change(request):
        return ""
    shown = list_shown_texts(primed)
    texts = {path: text.splitlines() for path, text in shown if path.endswith(_FILES)}
    named = {path: lines for path, lines in texts.items() if path.rpartition("/")[2] in request}
    found = [
        (path, lines, entry) for path, lines in named.items() if (entry := _find_removed(path, lines, *removed[0]))
    ]
    return _make_removal(*found[0]) if len(found) == 1 else ""


def _list_removed(request: str) -> list[tuple[str, str]]:
    """What is to go, and from where."""
    founds = [found for found in _REMOVED.finditer(request) if is_ordered(request, found.start())]
    parts = r"\s*,\s*(?:and\s+)?|\s+and\s+"
    return [(item, found["where"] or "") for found in founds for item in re.split(parts, found["words"])]


def _list_keys(path: str, lines: list[str]) -> list[Entry]:
    """Entries, and names with a value on one line."""
    entries = list_entries(path, lines)
    heads = {entry.start for entry in entries}
    single = [
        Entry(name=found["name"], depth=len(found["indent"]), start=number, end=number + 1)
        for number, line in enumerate(lines)
        if number not in heads and (found := KEY.match(line))
    ]
    return [*entries, *single]


def _find_removed(path: str, lines: list[str], item: str, where: str) -> Entry | None:
    """The only entry that these words name, inside of what is named behind them: its name alone, or with a word for
    what it is (`the web service`)."""
    words = [word.strip("'\"`[]") for word in item.split() if word.lower() not in ("the", "a", "an")]
    keys = _list_keys(path, lines)
    named = [key for key in keys if key.name in words and _is_told_by(words, key, keys)]
    outer = [key for key in keys if is_named(key.name, where) and key.end > key.start + 1]
    if not outer and re.search(r"\w", _NO_PLACE.sub(" ", re.sub(FILE_NAME, " ", where))):
        return None  # in what is not there
    inside = [key for key in named if any(_is_inside(key, other) for other in outer)] if outer else named
    opened = [key for key in inside if key.end == key.start + 1 and _OPENED.search(lines[key.start])]
    return inside[0] if len(inside) == 1 and not opened else None


def _is_told_by(words: list[str], key: Entry, keys: list[Entry]) -> bool:
    """Whether the words besides the name say what it is, and not a part of it (`the db password`)."""
    outer = {other.name.lower() for other in keys if _is_inside(key, other)}
    parts = {other.name.lower() for other in keys if _is_inside(other, key)}
    kinds = {*KINDS, *(name.removesuffix("s") for name in outer), *(f"{name[:-3]}y" for name in outer)} - parts
    return all(word == key.name or word.lower() in kinds for word in words)


def _is_inside(key: Entry, outer: Entry) -> bool:
    return outer.start < key.start and key.end <= outer.end


def _make_removal(path: str, lines: list[str], entry: Entry) -> str:
    """The command that takes these lines away; of the last ones in JSON the comma before them, too."""
    last = path.endswith(".json") and not lines[entry.end - 1].rstrip().endswith(",")
    before = entry.start - 1
    while before >= 0 and not lines[before].strip():
        before -= 1
    comma = f"-e '{before + 1}s/,\\s*$//' -e " if last and before >= 0 and lines[before].rstrip().endswith(",") else ""
    first, behind = _add_gap(lines, entry.start, entry.end)
    end = f",{behind}" if behind > first + 1 else ""
    return f"sed -i {comma}'{first + 1}{end}d' {shlex.quote(path)}"


def _add_gap(lines: list[str], start: int, end: int) -> tuple[int, int]:
    """The lines with the blank ones behind them, where there are some before them or nothing is; at the end of the file
    with those before them."""
    opens = start == 0 or not lines[start - 1].strip()
    while opens and end < len(lines) and not lines[end].strip():
        end += 1
    while end == len(lines) and start > 0 and not lines[start - 1].strip():
        start -= 1
    return start, end

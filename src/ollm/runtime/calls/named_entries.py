"""Changes to entries of a file of settings or styles that the request does not name: put where it names one, or taken
back where that one has them, too. Pure.

Asked for a line in one entry of several alike, a small model often puts it into the last one, or into all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from ollm.providers.text_calls.line_edits import count_indent
from ollm.services.request_reading.entry_names import (
    find_meant_entry,
    is_meant_alone,
    is_mentioned,
    says_of_many,
    strip_kept_parts,
)
from ollm.services.request_reading.setting_entries import FLAT, KEY, NESTED, STYLES, Entry, list_entries
from ollm.services.request_reading.setting_values import Names, SettingValue, list_values

Values = dict[Names, SettingValue]


def keep_to_named_entry(path: str, before: str, after: str, request: str) -> str:
    """The file as a block leaves it, but with entries of which the request does not speak as they were, where the one
    that it names has got the same; and with its only change in that one, where it is in another."""
    if not before or before == after or not path.endswith((*NESTED, *FLAT, *STYLES)):
        return after
    words = strip_kept_parts(request)
    if says_of_many(words):
        return after
    old, new = list_values(path, before), list_values(path, after)
    changed = {names: value for names, value in new.items() if names not in old or old[names].text != value.text}
    wrong = [value for value in changed.values() if _is_copied(value, new, old, words)]
    if wrong:
        return _take_back(path, after, wrong, old)
    return _move_value(before, after, old, changed, words) or _move_lines(path, before, after, words) or after


def _list_twins(names: Names, known: Values, words: str, *, alone: bool = False) -> Iterator[Names]:
    """The same value in the entries that are meant, beside one around it that is not mentioned. `alone`: where no other
    is."""
    for place, child in enumerate(names[:-1]):
        around, inner = names[:place], names[place + 1 :]
        if is_mentioned(child, words):
            continue
        beside = {other[place] for other in known if other[:place] == around and len(other) > place + 1} - {child}
        kind = around[-1] if around else ""
        told = [one for one in sorted(beside) if is_mentioned(one, words)]
        if len(told) == 1 or not alone:
            yield from ((*around, one, *inner) for one in told if is_meant_alone(one, kind, names[-1:], words))


def _is_copied(value: SettingValue, new: Values, old: Values, words: str) -> bool:
    """Whether an entry got what another one was to get and has."""
    there = any(names[:-1] == value.names[:-1] for names in old)
    twins = _list_twins(value.names, old, words) if there else ()
    return any(twin in new and new[twin].text == value.text for twin in twins)


def _take_back(path: str, after: str, wrong: list[SettingValue], old: Values) -> str:
    """Values as they were; lines that came go."""
    text = after
    for value in sorted(wrong, key=lambda value: -value.start):
        if value.names in old:
            text = text[: value.start] + old[value.names].text + text[value.end :]
            continue
        first, last = text.rfind("\n", 0, value.start) + 1, text.find("\n", value.end) + 1 or len(text)
        line = rf"\s*[\"']?{re.escape(value.names[-1])}[\"']?\s*[:=]\s*{re.escape(value.text)}\s*[,;]?\s*"
        if not re.fullmatch(line, text[first:last]):
            return after
        head = text[:first]
        ends = path.endswith(".json") and text[last:].lstrip()[:1] in ("}", "]")
        text = (re.sub(r",(\s*)$", r"\1", head) if ends else head) + text[last:]
    return text if not path.endswith(".json") or _parses(text) or not _parses(after) else after


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _move_value(before: str, after: str, old: Values, changed: Values, words: str) -> str:
    """The only value that changed, in the entry that is meant; empty where that is not plain."""
    if len(changed) != 1:
        return ""
    ((names, value),) = changed.items()
    if names not in old or after[: value.start] + old[names].text + after[value.end :] != before:
        return ""
    twins = [twin for twin in _list_twins(names, old, words, alone=True) if twin in old]
    if len(twins) != 1 or old[twins[0]].text == value.text:
        return ""
    place = old[twins[0]]
    if not _speaks_of(names[-1], value.text, words):
        return ""
    return before[: place.start] + value.text + before[place.end :]


def _speaks_of(key: str, value: str, words: str) -> bool:
    """Whether a setting is what was asked for and not something that came by the way."""
    bare = value.strip().strip("\"',;").lower()
    named = any(text and text in words.lower() for text in (key.lower(), re.sub(r"[_-]", " ", key.lower()), bare))
    return named or bare in ("true", "false", "yes", "no", "on", "off")


def _move_lines(path: str, before: str, after: str, words: str) -> str:
    """The only lines that came, in the entry that is meant; empty where that is not plain."""
    old, new = before.splitlines(), after.splitlines()
    changes = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "insert" or path.endswith(".json"):
        return ""
    _, first, _, begin, end = changes[0]
    key = next((found for line in new[begin:end] if (found := KEY.match(line))), None)
    if key is None or not _speaks_of(key["name"], key.string[key.end() :], words):
        return ""
    entries = list_entries(path, old)
    inside = [entry for entry in entries if entry.start < first <= entry.end and _holds(entry, new[begin:end])]
    if not inside or any(is_mentioned(entry.name, words) for entry in inside[1:] or inside):
        return ""
    wrong = inside[-1]
    outer = [entry for entry in entries if entry.start < wrong.start < entry.end]
    beside = [entry for entry in entries if entry.depth == wrong.depth and _list_outer(entry, entries) == outer]
    kind = outer[-1].name if outer else ""
    told = [entry for entry in beside if is_mentioned(entry.name, words)]
    plain = len(told) == 1 and is_meant_alone(told[0].name, kind, (), words)
    lines = _insert_lines(old, new[begin:end], told[0], wrong) if plain else []
    return "".join(f"{line}\n" for line in lines)


def describe_misplaced(path: str, before: str, after: str, request: str) -> str:
    """That a block changes entries of which the request does not speak, and leaves the one that it names as it was."""
    words = strip_kept_parts(request)
    if not before or not path.endswith((*NESTED, *FLAT, *STYLES)) or says_of_many(words):
        return ""
    old, new = before.splitlines(), after.splitlines()
    entries = list_entries(path, old)
    meant = find_meant_entry(path, old, words)
    beside = [entry for entry in entries if meant and entry.depth == meant.depth and entry != meant]
    beside = [entry for entry in beside if meant and _list_outer(entry, entries) == _list_outer(meant, entries)]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [(first, last, new[begin:end]) for kind, first, last, begin, end in codes if kind != "equal"]
    wrong = [
        next(
            (
                entry
                for entry in beside
                if entry.start < first and last <= entry.end and (not written or _holds(entry, written))
            ),
            None,
        )
        for first, last, written in changes
    ]
    names = dict.fromkeys(entry.name for entry in wrong if entry)
    if meant is None or not changes or None in wrong:
        return ""
    return f"{' and '.join(names)} would change in {path}, and {meant.name} would not"


def _list_outer(inner: Entry, entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.start < inner.start < entry.end]


def _holds(entry: Entry, written: list[str]) -> bool:
    """Whether lines that were written behind its head are as deep as what belongs to it."""
    first = next((line for line in written if line.strip()), "")
    return entry.flat or count_indent(first) > entry.depth


def _insert_lines(old: list[str], written: list[str], wanted: Entry, wrong: Entry) -> list[str]:
    """Lines of one entry behind those of another; none where they would be there twice."""
    lines = [line for line in written if line.strip()]
    there = {line.strip() for line in old[wanted.start : wanted.end]}
    own = count_indent(old[wrong.start + 1]) if wrong.end > wrong.start + 1 else 0
    if not lines or count_indent(lines[0]) != own or any(line.strip() in there for line in lines):
        return []
    place = wanted.end - old[wanted.end - 1].lstrip().startswith("}")
    return [*old[:place], *lines, *old[place:]]

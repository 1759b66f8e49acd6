"""Changes to an entry of a file of settings that the request does not name, put where it names one. Pure.

Asked for a line in one entry of several alike, a small model often puts it into the last one.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from ollm.services.request_reading.setting_entries import (
    FLAT,
    KEY,
    NESTED,
    Entry,
    count_indent,
    is_named,
    list_entries,
)


def move_to_named_entry(path: str, before: str, after: str, request: str) -> str:
    """The file as a block leaves it, but with its only change in the entry that the request names, where it was made in
    another one that is as deep and is not named."""
    if not before or not path.endswith((*NESTED, *FLAT)):
        return after
    old, new = before.splitlines(), after.splitlines()
    changes = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    if len(changes) != 1:
        return after
    kind, first, last, begin, end = changes[0]
    written = new[begin:end]
    entries = list_entries(path, old)
    around = [entry for entry in entries if entry.start < first <= entry.end >= last and _holds(entry, written)]
    if not around or any(is_named(entry.name, request) for entry in around[1:] or around):
        return after
    named = [entry for entry in entries if is_named(entry.name, request)]
    wanted = [entry for entry in named if entry.depth == around[-1].depth]
    if len(wanted) != 1 or not all(entry.start <= wanted[0].start < entry.end for entry in named):
        return after
    if kind == "insert" and not path.endswith(".json"):
        moved = _insert_lines(old, written, wanted[0], around[-1])
    elif kind == "replace" and last - first == end - begin == 1:
        moved = _replace_line(old, first, written[0], wanted[0])
    else:
        return after
    return "".join(f"{line}\n" for line in moved) if moved else after


def _holds(entry: Entry, written: list[str]) -> bool:
    """Whether lines that were written behind its head are as deep as what belongs to it."""
    first = next((line for line in written if line.strip()), "")
    return entry.flat or count_indent(first) > entry.depth


def _insert_lines(old: list[str], written: list[str], wanted: Entry, around: Entry) -> list[str]:
    """Lines of one entry behind those of another; none where they would be there twice."""
    lines = [line for line in written if line.strip()]
    there = {line.strip() for line in old[wanted.start : wanted.end]}
    own = count_indent(old[around.start + 1]) if around.end > around.start + 1 else 0
    if not lines or count_indent(lines[0]) != own or any(line.strip() in there for line in lines):
        return []
    return [*old[: wanted.end], *lines, *old[wanted.end :]]


def _replace_line(old: list[str], place: int, written: str, wanted: Entry) -> list[str]:
    """The line of the same name in the other entry, with the value that was written."""
    key, made = KEY.match(old[place]), KEY.match(written)
    if key is None or made is None or key["name"] != made["name"]:
        return []
    inside = range(wanted.start + 1, wanted.end)
    there = [number for number in inside if (found := KEY.match(old[number])) and found["name"] == key["name"]]
    if len(there) != 1:
        return []
    line = old[there[0]]
    comma = "," if line.endswith(",") else ""
    indent = line[: count_indent(line)]
    return [*old[: there[0]], f"{indent}{written.strip().removesuffix(',')}{comma}", *old[there[0] + 1 :]]

"""How the twins' tasks are judged where the common checks do not reach."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.tasks.task import Check, check_json, read_text

NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
YAML_LINE = re.compile(r"( *)([\w\"'-]+)\s*:(?:\s+(.*))?")


def check_number(number: int) -> Check:
    """The answer names this number, as digits that stand alone or as a word."""
    pattern = re.compile(rf"(?<![\w.\-]){number}(?!\w|\.\d)|\b{NUMBER_WORDS[number]}\b", re.IGNORECASE)
    return lambda _, answer: pattern.search(answer) is not None


def check_picks(paths: Iterable[str], path: str) -> Check:
    """The answer names this file, and names it before the others where it names them all."""
    wanted, *others = (each.rsplit("/", 1)[-1] for each in (path, *(each for each in paths if each != path)))

    def check(_folder: Path, answer: str) -> bool:
        places = [answer.find(name) for name in others]
        return wanted in answer and (-1 in places or answer.index(wanted) < min(places))

    return check


def check_whole_json(path: str, wanted: object) -> Check:
    """The file holds just these values (true is not 1), its layout and the order of its keys aside."""
    return check_json(path, lambda found: json.dumps(found, sort_keys=True), json.dumps(wanted, sort_keys=True))


def check_yaml(path: str, wanted: Mapping[str, Mapping[str, str]]) -> Check:
    """The YAML file of two levels holds just these keys, in any order, comments and quotes aside."""
    return lambda folder, _: read_yaml(read_text(folder, path)) == wanted


def read_yaml(text: str) -> dict[str, dict[str, str]]:
    """The keys of each section. Raises ValueError for what is no YAML of two levels."""
    sections: dict[str, dict[str, str]] = {}
    indents: dict[str, int] = {}
    section = ""
    for line in text.splitlines():
        written = line.split(" #")[0].rstrip()
        if not written or written.lstrip().startswith("#") or written == "---":
            continue
        parts = YAML_LINE.fullmatch(written)
        if parts is None:
            raise ValueError(line)
        indent, key, value = len(parts[1]), parts[2].strip("\"'"), parts[3] or ""
        if not indent and not value and key not in sections:
            section = key
            sections[section] = {}
        elif indent and key not in sections[section] and indents.setdefault(section, indent) == indent:
            sections[section][key] = value.strip("\"'")
        else:
            raise ValueError(line)
    return sections

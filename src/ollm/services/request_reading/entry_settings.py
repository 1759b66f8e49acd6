"""Values that one entry of a file of settings or styles is to get, as the request says them, and the command for them.
Pure: words in, commands out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.entry_names import (
    find_meant_entry,
    find_meant_names,
    list_spellings,
    says_of_many,
    strip_entry,
    strip_kept_parts,
)
from ollm.services.request_reading.plain_words import CHANGE_VERBS, is_named_file
from ollm.services.request_reading.replaced_names import escape_for_sed, escape_replacement, find_replacement
from ollm.services.request_reading.reservations import SUPPOSED
from ollm.services.request_reading.setting_entries import FLAT, NESTED, STYLES
from ollm.services.request_reading.setting_values import Names, SettingValue, list_values, style_value

_FILES = (*NESTED, *FLAT, *STYLES)
_SHOWN = re.compile(
    r"^(?P<path>[^\s:]+)(?P<whole>:| is long [^\n]*:)\n```\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_OTHER = re.compile(  # orders that may come before
    r"\b(?:run|execute|create|write|add|remove|delete|copy|move|rename|find|count|read|check|look|list|show|install|commit|"
    r"print)\b",
    re.IGNORECASE,
)
_CLAUSES = re.compile(
    rf",?\s+(?:and|then)\s+(?:then\s+)?(?=(?:{'|'.join(CHANGE_VERBS)}|run)\b)|(?<=[.;])\s+", re.IGNORECASE
)
_SUPPOSED = re.compile(
    rf"{SUPPOSED.pattern}|\b(?:renamed?|move|copy|undo|revert|used\s+to|yesterday|earlier)\b", re.IGNORECASE
)
_LINK = (
    r"(?:\s+in)?\s+(?:from\s+[`'\"]?(?P<old>[^\s`'\"]+)[`'\"]?\s+)?"
    r"(?:to(?:\s+(?:be|become))?|(?:should|must|has\s+to|needs\s+to)\s+(?:now\s+)?(?:be|become))\s+"
)
_VALUE = (
    r"(?P<value>\"[^\"]*\"|'[^']*'|`[^`]*`|-?[\w#](?:[\w.#:/%+-]*[\w%])?)"
    r"(?=\s*(?:[,;)(]|[.!]\s|[.!]?$)|\s+(?:and|in|then|please|now)\b)"
)
_TOLD = re.compile(r"\b(?:to(?!\s+be(?:come)?\b)|be|become)\s", re.IGNORECASE)
_BOOLEAN = {"true": "false", "yes": "no", "on": "off"}
_ON = r"(?:enable|activate|turn\s+on|switch\s+on)\s+(?:the\s+)?{key}\b|(?:turn|switch)\s+(?:the\s+)?{key}\s+on\b"
_OFF = r"(?:disable|deactivate|turn\s+off|switch\s+off)\s+(?:the\s+)?{key}\b|(?:turn|switch)\s+(?:the\s+)?{key}\s+off\b"
_TYPED = re.compile(r"-?\d+(?:\.\d+)?|true|false|null")


def find_entry_command(request: str, primed: str) -> str:
    """The command that gives an entry of the one file that was shown whole and has it these values, where that is asked
    for before anything else."""
    shown = [(found["path"], found["text"]) for found in _SHOWN.finditer(primed) if found["whole"] == ":"]
    shown = [] if _OTHER.search(request) else shown
    founds = [(path, text, made) for path, text in shown if (made := find_entry_values(request, path, text))]
    return _make_command(*founds[0]) if len(founds) == 1 else ""


def find_value_steps(request: str, texts: Mapping[str, str]) -> list[str]:
    """The step for the values of each entry that were to be others and are not."""
    steps: list[str] = []
    if _SUPPOSED.search(request):
        return steps
    concerned = {path: text for path, text in texts.items() if is_named_file(path, request)}
    for clause in () if says_of_many(strip_kept_parts(request)) else _CLAUSES.split(request):
        founds = [
            (path, text, made) for path, text in concerned.items() if (made := find_entry_values(clause, path, text))
        ]
        for path, text, made in founds if len(founds) == 1 else ():
            told = " and ".join(f"{value.names[-1]} of {value.names[-2]} is {value.text}" for value in made)
            steps.append(f"{told} in {path}. Now run {_make_command(path, text, made)}.")
    return steps


def speaks_of_entry(request: str, primed: str) -> bool:
    """Whether one entry of a file that was shown is meant and not the file as a whole."""
    return any(is_about_entry(request, found["path"], found["text"]) for found in _SHOWN.finditer(primed))


def is_about_entry(request: str, path: str, text: str) -> bool:
    """The same of one file."""
    return _find_entry(request, path, text) is not None


def _find_entry(request: str, path: str, text: str) -> Names | None:
    """The names of the entry that is meant. One that is itself to become another is meant everywhere."""
    words = strip_kept_parts(request)
    if not path.endswith(_FILES) or says_of_many(words):
        return None
    entry = find_meant_entry(path, text.splitlines(), words)
    names = (entry.name,) if entry else find_meant_names(list_values(path, text), words)
    renamed = find_replacement(request)
    return None if names and renamed and any(renamed.old in name for name in names) else names


def find_entry_values(request: str, path: str, text: str) -> dict[SettingValue, str]:
    """What values of the entry become; none where the words say more than that, or it has them."""
    asked = asks_for_change(request) and is_named_file(path, request) and not _SUPPOSED.search(request)
    values, plain = list_values(path, text), strip_kept_parts(request)
    names = find_meant_names(values, plain) if asked and _find_entry(request, path, text) else None
    if names is None:
        return {}
    words = plain
    for name in (".".join(names), *names[::-1]):
        words = strip_entry(name, words)
    inside = [value for value in values.values() if value.names[: len(names)] == names]
    wanted = _find_wanted(inside, words, path) or _find_switched(inside, names[-1], plain)
    counted = len(_TOLD.findall(words)) or 1
    changed = {value: new for value, new in wanted.items() if new != value.text}
    return changed if len(wanted) == counted else {}


def _find_wanted(inside: list[SettingValue], words: str, path: str) -> dict[SettingValue, str]:
    """Values of the entry itself, or else of what is in it, which the words speak of."""
    depth = min((len(value.names) for value in inside), default=0)
    own = [value for value in inside if len(value.names) == depth]
    keys = [value.names[-1] for value in inside]
    deeper = [value for value in inside if value not in own and keys.count(value.names[-1]) == 1]
    for values in (own, deeper):
        if wanted := {value: new for value in values if (new := _find_new(value, words, path))}:
            return wanted
    return {}


def _find_switched(inside: list[SettingValue], entry: str, words: str) -> dict[SettingValue, str]:
    """`enabled` of an entry that is turned on or off."""
    values = [value for value in inside if value.names[-1].lower() in ("enabled", "enable", "active")]
    names = "|".join(re.escape(name) for name in list_spellings(entry))
    made = {value: _find_boolean(value, rf"[`'\"]?(?:{names})[`'\"]?", words) for value in values}
    return {value: new for value, new in made.items() if new} if len(values) == 1 else {}


def _find_new(value: SettingValue, words: str, path: str) -> str:
    """What a value is to be; empty where the words do not say it."""
    key = rf"(?<![\w-])[`'\"]?{re.escape(value.names[-1])}[`'\"]?"
    if switched := _find_boolean(value, re.escape(value.names[-1]), words):
        return switched
    found = re.search(f"{key}{_LINK}{_VALUE}", words, re.IGNORECASE)
    if found is None or (found["old"] and found["old"].strip("`'\"") != value.text.strip("\"'")):
        return ""
    new = style_value(value.text, found["value"].strip("`"))
    if path.endswith((".yml", ".yaml")) and re.search(r"^[^\w\"'.-]|:\s|\s#|:$", new):
        new = f'"{new}"'
    typed = path.endswith((".json", ".toml")) and value.text[0] not in "\"'"
    return new if not typed or _TYPED.fullmatch(new) else ""


def _find_boolean(value: SettingValue, key: str, words: str) -> str:
    """What a value that is on or off is to be, where the words turn what is called so on or off."""
    pair = next(((on, off) for on, off in _BOOLEAN.items() if value.text.lower() in (on, off)), None)
    if pair is None:
        return ""
    patterns = (_ON.format(key=key), _OFF.format(key=key))
    wanted = next(
        (word for word, said in zip(pair, patterns, strict=True) if re.search(said, words, re.IGNORECASE)), ""
    )
    return wanted.capitalize() if value.text[0].isupper() else wanted


def _make_command(path: str, text: str, made: Mapping[SettingValue, str]) -> str:
    """The command that replaces the lines with these values, if they are as they were."""
    changes = []
    for value, new in made.items():
        start, end = text.rfind("\n", 0, value.start) + 1, text.find("\n", value.end)
        end = end if end >= 0 else len(text)
        old, line = text[start:end], text[start : value.start] + new + text[value.end : end]
        number = text.count("\n", 0, start) + 1
        changes.append(f"{number}s/^{escape_for_sed(old)}$/{escape_replacement(line)}/")
    return f"sed -i {shlex.quote('; '.join(changes))} {shlex.quote(path)}"

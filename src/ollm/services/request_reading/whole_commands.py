"""Commands that a request says in full: files that go or move, words that become others, values that are set.

A tiny model that is given only the beginning of such a command goes on and undoes it. Pure: words in, a command out.
"""

from __future__ import annotations

import re
import shlex

from ollm.services.request_reading.entry_settings import speaks_of_entry
from ollm.services.request_reading.file_commands import find_file_command
from ollm.services.request_reading.named_parts import find_removed_section
from ollm.services.request_reading.plain_words import FILE_NAME, OWN_FILES, is_called, is_kept, split_sentences
from ollm.services.request_reading.replaced_names import escape_for_sed, escape_replacement, find_replacement
from ollm.services.request_reading.reservations import SUPPOSED
from ollm.services.request_reading.setting_values import style_value
from ollm.services.request_reading.shown_files import list_shown_names, list_shown_texts
from ollm.services.request_reading.wanted_files import CODE, find_changed_files
from ollm.services.request_reading.wanted_runs import find_first_command, find_wanted_commands, make_command

_START = r"\s*(?:please\s+)?"
_SETS = re.compile(
    rf"{_START}(?:in\s+`?(?:{FILE_NAME})`?,?\s+)?"
    r"(?:set|change|update|raise|lower|increase|decrease|reduce|bump|switch|turn)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(
    rf"(?P<name>[A-Za-z_][\w.-]*)`?(?:\s+(?:in|of)\s+`?(?:{FILE_NAME})`?)?\s+to\s+"
    r"(?P<value>\"[^\"]*\"|'[^']*'|`[^`]*`|-?[\w#](?:[\w.#:/%+-]*[\w%])?)(?=\s*(?:[,;)]|\.\s|\.?$)|\s+(?:and|in|then)\b)"
)
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s,;#]+")
_PLAIN_COMMAND = re.compile(r"(?:python3?|sh|bash|node|pytest|make|npm|go|cargo)(?: [\w./=:-]*[\w/])*")
_ENGLISH = frozenset("with to for in then so on the a it until after before once again and or".split())  # noqa: SIM905


def find_whole_command(request: str, primed: str) -> str:
    """The first command of a request, where its words say all of it. `primed` is what was shown with the request."""
    found = find_file_command(request, primed) or find_edit_command(request, primed) or _find_rename(request, primed)
    return found or _find_run(request)


def find_edit_command(request: str, primed: str) -> str:
    """Values that are set in a file, or a section that goes from it."""
    return find_setting_command(request, primed)[0] or find_removed_section(request, primed)


def find_setting_command(request: str, primed: str) -> tuple[str, int]:
    """The command that gives names in one file the values that are wanted, and how many they are; none unless each name
    is set on one line alone of what was shown."""
    files = find_changed_files(request) or _find_setting_file(request, primed)
    pairs = [(found["name"], found["value"].strip("`")) for found in _PAIR.finditer(request)]
    supposed = any(SUPPOSED.search(said) and _PAIR.search(said) for said in split_sentences(request))
    if supposed or speaks_of_entry(request, primed):
        return "", 0
    if not _SETS.match(request) or len(files) != 1 or not pairs or len(pairs) != len(re.findall(r"\bto\b", request)):
        return "", 0
    listed = list_shown_names(primed)
    if listed != [""] and not any(is_called(path, files[0]) for path in listed):
        return "", 0  # what was shown stands in another file
    changes = [_set_value(name, value, primed, code=files[0].endswith(CODE)) for name, value in pairs]
    if not all(changes):
        return "", 0
    return f"sed -i {shlex.quote('; '.join(changes))} {files[0]}", len(changes)


def _find_setting_file(request: str, primed: str) -> list[str]:
    """The only shown file that contains the names which get a value, where the request names none."""
    if re.search(FILE_NAME, re.sub(r"\b[\d.]+\b", " ", request)):
        return []
    texts = list_shown_texts(primed)
    names = [re.escape(found["name"]) for found in _PAIR.finditer(request)]
    if not names or not re.match(
        rf"{_START}\w+\s+(?:the\s+)?(?:value\s+of\s+)?{names[0]}\s+to\b", request, re.IGNORECASE
    ):
        return []  # of `the nginx image` only a part of the value is meant
    return [
        path for path, text in texts if any(re.search(rf"^[ \t\"']*{name}\b", text, re.MULTILINE) for name in names)
    ]


def _set_value(name: str, value: str, text: str, *, code: bool) -> str:
    """sed's expression for one line; none where quotes in code would make another kind of value of it."""
    key = rf"[ \t]*(?:export +|const +|let +|var +)?[\"']?{re.escape(name)}[\"']?[ \t]*[:=][ \t]*"
    pattern = rf"^(?P<head>{key})(?P<rest>\S.*)$"
    lines = {found[0]: found for found in re.finditer(pattern, text, re.MULTILINE)}
    if len(lines) != 1:
        return ""
    line, found = next(iter(lines.items()))
    old = _VALUE.match(found["rest"])
    if old is None or found["rest"][0] in "[{(":
        return ""
    if code and value[0] in "\"'" and old[0][0] not in "\"'" and value[1:-1].lower() not in ("true", "false"):
        return ""
    new = found["head"] + style_value(old[0], value) + found["rest"][old.end() :]
    return f"s/^{escape_for_sed(line)}$/{escape_replacement(new)}/" if new != line else ""


def _find_rename(request: str, primed: str) -> str:
    wanted = find_replacement(request)
    if wanted is None or speaks_of_entry(request, primed):
        return ""
    change = f"sed -i '{make_sed(wanted.old, wanted.new)}'"
    if files := find_changed_files(request):
        return " ".join((change, *files))
    if any(is_kept(name, request) for name in (*list_shown_names(primed), "test.py")):
        return ""  # it would be changed, too
    return f"grep -rlwIF {OWN_FILES} -e {shlex.quote(wanted.old)} . | xargs {change}"


def _find_run(request: str) -> str:
    """A command that is to be run first, when it holds no words of a sentence."""
    runs = re.match(rf"{_START}(?:run|execute|start)\b", request, re.IGNORECASE)
    commands = find_wanted_commands(request) if runs else []
    command = make_command(commands[0]) if commands else find_first_command(request)
    plain = _PLAIN_COMMAND.fullmatch(command) and not _ENGLISH.intersection(command.split())
    return command if plain else ""


def make_sed(old: str, new: str) -> str:
    """The expression that replaces a word everywhere."""
    before, after = (r"\b" if re.match(r"\w", end) else "" for end in (old[0], old[-1]))
    return f"s/{before}{escape_for_sed(old)}{after}/{escape_replacement(new)}/g"

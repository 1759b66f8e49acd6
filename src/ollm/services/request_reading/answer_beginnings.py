"""How an answer begins where the next step is plain from the words: the model goes on from there.

A small model that may choose talks about a step instead of taking it. Pure: words in, the first characters out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ollm.services.request_reading.primed_request import moves_files
from ollm.services.request_reading.replaced_names import escape_for_sed, find_replacement
from ollm.services.request_reading.unfinished_work import (
    FILE_NAME,
    find_changed_files,
    find_first_command,
    find_wanted_commands,
    is_computed_into_file,
    make_command,
)

COMMAND = "```bash\n"
EDIT_COMMAND = f"{COMMAND}sed -i"
ESCAPED_SLASH, WORD_END = r"\/", r"\b"
_STEP = re.compile(
    rf"Now (?:run (?P<run>.+?)|write the output of (?P<made>.+) into (?P<into>{FILE_NAME})|"
    rf"write (?P<write>{FILE_NAME})|change (?P<change>{FILE_NAME})(?: too)?|mend (?P<mend>{FILE_NAME})|"
    rf"replace (?P<old>\S+) by (?P<new>\S+) in (?P<where>{FILE_NAME})|"
    rf"remove (?P<name>\w+) from (?P<source>{FILE_NAME})|"
    rf"set (?P<key>.+?) to (?P<value>\S+) in (?P<target>{FILE_NAME})|change (?P<edit>{FILE_NAME}) with a command|"
    rf"(?P<command>.* with a command)|(?P<any>do it))\.$"
)
_MOVE = re.compile(
    rf"\s*(?:please\s+)?(?P<verb>rename|move|copy|delete|remove)\s+(?:the\s+)?(?:file\s+)?`?(?P<name>{FILE_NAME})`?(?!\S*[(])",
    re.IGNORECASE,
)
_PROGRAMS = {"rename": "mv", "move": "mv", "copy": "cp", "delete": "rm", "remove": "rm"}
_FOLDER = re.compile(
    r"\s*(?:please\s+)?(?:make|create)\s+(?:a|the)\s+(?:new\s+)?(?:folder|directory)\s+(?:named\s+|called\s+)?`?([\w./-]+\w)",
    re.IGNORECASE,
)
_COPY = re.compile(rf"\s*(?:please\s+)?make\s+a\s+copy\s+of\s+(?:the\s+)?(?:file\s+)?`?({FILE_NAME})`?", re.IGNORECASE)
_COUNTED = re.compile(r"\s*(?:please\s+)?(?:count\b|how many\b)", re.IGNORECASE)


def begin_first_step(request: str) -> str:
    """The beginning of the first answer to a request; empty where the words leave it open."""
    if _MOVE.match(request) and not moves_files(request):
        return ""
    command = _find_command(request)
    if command:
        return f"{COMMAND}{command}"
    return COMMAND if _COUNTED.match(request) or is_computed_into_file(request) else ""


def _find_command(request: str) -> str:
    """The command that the words ask for first, as far as they say it."""
    if moved := _MOVE.match(request):
        return f"{_PROGRAMS[moved['verb'].lower()]} {moved['name']}"
    for pattern, program in ((_COPY, "cp"), (_FOLDER, "mkdir -p")):
        if found := pattern.match(request):
            return f"{program} {found[1]}"
    if wanted := find_replacement(request):
        return " ".join((f"sed -i '{make_sed(wanted.old, wanted.new)}'", *find_changed_files(request)))
    runs = re.match(r"\s*(?:please\s+)?(?:run|execute)\b", request, re.IGNORECASE)
    if runs and (commands := find_wanted_commands(request)):
        return make_command(commands[0])
    return find_first_command(request).removeprefix("it")


def begin_named_step(told: str) -> str:
    """The beginning of the answer to what is told last, when that names the step."""
    step = _STEP.search(told.rstrip().rsplit("\n", 1)[-1])
    if step is None or step.lastgroup is None:
        return ""
    begin = _BEGINNINGS.get(step.lastgroup)
    return begin(step) if begin else COMMAND


def make_sed(old: str, new: str) -> str:
    """The expression that replaces a word everywhere."""
    before, after = (r"\b" if re.match(r"\w", end) else "" for end in (old[0], old[-1]))
    return f"s/{before}{escape_for_sed(old)}{after}/{new.replace('/', ESCAPED_SLASH)}/g"


def _begin_file(path: str, first: str = "") -> str:
    return f"{path}\n```\n{first}"


_BEGINNINGS: dict[str, Callable[[re.Match[str]], str]] = {
    "run": lambda step: COMMAND if step["run"] in ("it", "them") else f"{COMMAND}{step['run']}",
    "into": lambda step: f"{COMMAND}{step['made']} > {step['into']}",
    "where": lambda step: f"{EDIT_COMMAND} '{make_sed(step['old'], step['new'])}' {step['where']}",
    "source": lambda step: f"{EDIT_COMMAND} '/^{step['name']}{WORD_END}/d' {step['source']}",
    "target": lambda step: _begin_file(step["target"], step["key"]),
    "edit": lambda _: EDIT_COMMAND,
    "write": lambda step: _begin_file(step["write"]),
    "change": lambda step: _begin_file(step["change"]),
    "mend": lambda step: _begin_file(step["mend"]),
}

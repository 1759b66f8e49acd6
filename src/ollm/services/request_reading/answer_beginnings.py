"""How an answer begins where the next step is plain from the words: the model goes on from there.

A small model that may choose talks about a step instead of taking it. Pure: words in, the first characters out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.asked_places import find_shown_move
from ollm.services.request_reading.broken_data import SAID
from ollm.services.request_reading.definition_search import find_definition_command
from ollm.services.request_reading.entry_settings import speaks_of_entry
from ollm.services.request_reading.explanations import is_meant
from ollm.services.request_reading.file_commands import find_file_command
from ollm.services.request_reading.named_parts import (
    find_heading_change,
    find_removed_section,
    make_section_removal,
)
from ollm.services.request_reading.plain_changes import find_plain_command
from ollm.services.request_reading.plain_words import CHANGE_VERBS, FILE_NAME, FILE_NOUNS
from ollm.services.request_reading.primed_request import moves_files
from ollm.services.request_reading.replaced_names import find_replacement
from ollm.services.request_reading.reservations import SUPPOSED, is_reserved
from ollm.services.request_reading.shown_files import find_shown_text, list_shown_names
from ollm.services.request_reading.unfinished_work import is_computed_into_file
from ollm.services.request_reading.wanted_files import CODE, find_changed_files, find_made_files
from ollm.services.request_reading.wanted_runs import (
    find_first_command,
    find_red_tests,
    find_wanted_commands,
    make_command,
)
from ollm.services.request_reading.whole_commands import (
    find_setting_command,
    find_whole_command,
    make_sed,
)

COMMAND = "```bash\n"
EDIT_COMMAND = f"{COMMAND}sed -i"
CLOSED = "\n```\n"  # ends a beginning that is all of the step
MIN_SETTINGS = 2  # names that get a value, from which a model that is not tiny is begun the command too
WORD_END = r"\b"
_STEP = re.compile(
    rf"Now (?:run (?P<run>.+?)|write the output of (?P<made>.+) into (?P<into>{FILE_NAME})|"
    rf"write (?P<write>{FILE_NAME})|change (?P<change>{FILE_NAME})(?: too)?|mend (?P<mend>{FILE_NAME})|"
    rf"replace (?P<old>.+?) by (?P<new>.+?) in (?P<where>{FILE_NAME})|"
    rf"remove the section (?P<heading>.+) from (?P<page>{FILE_NAME})|"
    rf"remove (?P<name>\w+) from (?P<source>{FILE_NAME})|change (?P<part>\w+) in (?P<holder>{FILE_NAME})|"
    rf"set (?P<key>.+?) to (?P<value>\S+) in (?P<target>{FILE_NAME})|change (?P<edit>{FILE_NAME}) with a command|"
    rf"(?P<command>.* with a command)|(?P<any>do it))\.$"
)
_MOVE = re.compile(
    rf"\s*(?:please\s+)?(?P<verb>rename|move|copy|delete|remove)\s+{FILE_NOUNS}`?(?P<name>{FILE_NAME})`?(?!\S*[(])"
    r"(?=\s*(?:$|[.,;:!])|\s+(?:and|or|then|to|into|as\s+(?!an?\b)|over|under|with|using|by|but|because|since|please|now|too|also|completely|"
    r"permanently|here|there|it|we|i|this|that|which|nobody|->|→)(?!\w))",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    rf"{SUPPOSED.pattern}|\b(?:first|before|beforehand|after|except|a\s+backup|without|git|trash|script)\b|\?",
    re.IGNORECASE,
)
_UNUSED = re.compile(
    rf"\s*(?:the\s+file\s+)?`?(?P<name>{FILE_NAME})`?\s+(?:is|was)(?:n't|\s+not|\s+no\s+longer)?\s+(?:\w+\s+){{0,2}}?"
    r"(?:used|needed|required|unused|obsolete|dead|superfluous|outdated)\b[^.;]*?[.,;:]?\s+(?:so\s+|and\s+|then\s+)?(?:please\s+)?"
    r"(?:delete|remove|get\s+rid\s+of|drop)\s+(?:it|that\s+file|this\s+file|the\s+file)\b",
    re.IGNORECASE,
)
_PROGRAMS = {"rename": "mv", "move": "mv", "copy": "cp", "delete": "rm", "remove": "rm"}
_FOLDER = re.compile(
    r"\s*(?:please\s+)?(?:make|create)\s+(?:a|the)\s+(?:new\s+)?(?:folder|directory)\s+(?:named\s+|called\s+)?`?([\w./-]+\w)",
    re.IGNORECASE,
)
_COPY = re.compile(rf"\s*(?:please\s+)?make\s+a\s+copy\s+of\s+{FILE_NOUNS}`?({FILE_NAME})`?", re.IGNORECASE)
_SORTED = re.compile(
    r"\s*(?:please\s+)?sort\s+(?:the\s+)?(?:(?:lines?|names?|words?|entries|contents?)\s+(?:of|in)\s+)?(?:the\s+)?(?:file\s+)?"
    r"`?([\w./-]+\.(?:txt|lst|list|log|dat))\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\s*(?:please\s+)?(?:count\b|how many\b)", re.IGNORECASE)
_EARLIER = re.compile(
    rf"\b(?:{'|'.join(CHANGE_VERBS)}|run|execute|start|read|copy|look|check|find|count|download|install)\b",
    re.IGNORECASE,
)
_CHECK = re.compile(r"(?:python3?|sh|bash|node|pytest)\s+[\w./-]+\.\w+")
_ONCE = re.compile(
    r"\b(?:dupes?|(?:de)?duplicat\w*|dedup\w*|doubles?|unique|only\s+once|repeated|repetitions?|twice)\b", re.IGNORECASE
)
_WHICH = re.compile(
    r"\s*(?:(?:in|by|with|from)\s+)?(?:which|what)\s+(class|function|method|exception|error|constant|variable|parameter|argument)\s",
    re.IGNORECASE,
)
_NEEDS_COMMAND = re.compile(
    r"\b(?:run|runs|running|execut\w+|start\w*|print\w*|output|how many|count|number of|longest|shortest|largest|"
    r"smallest|biggest|most|least|every|all|tests?|git|logs?|now|fail\w*|crash\w*|wrong|bug|missing|unused)\b",
    re.IGNORECASE,
)
_LANGUAGES = {"py": "python", "js": "javascript", "ts": "typescript", "sh": "sh"}


def begin_first_step(request: str, primed: str = "", *, whole: bool = False) -> str:
    """The beginning of the first answer to a request, `primed` with what was shown with it; empty where the words leave
    it open. `whole`: a command that they say in full is closed."""
    if is_reserved(request):
        return ""
    command = _find_whole(request, primed, whole=whole)
    begun = f"{COMMAND}{command}{CLOSED}" if command else _begin_open_step(request, primed)
    is_command = begun.startswith(COMMAND) and begun != COMMAND
    command = command or begun.removeprefix(COMMAND)
    return "" if is_command and not is_meant(request, "shell", command, shown=primed) else begun


def _find_whole(request: str, primed: str, *, whole: bool) -> str:
    """A command that the words say in full."""
    command = find_shown_move(request, primed) or (find_whole_command(request, primed) if whole else "")
    command = command or find_file_command(request, primed)
    command = command or find_heading_change(request, primed) or find_plain_command(request, primed)
    return command or find_definition_command(request)


def _begin_open_step(request: str, primed: str) -> str:
    """What the model goes on with."""
    setting, count = find_setting_command(request, primed)
    plain = count >= MIN_SETTINGS or (count and not find_changed_files(request))
    if command := setting if plain else find_removed_section(request, primed):
        return f"{COMMAND}{command}"
    if _MOVE.match(request) and not moves_files(request):
        return ""
    broken = SAID.search(primed.rpartition("\n\n")[2])
    if script := broken["name"] if broken else find_new_script(request, primed):
        return _begin_file(script, language=_name_language(script))
    command = _find_command(request, primed)
    if _CHECK.fullmatch(command) and command in (
        find_first_command(request),
        find_red_tests(request, list_shown_names(primed)),
    ):
        return f"{COMMAND}{command}{CLOSED}"  # what fails is run as it stands: its exit code tells
    begins = command or _COUNTED.match(request) or is_computed_into_file(request)
    return f"{COMMAND}{command}" if begins else ""


def find_new_script(request: str, primed: str) -> str:
    """The program that is to be written before anything else: a model that may choose runs it first, or writes down
    the commands that would do the work of it."""
    listed = list_shown_names(primed)
    name, place = next(iter(find_made_files(request)), ("", 0))
    if not name.endswith(CODE) or name in listed or not asks_for_change(request):
        return ""
    return "" if _EARLIER.search(request[:place]) else name


def _name_language(path: str) -> str:
    return _LANGUAGES.get(path.rpartition(".")[2], "")


def _find_command(request: str, primed: str) -> str:
    """The command that the words ask for first, as far as they say it."""
    if moved := _MOVE.match(request):
        return "" if _LIMITED.search(request) else f"{_PROGRAMS[moved['verb'].lower()]} {moved['name']}"
    for pattern, program in ((_COPY, "cp"), (_FOLDER, "mkdir -p"), (_UNUSED, "rm")):
        if found := pattern.match(request):
            return f"{program} {found[1]}"
    if found := _SORTED.match(request):
        return f"sort {'-u ' if _ONCE.search(request) else ''}-o {found[1]}"
    wanted = find_replacement(request)
    if (
        wanted and ("```" not in primed or wanted.old in primed) and not speaks_of_entry(request, primed)
    ):  # `tabs` in what was shown are no word
        return " ".join((f"sed -i '{make_sed(wanted.old, wanted.new)}'", *find_changed_files(request)))
    runs = re.match(r"\s*(?:please\s+)?(?:run|execute)\b", request, re.IGNORECASE)
    if runs and (commands := find_wanted_commands(request)):
        return make_command(commands[0])
    return find_first_command(request).removeprefix("it") or find_red_tests(request, list_shown_names(primed))


def begin_named_step(told: str, *, whole: bool = False) -> str:
    """The beginning of the answer to what is told last, when that names the step; `whole`: all of it, where it can."""
    step = _STEP.search(told.rstrip().rpartition("\n")[2])
    if step is None or step.lastgroup is None:
        return ""
    if step["part"]:
        return _begin_part(step["part"], step["holder"], told)
    if step["mend"] and f"{step['mend']} prints nothing." in told:
        return _begin_file(step["mend"], _find_shown(step["mend"], told))
    begin = _BEGINNINGS.get(step.lastgroup)
    begun = begin(step) if begin else COMMAND
    closes = whole and step.lastgroup in _WHOLE and begun != COMMAND
    return begun + CLOSED if closes else begun


def begin_question(request: str, primed: str) -> str:
    """The first words of the answer to a question for one name in code that was shown whole: a small model runs tests
    instead, or names the file alone."""
    asked = _WHICH.match(request)
    told = asked and "```" in primed and "Parts of it:" not in primed
    if not told or _NEEDS_COMMAND.search(request) or asks_for_change(request) or find_wanted_commands(request):
        return ""
    return f"The {asked[1].lower()}" if asked else ""


def begin_words(request: str) -> str:
    """How an answer in words begins where a number is asked for: a tiny model repeats the lines it has seen."""
    return "There are" if re.match(r"\s*how many\b", request, re.IGNORECASE) else ""


def _begin_part(name: str, path: str, told: str) -> str:
    """The head of a function or class up to its name, as it was shown with the step."""
    shown = told.partition("```\n")[2]
    head = re.search(rf"^[ \t]*(?:[a-z]+[ \t]+){{0,3}}{name}\b", shown, re.MULTILINE)
    return _begin_file(path, head[0] if head else "")


def _find_shown(path: str, told: str) -> str:
    """The file as it was shown with the step, to be gone on with."""
    text = find_shown_text(path, told)
    return f"{text}\n\n\n" if text else ""


def _begin_file(path: str, first: str = "", language: str = "") -> str:
    return f"{path}\n```{language}\n{first}"


_BEGINNINGS: dict[str, Callable[[re.Match[str]], str]] = {
    "run": lambda step: COMMAND if step["run"] in ("it", "them") else f"{COMMAND}{step['run']}",
    "into": lambda step: f"{COMMAND}{step['made']} > {step['into']}",
    "where": lambda step: f"{EDIT_COMMAND} '{make_sed(step['old'], step['new'])}' {step['where']}",
    "page": lambda step: f"{COMMAND}{make_section_removal(step['heading'], step['page'])}",
    "source": lambda step: f"{EDIT_COMMAND} '/^{step['name']}{WORD_END}/d' {step['source']}",
    "target": lambda step: _begin_file(step["target"], step["key"]),
    "edit": lambda _: EDIT_COMMAND,
    "write": lambda step: _begin_file(step["write"], language=_name_language(step["write"])),
    "change": lambda step: _begin_file(step["change"]),
    "mend": lambda step: _begin_file(step["mend"]),
}
_WHOLE = frozenset({"run", "into", "where", "source", "page"})

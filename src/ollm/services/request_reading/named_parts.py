"""Parts of files that a request names, functions, classes and sections, and which of them are as they were. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping

from ollm.providers.text_calls.definitions import Definition, find_definitions, list_defined_names
from ollm.services.request_reading.plain_words import FILE_NAME, is_called, is_ordered
from ollm.services.request_reading.replaced_names import escape_for_sed, escape_replacement
from ollm.services.request_reading.reservations import SUPPOSED
from ollm.services.request_reading.shown_files import find_shown_text

_VERBS = "let|make|change|fix|correct|mend|repair|extend|rewrite|update|give|modify|adjust|improve"
_KIND = r"(?:the\s+)?(?:(?:functions?|methods?|class)\s+)?"
_CHANGED = re.compile(
    rf"(?:^|[.;,:]\s+|\band\s+|\bthen\s+|\bplease\s+)(?:{_VERBS})\s+{_KIND}`?(?P<name>[A-Za-z_]\w*)`?(?![\w.]*\.\w)|"
    r"`?\b(?P<owner>[A-Za-z_]\w*)`?(?:\(\))?(?:\s+in\s+\S+)?\s+(?:should|must|needs)\b",
    re.IGNORECASE,
)
_SECTION = re.compile(
    r"\b(?:remove|delete|drop)\s+(?:the\s+)?(?:whole\s+|entire\s+)?"
    r"(?:section\s+(?:called\s+|named\s+|about\s+)?[\"'`\[]?(?P<after>\w[\w -]*?\w)[\"'`\]]?|"
    r"[\"'`\[]?(?P<before>\w[\w -]*?\w)[\"'`\]]?\s+section)"
    r"\s+(?:from|in|of)\s+`?(?P<path>[\w./-]*\w)",
    re.IGNORECASE,
)
_NOT_GONE = re.compile(  # its text is wanted elsewhere, or it goes only then
    rf"{SUPPOSED.pattern}|\b(?:it|its|after|before|first|but\s+keep|text|contents?|copy|copying)\b|\?", re.IGNORECASE
)
_KEPT_SO_FAR = re.compile(  # in the rest of the sentence: something comes first
    r"(?:[^.;!?\n]|\.(?=\w))*\b(?:first|before|backup|copy|after|unless|confirm)\b", re.IGNORECASE
)
_HEADING = re.compile(
    r"\bthe\s+(?:section\s+)?heading\s+(?P<mark>[\"'`])(?P<old>[^\"'`\n]+)(?P=mark)\s+(?:in\s+\S+\s+)?"
    r"(?:to|into|(?:should|must|has\s+to|is\s+to)\s+(?:become|be|read|say))\s+(?P<end>[\"'`])(?P<new>[^\"'`\n]+)(?P=end)",
    re.IGNORECASE,
)
_CHANGE_FILE = re.compile(r"Now (?:change|mend) (?P<path>\S+?)(?: too)?\.$")
_DELETED = re.compile(
    rf"(?:^|[.;,]\s+|\b(?:and|then)\s+)(?:please\s+|then\s+)?delete\s+(?:the\s+)?(?:file\s+)?`?(?P<path>{FILE_NAME})`?"
    r"(?=[.!]?$|[.;,]\s|\s+(?:and|then|afterwards)\b)",
    re.IGNORECASE,
)
_REMOVED = re.compile(
    r"\b(?:remove|delete|drop|move)\s+(?:the\s+)?(?:(?:unused\s+)?(?:function|method|class|constant)\s+)?`?([A-Za-z_]\w*)",
    re.IGNORECASE,
)
MAX_WHOLE_LINES = 50  # of a file that is changed as a whole


def find_named_definition(path: str, name: str, texts: Mapping[str, str]) -> Definition | None:
    """The function or class of this name in a file, when there is one alone."""
    found = [definition for definition in find_definitions(texts.get(path, "").splitlines()) if definition.name == name]
    return found[0] if len(found) == 1 else None


def find_removed_names(request: str) -> set[str]:
    """Definitions that are to go, or to go elsewhere."""
    return {found[1] for found in _REMOVED.finditer(request)}


def find_undeleted_files(request: str, existing: Collection[str]) -> list[str]:
    """The step for each file that was to be deleted and is there still."""
    founds = (found for found in _DELETED.finditer(request) if not _KEPT_SO_FAR.match(request, found.end()))
    named = [found["path"] for found in founds if is_ordered(request, found.start("path"))]
    return [f"{name} is still there. Now run rm {name}." for name in named if name in existing]


def find_unchanged_definitions(request: str, before: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """The step for each function or class that was to change and has not, in files of which another part has."""
    names = [found["name"] or found["owner"] for found in _CHANGED.finditer(request)]
    steps = []
    for path, earlier in before.items():
        if texts.get(path, earlier) == earlier:
            continue
        for name in dict.fromkeys(names):
            old, new = (find_named_definition(path, name, held) for held in (before, texts))
            if old and new and old.text == new.text:
                steps.append(f"Now change {name} in {path}.")
    return steps


def aim_at_part(step: str, texts: Mapping[str, str], failure: str) -> str:
    """The step with the one function of a long file that what failed points at: the last that a traceback was in, or
    the first that the failing line calls."""
    found = _CHANGE_FILE.search(step)
    text = texts.get(found["path"], "") if found else ""
    if found is None or not failure or text.count("\n") <= MAX_WHOLE_LINES:
        return step
    names = list_defined_names(text)
    base = re.escape(found["path"].rsplit("/", 1)[-1])
    inside = [name for name in re.findall(rf'{base}", line \d+, in (\w+)', failure) if name in names]
    called = [name for name in re.findall(r"\b([A-Za-z_]\w*)\(", _find_failing_line(failure)) if name in names]
    name = inside[-1] if inside else called[0] if called else ""
    alone = name and find_named_definition(found["path"], name, texts)
    return f"{step[: found.start()]}Now change {name} in {found['path']}." if alone else step


def _find_failing_line(failure: str) -> str:
    """The line of code that a traceback shows last."""
    shown = re.findall(r'^  File "[^"]*", line \d+.*\n    (\S.*)$', failure, re.MULTILINE)
    return shown[-1] if shown else ""


def find_left_sections(request: str, texts: Mapping[str, str]) -> list[str]:
    """The step for each section that was to go and is there."""
    steps = []
    for found in _SECTION.finditer(request):
        if _NOT_GONE.search(request, found.end()) or not is_ordered(request, found.start()):
            continue
        path = next((name for name in texts if is_called(name, found["path"])), "")
        if heading := _find_heading(found["after"] or found["before"], texts.get(path, "")):
            steps.append(f"Now remove the section {heading} from {path}.")
    return steps


def find_removed_section(request: str, shown: str) -> str:
    """The command that takes away the section a request names, when its heading was shown."""
    found = _SECTION.search(request)
    if found is None or _NOT_GONE.search(request, found.end()):
        return ""
    heading = _find_heading(found["after"] or found["before"], shown)
    return make_section_removal(heading, found["path"]) if heading else ""


def find_heading_change(request: str, primed: str) -> str:
    """The command that gives one heading of a page that was shown another text."""
    found = _HEADING.search(request)
    heading = _find_heading(found["old"], primed) if found else ""
    shown = re.findall(r"^(\S+):\n```\n", primed, re.MULTILINE) if heading.startswith("#") else []
    holding = [path for path in shown if _holds(path, heading, primed)]
    if found is None or len(holding) != 1:
        return ""
    new = escape_replacement(f"{heading.partition(' ')[0]} {found['new']}")
    return f"sed -i {shlex.quote(f's/^{escape_for_sed(heading)} *$/{new}/')} {holding[0]}"


def _holds(path: str, heading: str, primed: str) -> bool:
    return heading in (line.rstrip() for line in find_shown_text(path, primed).splitlines())


def _find_heading(name: str, text: str) -> str:
    """The only heading of this name, of a page or of a file of settings, as it is written."""
    pattern = rf"^(?:#{{1,6}} +{re.escape(name)}|\[{re.escape(name)}\]) *$"
    found = {heading.strip() for heading in re.findall(pattern, text, re.MULTILINE | re.IGNORECASE)}
    return found.pop() if len(found) == 1 else ""


def make_section_removal(heading: str, path: str) -> str:
    """The command that deletes a section up to the next of its rank."""
    plain = escape_for_sed(heading)
    level = len(heading) - len(heading.lstrip("#"))
    following = rf"^#\{{1,{level}\}} " if level else r"^\["
    return f"sed -i '/^{plain} *$/,/{following}/{{/^{plain} *$/d;/{following}/!d}}' {path}"

"""What a request asks for that has visibly not happened, found by rule: files to change or make, commands to run.

Small models take their first step for all of it. What is said names the step that is left: a bare fact (`X has not
been changed`) they repeat as their answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.services.request_reading.asked_changes import ASKING, WRITTEN_TO, asks_for_change, asks_for_edit
from ollm.services.request_reading.asked_places import find_misplaced_parts
from ollm.services.request_reading.asked_tests import find_missing_test
from ollm.services.request_reading.broken_data import find_broken_data
from ollm.services.request_reading.deeds import Deeds, has_command_changes, is_handled
from ollm.services.request_reading.entry_settings import is_about_entry
from ollm.services.request_reading.named_parts import (
    aim_at_part,
    find_left_sections,
    find_unchanged_definitions,
    find_undeleted_files,
)
from ollm.services.request_reading.plain_changes import find_plain_steps
from ollm.services.request_reading.plain_words import (
    FILE_NAME,
    is_called,
    is_kept,
    is_ordered,
    is_test,
    split_sentences,
    strip_dictated,
)
from ollm.services.request_reading.replaced_names import find_left_over, find_replacement
from ollm.services.request_reading.reservations import KEEPS
from ollm.services.request_reading.trouble_words import find_failing, has_trouble
from ollm.services.request_reading.wanted_files import CODE, NAMED_FILE, find_sources, find_wanted_files, is_expected
from ollm.services.request_reading.wanted_runs import SCRIPTS, find_still_failing, find_unrun, find_wanted_commands

_MOVED = re.compile(rf"\bmove\s+(?:the\s+)?(?:\w+\s+)?`?([A-Za-z_]\w*)`?\s+from\s+`?({FILE_NAME})`?", re.IGNORECASE)
_PAGES = (".md", ".rst")
_READ_FROM = re.compile(
    rf"\b(?:lines?|rows?|numbers?|column|words?|amount|entries|sum)\b[^.;]*?\b(?:in|of|from)\s+`?({FILE_NAME})`?",
    re.IGNORECASE,
)
_USED = re.compile(
    rf"\b(?:if|when|unless|using|reads?|loads?|opens?|parses?|based\s+on|according\s+to|like)\s+(?:the\s+)?(?:file\s+)?`?({FILE_NAME})`?",
    re.IGNORECASE,
)
_MOVED_FILE = re.compile(
    rf"\b(?:move|copy|copy of|backup of|back\s+up|duplicate|split|execute|delete|remove|rename|get\s+rid\s+of)\s+"
    rf"(?:the\s+)?(?:file\s+)?`?({FILE_NAME})`?",
    re.IGNORECASE,
)
_ALREADY = re.compile(
    r"\s*(?:i|we)(?:'ve|\s+have|\s+had)?\s+(?:(?:just|already|now)\s+)?(?:\w+ed|made|wrote|put|split)\b", re.IGNORECASE
)
_EXPECTING = re.compile(
    rf"`?({FILE_NAME})`?\s+(?:expects?|wants?|checks?|asserts?|says|complains|requires|tests)\b", re.IGNORECASE
)
_SET = re.compile(r"\b([A-Za-z_]\w*_\w+|[a-z]+[A-Z]\w*)\s+to\s+([\w\"'-][\w.\"'-]*?)(?=[,;\s]|\.?$|\.\s)")
_COMPUTED = re.compile(r"\b(?:count|how many|number of|sum|total|add up|list)\b", re.IGNORECASE)
_OUTPUT = re.compile(r"\b(?:output|what it (?:prints|says|shows)|the result|its result|printed)\b", re.IGNORECASE)
_EMPTIED = re.compile(
    r"\b(?:empty|clear|truncate)\b|\b(?:everything|all(?: the)? (?:lines|contents?|text)|contents?)\b", re.IGNORECASE
)


def find_kept_tests(request: str) -> set[str]:
    """Files that are said to fail where others are to be mended for them, or that are tests by their name."""
    failing = {name.split()[-1] for name in find_failing(request)}
    wanted = set(find_wanted_files(request))
    return {name for name in failing - wanted if wanted - failing or is_test(name)}


def is_computed_into_file(request: str) -> bool:
    """Whether a number that must be worked out goes into a file, and no script is asked for."""
    written = [found[1] for found in WRITTEN_TO.finditer(request)]
    scripts = [name for name in find_wanted_files(request) if name.endswith(SCRIPTS)]
    return bool(written) and not scripts and _COMPUTED.search(request) is not None


def find_unfinished(request: str, deeds: Deeds, existing: Collection[str] = ()) -> list[str]:
    """The steps that are left, one sentence each; none when nothing of the kind is plain."""
    changed = {name.rpartition("/")[2] for name in deeds.changed}
    wanted = find_wanted_files(request)
    missing = [name for name in wanted if name.rpartition("/")[2] not in changed]
    there = [name for name in missing if any(is_called(path, name) for path in existing)]
    made = [name for name in missing if name not in there]
    facts = _find_unchanged(request, deeds, existing, [name for name in there if not is_handled(name, deeds)], made)
    if not wanted and not facts and asks_for_change(request) and not deeds.changed and not has_command_changes(deeds):
        facts.append(_name_meant_file(request, deeds))
    facts += [] if wanted else _find_unprinted(request, deeds)
    failing, unrun = find_still_failing(request, deeds), find_unrun(request, deeds, existing)
    if not deeds.changed and has_trouble(request):
        failing, unrun = [*failing, *(told for told in unrun if told not in failing)], []
    facts = [*facts, *failing] if deeds.changed else [*failing, *facts]
    new = {name: _name_new_file(request, deeds, name) for name in made if not is_expected(request, name)}
    scripts = [told for name, told in new.items() if name.endswith(SCRIPTS)]
    others = [told for name, told in new.items() if not name.endswith(SCRIPTS)]
    empty = [name for name in wanted if name in changed and not deeds.texts.get(name, "x").strip()]
    if not _OUTPUT.search(request) and not _EMPTIED.search(request):  # what a program prints may be nothing
        others += [f"{name} is empty. Now write {name} with a command." for name in empty]
    facts = [*find_broken_data(request, deeds.texts), *facts]
    steps = facts + scripts + unrun + _find_silent(request, deeds, wanted) + others
    return list(dict.fromkeys(aim_at_part(step, deeds.texts, deeds.failure) for step in steps))


def _find_unchanged(
    request: str, deeds: Deeds, existing: Collection[str], there: Collection[str], made: Collection[str]
) -> list[str]:
    """The steps at files that exist: words that are left in them, parts and entries that are as they were, and those
    `there` that were to change. Files that others are `made` of stay as they are."""
    wanted, sources = find_wanted_files(request), find_sources(request, made)
    left = _find_left_words(request, deeds, wanted)
    moved = _find_unmoved(request, deeds) if deeds.changed else []
    gone = {told.rpartition(" from ")[2].rstrip(".") for told in moved}
    facts = [*left.values(), *moved, *_find_unset(request, deeds, wanted), *find_left_sections(request, deeds.texts)]
    facts += find_plain_steps(request, deeds.texts, deeds.before)
    if deeds.changed:
        facts += [*find_undeleted_files(request, existing), *find_misplaced_parts(request, deeds.texts, existing)]
    facts += find_unchanged_definitions(request, deeds.before, deeds.texts)
    facts += find_missing_test(request, deeds.before, deeds.texts)
    targets = [name for name in there if name not in sources and name not in left and name not in gone]
    if not facts and not targets:
        target = _find_only_target(request, existing)
        last = target.rpartition("/")[2]  # what was wanted of a program may be done in another file
        done = deeds.changed and (target.endswith(CODE) or last in {name.rpartition("/")[2] for name in deeds.changed})
        targets = [target] if target and not done and target not in sources and not is_handled(target, deeds) else []
    return facts + [f"Now change {name}{' too' if deeds.changed else ''}." for name in targets]


def _name_meant_file(request: str, deeds: Deeds) -> str:
    """The step where nothing was changed: at the only file that may be meant, if there is one."""
    meant = [name for name in deeds.meant if not is_kept(name, request)]
    meant = [name for name in meant if not is_test(name)] or meant
    meant = [name for name in meant if not name.endswith(_PAGES)] or meant
    return f"Now change {meant[0]}." if len(meant) == 1 else "Nothing has been changed. Now do it."


def _find_unprinted(request: str, deeds: Deeds) -> list[str]:
    """A number that is asked for, where the last command printed nothing: the answer would be made up."""
    last, code = deeds.commands[-1] if deeds.commands else ("", 1)
    asked = ASKING.match(request) and _COMPUTED.search(request) and not asks_for_change(request)
    silent = asked and code == 0 and last in deeds.silent
    return ["The command printed nothing. Now find it with a command."] if silent else []


def _find_silent(request: str, deeds: Deeds, wanted: Collection[str]) -> list[str]:
    """A script that was written to print something, and does not."""
    if not re.search(r"\b(?:that|which|should|must|to)\s+prints?\b", request, re.IGNORECASE):
        return []
    last = next((line for line, code in reversed(deeds.commands) if code == 0), "")
    ran = re.search(r"(?:^|[;&|]\s*)(?:python3?|sh|bash|node|\./)", last) is not None
    made = [name for name in wanted if ran and name.endswith(SCRIPTS) and name in deeds.changed and name in last]
    if last in deeds.silent and made and last not in [line for line, _ in deeds.since_change]:
        return [f"Now run {last}."]  # it was mended since
    return [f"{name} prints nothing. Now mend {name}." for name in made if last in deeds.silent]


def _find_only_target(request: str, existing: Collection[str]) -> str:
    """The one file that is named and not only run, where something is to change."""
    from ollm.services.request_reading.primed_request import find_named, find_only_run, moves_files

    if not asks_for_edit(request) or ASKING.match(request) or moves_files(request):
        return ""
    named = find_named(strip_dictated(request), existing)
    ran = {*find_only_run(request, named), *(name.split()[-1] for name in find_failing(request))}
    targets = [name for name in named if name not in ran] or (named if len(named) == 1 else [])
    sources = {found[1] for pattern in (_READ_FROM, _MOVED_FILE, _USED) for found in pattern.finditer(request)}
    failing = {name for name in ran if is_test(name)}
    told = (said for said in split_sentences(request) if _ALREADY.match(said))
    sources |= {name for said in told for name in NAMED_FILE.findall(said)}
    sources |= {found[1] for found in _EXPECTING.finditer(request) if is_test(found[1])}
    left = [name for name in targets if name not in sources | failing and not is_kept(name, request)]
    return left[0] if len(left) == 1 else ""


def _find_left_words(request: str, deeds: Deeds, wanted: Collection[str]) -> dict[str, str]:
    """Where a word still occurs that was to become another one, by file."""
    replacement = find_replacement(request)
    if replacement is None:
        return {}
    concerned = (name for name in deeds.texts if not wanted or _is_named(name, wanted))
    named = {name: deeds.texts[name] for name in concerned if not is_kept(name, request)}
    named = {name: text for name, text in named.items() if not is_about_entry(request, name, text)}
    return {
        name: f"{name} still has {replacement.old}. Now replace {replacement.old} by {replacement.new} in {name}."
        for name in find_left_over(replacement, named)
    }


def _find_unset(request: str, deeds: Deeds, wanted: Collection[str]) -> list[str]:
    """Names in a file that was changed which were to get a value and have another."""
    facts = []
    files = [name for name in deeds.changed if _is_named(name, wanted)]
    for name, value in _SET.findall(request) if len(files) == 1 else ():
        line = re.search(
            rf"^(\s*[\"']?{re.escape(name)}[\"']?\s*[:=]\s*)(.*)$", deeds.texts.get(files[0], ""), re.MULTILINE
        )
        if line and value.strip("\"'").lower() not in line[2].lower():
            facts.append(f"Now set {name} to {value} in {files[0]}.")
    return facts


def _is_named(path: str, wanted: Collection[str]) -> bool:
    return any(is_called(path, name) for name in wanted)


def _name_new_file(request: str, deeds: Deeds, name: str) -> str:
    """How a file that is not there yet comes about: by moving, from the output of what was run, or by being written."""
    if re.match(r"\s*(?:rename|move|copy)\b", request, re.IGNORECASE):
        return f"{name} does not exist. Now do it."
    ran = [line for line, code in deeds.commands if code == 0]
    if ran and _OUTPUT.search(request) and not name.endswith(SCRIPTS):
        asked = [line for line in ran if any(command in line for command in find_wanted_commands(request))]
        command = (asked or ran)[-1].partition(" > ")[0].strip()
        if "\n" not in command:
            return f"{name} does not exist. Now write the output of {command} into {name}."
    computed = not ran and not name.endswith(SCRIPTS) and _COMPUTED.search(request)
    return f"{name} does not exist. Now write {name}{' with a command' if computed else ''}."


def _find_unmoved(request: str, deeds: Deeds) -> list[str]:
    """What was to move from one file to another and is still in the first."""
    facts = []
    for found in _MOVED.finditer(request):
        if re.search(KEEPS, request, re.IGNORECASE) or not is_ordered(request, found.start()):
            continue
        name, source = found[1], found[2]
        text = deeds.texts.get(source, "")
        if re.search(rf"^\s*(?:def |class |function |const |let )?{re.escape(name)}\b", text, re.MULTILINE):
            constant = re.search(rf"^{re.escape(name)}\s*=", text, re.MULTILINE)
            told = f"Now remove {name} from {source}." if constant else f"{name} is still in {source}: remove it there."
            facts.append(told)
    return facts

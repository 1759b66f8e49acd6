"""What a request asks for that has visibly not happened, found by rule: files to change or make, commands to run.

Small models take their first step for all of it. What is said names the step that is left: a bare fact (`X has not
been changed`) they repeat as their answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ollm.domain.struct import Data
from ollm.services.request_reading.asked_changes import ASKING, WRITTEN_TO, asks_for_change, asks_for_edit
from ollm.services.request_reading.asked_places import find_misplaced_parts
from ollm.services.request_reading.asked_tests import find_missing_test
from ollm.services.request_reading.broken_data import find_broken_data
from ollm.services.request_reading.entry_settings import is_about_entry
from ollm.services.request_reading.named_parts import (
    aim_at_part,
    find_left_sections,
    find_unchanged_definitions,
    find_undeleted_files,
)
from ollm.services.request_reading.own_tests import describe_own_test
from ollm.services.request_reading.plain_changes import find_plain_steps
from ollm.services.request_reading.plain_words import FILE_NAME, is_kept, is_negated, is_test, split_sentences
from ollm.services.request_reading.replaced_names import find_left_over, find_replacement
from ollm.services.request_reading.reservations import forbids_runs, may_run
from ollm.services.request_reading.trouble_words import find_failing, find_only_failing, has_trouble
from ollm.services.request_reading.wanted_files import CODE, NAMED_FILE, find_sources, find_wanted_files

_RUN = re.compile(
    r"\b(?:run|execute|start)\s+(?:it with\s+)?`?"
    r"((?:python3?|sh|bash|node|pytest|make|npm|go|cargo)\b(?:[^,;`\n.?!]|[.](?=[^\s`'\")]))*|[\w./-]+\.(?:py|sh|js))",
    re.IGNORECASE,
)
_BARE = ("python", "python3", "sh", "bash", "node", "npm", "go", "cargo")  # of a script that is not said again
_TRIED = re.compile(
    r"\b(?:check|see|tell\s+me|say|know|verify)\s+(?:if|whether|that)\s+`?([\w./-]+\.(?:py|sh|js))`?\s+(?:passes|works|runs|fails|succeeds)\b|"
    r"^\s*(?:is|does)\s+`?([\w./-]+\.(?:py|sh|js))`?\s+(?:pass|passing|work|working|run|fail|failing)\b",
    re.IGNORECASE,
)
_MOVED = re.compile(rf"\bmove\s+(?:the\s+)?(?:\w+\s+)?`?([A-Za-z_]\w*)`?\s+from\s+`?({FILE_NAME})`?", re.IGNORECASE)
_SCRIPTS = (".py", ".sh", ".js")
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
_RUN_IT = re.compile(r"\b(?:run|execute)\s+(?:it|them|the (?:script|program|tests?))\b", re.IGNORECASE)


_RED_TESTS = re.compile(
    r"\b(?:tests?|test\s+suite)\b(?:(?!\bfor\b)[^.?])*\b(?:pass(?:es)?|green|red|fail(?:s|ing|ed)?|broken|succeed)\b|"
    r"\b(?:failing|broken|red)\s+tests?\b",
    re.IGNORECASE,
)


class Deeds(Data, frozen=True):
    """What was in fact done in a turn. `commands` are those that ran, with their exit codes, in their order."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # files the request names that do not exist
    commands: tuple[tuple[str, int], ...] = ()
    silent: tuple[str, ...] = ()  # those that succeeded and printed nothing
    since_change: tuple[tuple[str, int], ...] = ()  # those that ran after the last change of a file
    texts: Mapping[str, str] = {}  # of the files as they are now
    before: Mapping[str, str] = {}  # of those that were changed, as they were
    meant: tuple[str, ...] = ()  # files that the request is about without naming them
    failure: str = ""  # what the last command printed, where it failed


def find_kept_tests(request: str) -> set[str]:
    """Files that are said to fail where others are to be mended for them, or that are tests by their name."""
    failing = {name.split()[-1] for name in find_failing(request)}
    wanted = set(find_wanted_files(request))
    return {name for name in failing - wanted if wanted - failing or is_test(name)}


def find_wanted_commands(request: str) -> list[str]:
    tried = [found[1] or found[2] for found in _TRIED.finditer(request)]
    runs = [found[1] for found in _RUN.finditer(request) if not is_negated(request, found.start())]
    said = [told.strip().rstrip(".").split(" and ")[0].strip() for told in runs]
    return [command for command in (*tried, *said) if command.lower() not in _BARE and may_run(command, request)]


def find_first_command(request: str) -> str:
    """What is best run before anything else: what is said to fail, or what is to be run to see why."""
    if failing := _list_failing_runs(request):
        return make_command(failing[0])
    if not has_trouble(request) or forbids_runs(request):
        return ""
    told = [step.removeprefix("Now run ").rstrip(".") for step in _find_unrun(request, Deeds())]
    only = make_command(find_only_failing(request)) if asks_for_change(request) else ""
    return next((command for command in (*told, only) if may_run(command, request)), "")


def _list_failing_runs(request: str) -> list[str]:
    """What is said to fail and may be run."""
    return [named for named in find_failing(request) if may_run(make_command(named), request)]


def find_red_tests(request: str, existing: Collection[str]) -> str:
    """How the tests are run that are to pass, where no file of them is named and there is one alone."""
    tests = [name for name in existing if is_test(name) and name.endswith(_SCRIPTS)]
    named = any(is_test(name) for name in NAMED_FILE.findall(request))
    wanted = not named and len(tests) == 1 and _RED_TESTS.search(request) and asks_for_change(request)
    return make_command(tests[0]) if wanted and may_run(make_command(tests[0]), request) else ""


def is_computed_into_file(request: str) -> bool:
    """Whether a number that must be worked out goes into a file, and no script is asked for."""
    written = [found[1] for found in WRITTEN_TO.finditer(request)]
    scripts = [name for name in find_wanted_files(request) if name.endswith(_SCRIPTS)]
    return bool(written) and not scripts and _COMPUTED.search(request) is not None


def find_unfinished(request: str, deeds: Deeds, existing: Collection[str] = ()) -> list[str]:
    """The steps that are left, one sentence each; none when nothing of the kind is plain."""
    changed = {name.rpartition("/")[2] for name in deeds.changed}
    wanted = find_wanted_files(request)
    missing = [name for name in wanted if name.rpartition("/")[2] not in changed]
    there = [name for name in missing if name in existing or any(path.endswith(f"/{name}") for path in existing)]
    made = [name for name in missing if name not in there]
    sources = find_sources(request, made)
    there = [name for name in there if name not in sources and not _is_handled(name, deeds)]
    left = _find_left_words(request, deeds, wanted)
    moved = _find_unmoved(request, deeds) if deeds.changed else []
    gone = {told.rpartition(" from ")[2].rstrip(".") for told in moved}
    facts = [*left.values(), *moved, *_find_unset(request, deeds, wanted), *find_left_sections(request, deeds.texts)]
    facts += find_plain_steps(request, deeds.texts, deeds.before)
    if deeds.changed:
        facts += [*find_undeleted_files(request, existing), *find_misplaced_parts(request, deeds.texts, existing)]
    facts += find_unchanged_definitions(request, deeds.before, deeds.texts)
    facts += find_missing_test(request, deeds.before, deeds.texts)
    facts += [
        f"Now change {name}{' too' if changed else ''}." for name in there if name not in left and name not in gone
    ]
    target = "" if facts else _find_only_target(request, existing)
    if changed and (target.endswith(CODE) or target.rpartition("/")[2] in changed):
        target = ""  # what was wanted of a program may be done in another file
    if target and target not in sources and not _is_handled(target, deeds):
        facts.append(f"Now change {target}{' too' if changed else ''}.")
    if not wanted and not facts and asks_for_change(request) and not deeds.changed and not _has_command_changes(deeds):
        meant = [name for name in deeds.meant if not is_kept(name, request)]
        meant = [name for name in meant if not is_test(name)] or meant
        meant = [name for name in meant if not name.endswith(_PAGES)] or meant
        facts.append(f"Now change {meant[0]}." if len(meant) == 1 else "Nothing has been changed. Now do it.")
    facts += [] if wanted else _find_unprinted(request, deeds)
    failing, unrun = _find_still_failing(request, deeds), _find_unrun(request, deeds, existing)
    if not deeds.changed and has_trouble(request):
        failing, unrun = [*failing, *(told for told in unrun if told not in failing)], []
    facts = [*facts, *failing] if deeds.changed else [*failing, *facts]
    new = {name: _name_new_file(request, deeds, name) for name in made}
    scripts = [told for name, told in new.items() if name.endswith(_SCRIPTS)]
    others = [told for name, told in new.items() if not name.endswith(_SCRIPTS)]
    empty = [name for name in wanted if name in changed and not deeds.texts.get(name, "x").strip()]
    if not _OUTPUT.search(request) and not _EMPTIED.search(request):  # what a program prints may be nothing
        others += [f"{name} is empty. Now write {name} with a command." for name in empty]
    facts = [*find_broken_data(request, deeds.texts), *facts]
    steps = facts + scripts + unrun + _find_silent(request, deeds, wanted) + others
    return list(dict.fromkeys(aim_at_part(step, deeds.texts, deeds.failure) for step in steps))


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
    made = [name for name in wanted if name.endswith(_SCRIPTS) and name in deeds.changed and name in last]
    if last in deeds.silent and made and last not in [line for line, _ in deeds.since_change]:
        return [f"Now run {last}."]  # it was mended since
    return [f"{name} prints nothing. Now mend {name}." for name in made if last in deeds.silent]


def _find_only_target(request: str, existing: Collection[str]) -> str:
    """The one file that is named and not only run, where something is to change."""
    from ollm.services.request_reading.primed_request import find_named, find_only_run, moves_files

    if not asks_for_edit(request) or ASKING.match(request) or moves_files(request):
        return ""
    named = find_named(request, existing)
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
    return any(path == name or path.endswith(f"/{name}") for name in wanted)


def _name_new_file(request: str, deeds: Deeds, name: str) -> str:
    """How a file that is not there yet comes about: by moving, from the output of what was run, or by being written."""
    if re.match(r"\s*(?:rename|move|copy)\b", request, re.IGNORECASE):
        return f"{name} does not exist. Now do it."
    ran = [line for line, code in deeds.commands if code == 0]
    if ran and _OUTPUT.search(request) and not name.endswith(_SCRIPTS):
        asked = [line for line in ran if any(command in line for command in find_wanted_commands(request))]
        command = (asked or ran)[-1].partition(" > ")[0].strip()
        if "\n" not in command:
            return f"{name} does not exist. Now write the output of {command} into {name}."
    computed = not ran and not name.endswith(_SCRIPTS) and _COMPUTED.search(request)
    return f"{name} does not exist. Now write {name}{' with a command' if computed else ''}."


def _has_command_changes(deeds: Deeds) -> bool:
    return _is_handled("", deeds) or any(
        code == 0 and re.match(r"\s*(?:mv|rm|cp|mkdir|git|touch|rmdir|tee|chmod|ln)\b", line)
        for line, code in deeds.commands
    )


def _is_handled(name: str, deeds: Deeds) -> bool:
    """Whether a command did to a file what leaves its text as it is."""
    handled = rf"(?:^|[;&|]\s*)(?:chmod|touch|git|ln)\s[^;&|]*{re.escape(name)}"
    return any(code == 0 and re.search(handled, line) for line, code in deeds.commands)


def _find_still_failing(request: str, deeds: Deeds) -> list[str]:
    """What was said to fail and was not tried, or not again after the change, or fails still."""
    facts = []
    failing = {name.split()[-1] for name in find_failing(request)}
    wanted = (*find_wanted_files(request), *deeds.meant)
    targets = [name for name in wanted if name in deeds.texts and name not in failing]
    for named in _list_failing_runs(request):
        command = make_command(named)
        codes = [code for line, code in deeds.since_change if named.split()[-1] in line]
        if not codes:
            facts.append(f"Now run {command}.")
        elif codes[-1] != 0 and deeds.changed:
            alone = len(set(NAMED_FILE.findall(request))) == 1 and not is_test(named)
            target = targets[0] if len(targets) == 1 else named if alone and " " not in named else ""
            facts.append(f"{command} still fails. Now mend {target}." if target else f"{command} still fails: mend it.")
    return facts


def make_command(named: str) -> str:
    """How a script is run that was named by its file alone."""
    program = {"py": "python", "sh": "sh", "js": "node"}.get(named.rpartition(".")[2])
    return named if " " in named or program is None else f"{program} {named}"


def _find_unmoved(request: str, deeds: Deeds) -> list[str]:
    """What was to move from one file to another and is still in the first."""
    facts = []
    for found in _MOVED.finditer(request):
        name, source = found[1], found[2]
        text = deeds.texts.get(source, "")
        if re.search(rf"^\s*(?:def |class |function |const |let )?{re.escape(name)}\b", text, re.MULTILINE):
            constant = re.search(rf"^{re.escape(name)}\s*=", text, re.MULTILINE)
            told = f"Now remove {name} from {source}." if constant else f"{name} is still in {source}: remove it there."
            facts.append(told)
    return facts


def _runs(line: str, command: str, key: str) -> bool:
    """Whether a line of the shell runs this, and does not only name its file."""
    program = re.escape(command.split(maxsplit=1)[0].removesuffix("3"))
    program = "(?:ba)?sh" if program == "sh" else program
    return key in line and (f"./{key}" in line or re.search(rf"(?<![\w.]){program}", line) is not None)


def _list_runs(request: str, deeds: Deeds, existing: Collection[str]) -> list[str]:
    """What is to be run: as the request says, tests that are to pass, and tests that were written."""
    written = [name for name in deeds.changed if is_test(name) and name.endswith(".py") and name in deeds.texts]
    written = [name for name in written if deeds.texts[name] not in deeds.before.values()]  # one that only moved
    spoken = re.search(r"\b(?:unit\s*)?tests?\b", request, re.IGNORECASE)
    asked = [name for name in written if spoken or name.rpartition("/")[2] in request]
    red = find_red_tests(request, existing)
    return list(dict.fromkeys(map(make_command, [*find_wanted_commands(request), *([red] if red else []), *asked])))


def _find_unrun(request: str, deeds: Deeds, existing: Collection[str] = ()) -> list[str]:
    ran = [line for line, code in deeds.commands if code == 0] + [line for line, _ in deeds.since_change]
    facts = []
    for command in _list_runs(request, deeds, existing):
        key = next((word for word in reversed(command.split()) if "." in word), command)
        codes = [code for line, code in deeds.since_change if _runs(line, command, key)]
        if not any(_runs(line, command, key) for line in ran):
            facts.append(f"Now run {command}.")
        elif codes and codes[-1] and deeds.changed and not find_failing(request):
            alone = f". Now mend {deeds.changed[0]}." if len(deeds.changed) == 1 else ": mend it."
            own = describe_own_test(command, deeds.changed, deeds.before, deeds.texts, deeds.failure)
            facts.append(own or f"{command} fails{alone}")
    if not ran and not facts and not deeds.since_change and not find_failing(request) and _RUN_IT.search(request):
        scripts = [name for name in NAMED_FILE.findall(request) if name.endswith(_SCRIPTS)]
        facts.append(f"Now run {make_command(scripts[0])}." if len(set(scripts)) == 1 else "Now run it.")
    return facts

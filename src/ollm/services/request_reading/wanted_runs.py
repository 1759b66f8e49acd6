"""What is to be run: commands that a request names, what it says fails, tests that are to pass; and what of it has not
run, or failed. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.deeds import Deeds
from ollm.services.request_reading.own_tests import describe_own_test
from ollm.services.request_reading.plain_words import is_ordered, is_test
from ollm.services.request_reading.reservations import forbids_runs, may_run
from ollm.services.request_reading.trouble_words import find_failing, find_only_failing, has_trouble
from ollm.services.request_reading.wanted_files import NAMED_FILE, find_wanted_files

SCRIPTS = (".py", ".sh", ".js")
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
_RUN_IT = re.compile(r"\b(?:run|execute)\s+(?:it|them|the (?:script|program|tests?))\b", re.IGNORECASE)
_RED_TESTS = re.compile(
    r"\b(?:tests?|test\s+suite|pytest|unittests?)\b(?:(?!\bfor\b)[^.?]){0,200}"
    r"\b(?:pass(?:es)?|green|red|fail(?:s|ing|ed)?|broken|succeed)\b|"
    r"\b(?:failing|broken|red)\s+tests?\b",
    re.IGNORECASE,
)
_FIXED = re.compile(r"\b(?:fix|repair|mend|correct|debug)\b", re.IGNORECASE)
_PASSES = r"`?\s+(?:to\s+|should\s+|must\s+|will\s+)?(?:pass(?:es)?|succeeds?|(?:is|be|are)\s+green)\b"


def find_wanted_commands(request: str) -> list[str]:
    """The commands that it names and that may be run."""
    tried = [found[1] or found[2] for found in _TRIED.finditer(request)]
    runs = [found[1] for found in _RUN.finditer(request) if is_ordered(request, found.start())]
    said = [told.strip().rstrip(".").split(" and ")[0].strip() for told in runs]
    return [command for command in (*tried, *said) if command.lower() not in _BARE and may_run(command, request)]


def find_first_command(request: str) -> str:
    """What is best run before anything else: what is said to fail, or what is to be run to see why."""
    if failing := _list_failing_runs(request):
        return make_command(failing[0])
    if not has_trouble(request) or forbids_runs(request):
        return ""
    told = [step.removeprefix("Now run ").rstrip(".") for step in find_unrun(request, Deeds())]
    only = make_command(find_only_failing(request)) if asks_for_change(request) else ""
    return next((command for command in (*told, only) if may_run(command, request)), "")


def _list_failing_runs(request: str) -> list[str]:
    """What is said to fail and may be run."""
    return [named for named in find_failing(request) if may_run(make_command(named), request)]


def find_red_tests(request: str, existing: Collection[str]) -> str:
    """How the tests are run that are to pass, where there is one file of them alone, or code is fixed for one."""
    named = [name for name in NAMED_FILE.findall(request) if is_test(name)]
    passing = [name for name in named if _FIXED.search(request) and re.search(rf"{re.escape(name)}{_PASSES}", request)]
    tests = passing or [name for name in existing if is_test(name) and name.endswith(SCRIPTS)]
    told = bool(passing) or (not named and _RED_TESTS.search(request) is not None)
    wanted = told and len(tests) == 1 and asks_for_change(request)
    return make_command(tests[0]) if wanted and may_run(make_command(tests[0]), request) else ""


def find_still_failing(request: str, deeds: Deeds) -> list[str]:
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


def find_unrun(request: str, deeds: Deeds, existing: Collection[str] = ()) -> list[str]:
    """The step for each command that was to be run and has not, or failed after a change."""
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
        scripts = [name for name in NAMED_FILE.findall(request) if name.endswith(SCRIPTS)]
        facts.append(f"Now run {make_command(scripts[0])}." if len(set(scripts)) == 1 else "Now run it.")
    return facts

"""What a request asks for that has visibly not happened, found by rule: files to change or make, commands to run.

Small models take their first step for all of it. What is said names the step that is left: a bare fact (`X has not
been changed`) they repeat as their answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ollm.domain.struct import Data

CHANGE_VERBS = (
    "rename|change|replace|update|fix|set|add|append|insert|raise|bump|increase|remove|delete|drop|move|edit|modify|"
    "correct|convert|rewrite|refactor|introduce|extract|give|let|make|turn|mend|sort|comment|implement|switch|swap|put|extend"
)
WRITE_VERBS = "write|save|store|put|record|note|create|make|generate|copy|export|dump|output"
ASKING = re.compile(
    r"^\s*(?:what|which|who|where|when|why|how|is|are|does|do|did|can you (?:tell|explain|show)|"
    r"could you (?:tell|explain)|explain|describe|tell me|say|show|list|count|find|read|summari[sz]e|print)\b",
    re.IGNORECASE,
)
_NAME = r"[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*\.[A-Za-z]\w{0,9}|\.env|\.\w+rc|\.gitignore"
_FILE = re.compile(rf"(?<![\w./-])`?({_NAME})`?(?![\w/-])")
_LISTED = rf"`?(?:{_NAME})`?(?:(?:\s*,\s*(?:and\s+)?(?:in\s+)?|\s+and\s+(?:in\s+)?)`?(?:{_NAME})`?)*"
_CHANGED_IN = re.compile(
    rf"\b(?:in|of|to|from|into|fix|edit|update|change)\s+(?:(?:the|a)\s+)?(?:new\s+)?(?:files?\s+)?({_LISTED})",
    re.IGNORECASE,
)
_WRITTEN_TO = re.compile(
    rf"\b(?:{WRITE_VERBS})\b[^.;\n]*?\b(?:in|into|to|as|at)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?`?({_NAME})`?",
    re.IGNORECASE,
)
_CREATED = re.compile(
    rf"\b(?:create|write|make|generate|add)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:\w+\s+){{0,3}}?`?({_NAME})`?",
    re.IGNORECASE,
)
_RUN = re.compile(
    r"\b(?:run|execute|start)\s+(?:it with\s+)?`?"
    r"((?:python3?|sh|bash|node|pytest|make|npm|go|cargo)\b[^,;`\n]*|[\w./-]+\.(?:py|sh|js))",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"((?:python3?|sh|bash|node|pytest)\s+[\w./-]+|[\w./-]+\.(?:py|sh|js))\s+"
    r"(?:fails|crashes|does not (?:run|work|pass)|doesn't (?:run|work|pass)|raises|is failing|has a syntax error)",
    re.IGNORECASE,
)
_MOVED = re.compile(rf"\bmove\s+(?:the\s+)?(?:\w+\s+)?`?([A-Za-z_]\w*)`?\s+from\s+`?({_NAME})`?", re.IGNORECASE)
_REMOVED = re.compile(
    r"\b(?:remove|delete|drop|move)\s+(?:the\s+)?(?:(?:unused\s+)?(?:function|method|class|constant)\s+)?`?([A-Za-z_]\w*)",
    re.IGNORECASE,
)
_SCRIPTS = (".py", ".sh", ".js")
_RUN_IT = re.compile(r"\b(?:run|execute)\s+(?:it|them|the (?:script|program|tests?))\b", re.IGNORECASE)
_CHANGE = re.compile(
    rf"(?:^|^in\s+\S+\s+|[.;,:]\s+|\band\s+|\bthen\s+|\bplease\s+|\bto\s+)(?:{CHANGE_VERBS})\b", re.IGNORECASE
)


class Deeds(Data, frozen=True):
    """What was in fact done in a turn. `commands` are those that ran, with their exit codes, in their order."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # files the request names that do not exist
    commands: tuple[tuple[str, int], ...] = ()
    since_change: tuple[tuple[str, int], ...] = ()  # those that ran after the last change of a file
    texts: Mapping[str, str] = {}  # of the files as they are now


def asks_for_change(request: str) -> bool:
    """Whether files are to be different afterwards."""
    if ASKING.match(request) and not re.search(
        rf"\b(?:and|then)\s+(?:{CHANGE_VERBS}|{WRITE_VERBS})\b", request, re.IGNORECASE
    ):
        return False
    return bool(_CHANGE.search(request)) or bool(_WRITTEN_TO.search(request)) or bool(_CREATED.search(request))


def find_wanted_files(request: str) -> list[str]:
    """The files that must be changed or made, as far as the words say so without doubt."""
    wanted: list[str] = []
    if not asks_for_change(request):
        return wanted
    for sentence in re.split(r"(?<=[.;!?])\s+|\n|,?\s+(?:and\s+)?then\s+", request):
        if re.search(rf"\b(?:{CHANGE_VERBS})\b", sentence, re.IGNORECASE):
            for found in _CHANGED_IN.finditer(sentence):
                wanted += [name for name in _FILE.findall(found[1]) if _is_target(sentence, found.start())]
        wanted += [found[1] for pattern in (_WRITTEN_TO, _CREATED) for found in pattern.finditer(sentence)]
    return list(dict.fromkeys(wanted))


def _is_target(sentence: str, place: int) -> bool:
    """`from a.py` is changed when something moves away from it, and otherwise only read."""
    word = sentence[place:].split(maxsplit=1)[0].lower()
    before = sentence[:place].lower()
    if re.search(r"\b(?:lines?|rows?|numbers?|column|output|contents?|results?|value)\s+(?:\w+\s+){0,3}$", before):
        return False
    return word != "from" or re.match(r"\s*(?:move|remove|delete|drop|extract)\b", before) is not None


def find_wanted_commands(request: str) -> list[str]:
    return [found[1].strip().rstrip(".").split(" and ")[0].strip() for found in _RUN.finditer(request)]


def find_unfinished(request: str, deeds: Deeds, existing: Collection[str] = ()) -> list[str]:
    """The steps that are left, one sentence each; none when nothing of the kind is plain."""
    changed = {name.rsplit("/", 1)[-1] for name in deeds.changed}
    wanted = find_wanted_files(request)
    missing = [name for name in wanted if name.rsplit("/", 1)[-1] not in changed]
    there = [name for name in missing if name in existing or any(path.endswith(f"/{name}") for path in existing)]
    facts = [f"Now change {name}{' too' if changed else ''}." for name in there]
    if not wanted and asks_for_change(request) and not deeds.changed and not _changed_by_command(deeds):
        facts.append("Nothing has been changed. Now do it.")
    facts += _find_unmoved(request, deeds) if deeds.changed else []
    failing = _find_still_failing(request, deeds)
    facts = [*facts, *failing] if deeds.changed else [*failing, *facts]
    make = "do it" if re.match(r"\s*(?:rename|move|copy)\b", request, re.IGNORECASE) else "write {}"
    new = {name: f"{name} does not exist. Now {make.format(name)}." for name in missing if name not in there}
    scripts = [told for name, told in new.items() if name.endswith(_SCRIPTS)]
    others = [told for name, told in new.items() if not name.endswith(_SCRIPTS)]
    return facts + scripts + _find_unrun(request, deeds) + others


def _changed_by_command(deeds: Deeds) -> bool:
    return any(
        code == 0 and re.match(r"\s*(?:mv|rm|cp|mkdir|git|sed|touch|rmdir|tee)\b", line)
        for line, code in deeds.commands
    )


def _find_still_failing(request: str, deeds: Deeds) -> list[str]:
    """What was said to fail and was not tried, or not again after the change, or fails still."""
    facts = []
    for named in (found[1].strip() for found in _FAILS.finditer(request)):
        command = make_command(named)
        codes = [code for line, code in deeds.since_change if named.split()[-1] in line]
        if not codes:
            facts.append(f"Now run {command}.")
        elif codes[-1] != 0 and deeds.changed:
            facts.append(f"{command} still fails: mend it.")
    return facts


def make_command(named: str) -> str:
    """How a script is run that was named by its file alone."""
    program = {"py": "python", "sh": "sh", "js": "node"}.get(named.rsplit(".", 1)[-1])
    return named if " " in named or program is None else f"{program} {named}"


def find_removed_names(request: str) -> set[str]:
    """Definitions that are to go, or to go elsewhere."""
    return {found[1] for found in _REMOVED.finditer(request)}


def _find_unmoved(request: str, deeds: Deeds) -> list[str]:
    """What was to move from one file to another and stands in the first still."""
    facts = []
    for found in _MOVED.finditer(request):
        name, source = found[1], found[2]
        text = deeds.texts.get(source, "")
        if re.search(rf"^\s*(?:def |class |function |const |let )?{re.escape(name)}\b", text, re.MULTILINE):
            facts.append(f"{name} is still in {source}: remove it there.")
    return facts


def _find_unrun(request: str, deeds: Deeds) -> list[str]:
    ran = [line for line, _ in deeds.commands]
    facts = []
    for command in find_wanted_commands(request):
        key = next((word for word in reversed(command.split()) if "." in word), command)
        if not any(key in line for line in ran):
            facts.append(f"Now run {command}.")
    if not ran and not facts and _RUN_IT.search(request):
        scripts = [name for name in _FILE.findall(request) if name.endswith(_SCRIPTS)]
        facts.append(f"Now run {make_command(scripts[0])}." if len(set(scripts)) == 1 else "Now run it.")
    return facts

"""What a request asks for that has visibly not happened, found by rule: files to change or make, commands to run.

Small models take their first step for all of it. What is said here are facts about files and commands, never advice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

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
_RUN_IT = re.compile(r"\b(?:run|execute)\s+(?:it|them|the (?:script|program|tests?))\b", re.IGNORECASE)
_CHANGE = re.compile(
    rf"(?:^|^in\s+\S+\s+|[.;,:]\s+|\band\s+|\bthen\s+|\bplease\s+|\bto\s+)(?:{CHANGE_VERBS})\b", re.IGNORECASE
)


class Deeds(Data, frozen=True):
    """What was in fact done in a turn. `commands` are those that ran, with their exit codes, in their order."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # files the request names that do not exist
    commands: tuple[tuple[str, int], ...] = ()
    last_failed: str = ""  # what the last step said, when it failed


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
    """Sentences about what was asked and has not happened; none when nothing of the kind is plain."""
    facts: list[str] = []
    names = {name.rsplit("/", 1)[-1] for name in deeds.changed}
    wanted = find_wanted_files(request)
    for name in wanted:
        if name.rsplit("/", 1)[-1] not in names:
            known = name in existing or any(path.endswith(f"/{name}") for path in existing)
            facts.append(f"{name} has not been changed." if known else f"{name} does not exist yet.")
    if not wanted and asks_for_change(request) and not deeds.changed and not _changed_by_command(deeds):
        facts.append("No file has been changed.")
    return facts + _find_unrun(request, deeds)


def _changed_by_command(deeds: Deeds) -> bool:
    return any(
        code == 0 and re.match(r"\s*(?:mv|rm|cp|mkdir|git|sed|touch|rmdir|tee)\b", line)
        for line, code in deeds.commands
    )


def _find_unrun(request: str, deeds: Deeds) -> list[str]:
    ran = [line for line, _ in deeds.commands]
    facts = []
    for command in find_wanted_commands(request):
        key = next((word for word in reversed(command.split()) if "." in word), command)
        if not any(key in line for line in ran):
            facts.append(f"{command} has not been run.")
    if not ran and not facts and _RUN_IT.search(request):
        facts.append("Nothing has been run.")
    return facts


def describe_unfinished(facts: Sequence[str]) -> str:
    return " ".join(facts)

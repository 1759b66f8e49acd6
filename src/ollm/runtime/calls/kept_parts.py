"""Parts of a file that stay although a small model's block leaves them out or changes them by the way. Pure."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import takewhile

from ollm.providers.text_calls.definitions import Definition, find_definitions, list_defined_names
from ollm.runtime.calls.block_checks import CODE, REMOVES

MAX_RESTORED_SHARE = 0.5  # of a file's definitions: a block that lacks more is meant in another way
_ADDS = re.compile(r"\b(?:add|append|insert|another|one more)\b", re.IGNORECASE)
_NOTHING_ELSE = re.compile(
    r"\b(?:nothing|anything)\s+else\b|\b(?:everything|all)\s+else\b|\bthe\s+rest\b.*\b(?:as\s+it\s+is|alone|unchanged)\b|"
    r"\bonly\s+(?:change|touch|edit|modify)\b",
    re.IGNORECASE,
)

_PLACED = re.compile(
    r"(?<!\w)(?P<mark>['\"`])(?P<new>[^'\"`\n]+)(?P=mark)[^.;\n]*?\b(?:above|before)\s+(?:the\s+)?"
    r"(?:(?:line|section|heading|entry|function|class)\s+)?['\"`]?(?P<anchor>[\w#][\w.#-]*\w)",
    re.IGNORECASE,
)


def restore_lost_parts(path: str, before: str, after: str, request: str) -> str:
    """The file as a block leaves it, with the functions and methods that it forgot: nobody wanted them gone."""
    if not before or not path.endswith(CODE) or REMOVES.search(request):
        return after
    known = find_definitions(before.splitlines())
    left = list_defined_names(after)
    lost = [found for found in known if found.name not in left and not re.search(rf"\b{found.name}\b", request)]
    if not lost or (len(lost) > MAX_RESTORED_SHARE * len(known) and not _ADDS.search(request)):
        return after
    restored = after
    for found in lost:
        restored = _put_back(found, known, restored)
    return restored if _parses(path, restored) else after


def _put_back(lost: Definition, known: list[Definition], text: str) -> str:
    """Behind the definition that came before it, as deep as it; else before the next one; else first."""
    lines = text.splitlines()
    there = {(found.name, found.indent): found for found in find_definitions(lines)}
    beside = [found for found in known if found.indent == lost.indent and (found.name, found.indent) in there]
    before = [found for found in beside if found.end <= lost.start]
    gap = [""] if lost.indent else ["", ""]
    if before:
        place = there[before[-1].name, lost.indent].end
        return "\n".join((*lines[:place], *gap, lost.text, *lines[place:], ""))
    if beside:
        place = there[beside[0].name, lost.indent].start
        return "\n".join((*lines[:place], lost.text, *gap, *lines[place:], ""))
    first = next((found.start for found in find_definitions(lines) if found.indent == lost.indent == 0), None)
    return text if first is None else "\n".join((*lines[:first], lost.text, *gap, *lines[first:], ""))


def _parses(path: str, text: str) -> bool:
    if not path.endswith(".py"):
        return True
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def keep_decorators(path: str, before: str, after: str, request: str) -> str:
    """The file as a block leaves it, with the decorators of functions and classes that it wrote again without them:
    their heads are as they were, and nobody spoke of decorators."""
    if not before or not path.endswith(".py") or re.search(r"@|\bdecorat", request, re.IGNORECASE):
        return after
    old, lines = _list_single(before), after.splitlines()
    for name, found in reversed(_list_single(after).items()):
        decorators, head = _split_head(old[name].text) if name in old else ([], "")
        there, new_head = _split_head(found.text)
        roots = re.findall(r"@(\w+)", "\n".join(decorators))
        spoken = any(re.search(rf"\b{root}\b", request) for root in roots)
        known = all(re.search(rf"\b{root}\b", after) for root in roots if not hasattr(builtins, root))
        if decorators and not there and head == new_head and known and not spoken:
            lines[found.start : found.start] = decorators
    kept = "".join(f"{line}\n" for line in lines)
    return kept if kept != after and lines != after.splitlines() and _parses(path, kept) else after


def _list_single(text: str) -> dict[tuple[str, int], Definition]:
    """Definitions whose name is there once at their depth, in their order."""
    found = find_definitions(text.splitlines())
    count = Counter((one.name, one.indent) for one in found)
    return {(one.name, one.indent): one for one in found if count[one.name, one.indent] == 1}


def _split_head(text: str) -> tuple[list[str], str]:
    """The decorators of a definition, and the line behind them."""
    lines = text.split("\n")
    decorators = list(takewhile(lambda line: line.lstrip().startswith("@"), lines))
    return decorators, lines[len(decorators)]


def move_above(before: str, after: str, request: str) -> str:
    """The file as a block leaves it, but with new lines above the one that they are to be above of."""
    found = _PLACED.search(request)
    if found is None or found["new"] in before or found["anchor"] not in before or found["new"] not in after:
        return after
    old, new = before.splitlines(), after.splitlines()
    changes = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    place = next(number for number, line in enumerate(old) if found["anchor"] in line)
    if len(changes) != 1 or changes[0][0] != "insert" or changes[0][1] <= place:
        return after
    added = new[changes[0][3] : changes[0][4]]
    while added and not added[0].strip():
        added.pop(0)
    while added and not added[-1].strip():
        added.pop()
    gap = [""] if place and not old[place - 1].strip() else []
    return "".join(f"{line}\n" for line in (*old[:place], *added, *gap, *old[place:]))


def keep_other_parts(before: str, after: str, request: str) -> str:
    """The file as a block leaves it, but with all other functions and classes as they were, where the request names one
    of them and says that nothing else is to change."""
    if not before or not _NOTHING_ELSE.search(request):
        return after
    outer = _list_outer(before)
    named = [found for found in find_definitions(before.splitlines()) if re.search(rf"\b{found.name}\b", request)]
    if len({found.name for found in named}) != 1:
        return after
    for found in outer:
        concerned = found.start <= named[0].start < found.end
        new = next((other for other in _list_outer(after) if other.name == found.name), None)
        if not concerned and new and new.text != found.text:
            after = after.replace(new.text, found.text, 1)
    return after


def _list_outer(text: str) -> list[Definition]:
    return [found for found in find_definitions(text.splitlines()) if found.indent == 0]

"""Blocks that a small model is asked for again before anything is changed: those after which a file would not parse, or
would lack what nobody wanted gone. Where one part alone is to change, the others stay as they are."""

from __future__ import annotations

import ast
import re
from collections import Counter

from ollm.providers.text_calls.definitions import Definition, find_definitions, list_defined_names
from ollm.runtime.calls.test_runs import is_constant

MAX_REFUSALS = 2  # of one file in a turn; then the block is taken as it is, and what is wrong with it is said
MIN_LOST_LINES = 2  # more lines than came, from which a page or a file of settings seems cut
_REMOVES = re.compile(
    r"\b(?:remov|delet|drop|clear|empt|clean|strip|trim|shorten|simplif|refactor|rewrit|replac|merg|join|combin|mov|extract|split|"
    r"filter|dedup|duplicat|rid|only|without|except|instead|unused|uncomment|reduc|convert|translat|truncat|undo|revert|restor|summar|"
    r"no longer|not? need|keep|overwrit|unif|inlin|rename)",
    re.IGNORECASE,
)
_NOTHING_ELSE = re.compile(
    r"\b(?:nothing|anything)\s+else\b|\b(?:everything|all)\s+else\b|\bthe\s+rest\b.*\b(?:as\s+it\s+is|alone|unchanged)\b|"
    r"\bonly\s+(?:change|touch|edit|modify)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\b(?:add|append|insert|duplicate|another|more|new)\b", re.IGNORECASE)
_SETTING = re.compile(r"^([A-Za-z_][\w.-]*)\s*=")
_CODE = (".py", ".pyi", ".js", ".ts", ".jsx", ".tsx", ".go", ".rs", ".java", ".c", ".cpp", ".h", ".rb", ".php", ".sh")


class BlockChecks:
    """One for each turn."""

    def __init__(self) -> None:
        self._refused: Counter[str] = Counter()

    def find_damage(self, path: str, before: str | None, after: str, request: str) -> str:
        """Why a block is not taken; nothing where it does no harm, or was asked for often enough."""
        from ollm.providers.text_calls.block_edits import BREAKS_FILE
        from ollm.services.syntax_check import describe_lost_syntax

        if self._refused[path] >= MAX_REFUSALS:
            return ""
        told = describe_lost_syntax(path, before or None, after) or find_loss(path, before or "", after, request)
        self._refused[path] += bool(told)
        return BREAKS_FILE.format(told.rstrip(".")) if told else ""


def find_loss(path: str, before: str, after: str, request: str) -> str:
    """What a file would lose that the request does not mention: lines, a definition or the body of one."""
    if not before.strip() or _REMOVES.search(request):
        return ""
    if path.endswith(_CODE):
        gone = [
            name
            for name in list_defined_names(before) - list_defined_names(after)
            if not re.search(rf"\b{name}\b", request)
        ]
        hollow = _list_hollow(path, after) - _list_hollow(path, before)
        lost = sorted({*gone, *(hollow & list_defined_names(before))})
        return f"{path} loses {', '.join(lost)}" if lost else ""
    lost_lines = _count_lines(before) - _count_lines(after)
    return f"{path} loses {lost_lines} lines" if lost_lines >= MIN_LOST_LINES else ""


def merge_doubled(path: str, before: str, after: str, request: str) -> str:
    """The file as a block leaves it, but with a row of a table, or a setting, that came a second time in the place of
    the first: it was to change."""
    if not before or _ADDS.search(request):
        return after
    known, lines = before.splitlines(), after.splitlines()
    old, names = Counter(_name_lines(path, known)), _name_lines(path, lines)
    for name in [name for name, count in Counter(names).items() if name and count == 2 and old[name] == 1]:
        first, second = (place for place, named in enumerate(names) if named == name)
        if lines[first] in known and lines[second] not in known:
            lines[first] = lines.pop(second)
            names.pop(second)
    return "".join(f"{line}\n" for line in lines) if lines != after.splitlines() else after


def _name_lines(path: str, lines: list[str]) -> list[str]:
    """What each line is about: the first column of a table, a setting with its section; empty for other lines."""
    if path.endswith(".csv"):
        return [line.partition(",")[0].strip() for line in lines]
    if not path.endswith((".env", ".ini", ".cfg", ".toml", ".properties", ".conf")):
        return [""] * len(lines)
    section, names = "", []
    for line in lines:
        section = line.strip() if line.startswith("[") else section
        found = _SETTING.match(line)
        names.append(f"{section} {found[1]}" if found else "")
    return names


def _count_lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _list_hollow(path: str, text: str) -> set[str]:
    """Functions of which nothing is left but what describes them."""
    if not path.endswith(".py"):
        return set()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {made.name for made in functions if len(made.body) == 1 and is_constant(made.body[0])}


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
            after = after.replace(new.text, found.text)
    return after


def _list_outer(text: str) -> list[Definition]:
    return [found for found in find_definitions(text.splitlines()) if found.indent == 0]

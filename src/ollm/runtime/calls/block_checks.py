"""Blocks that a small model is asked for again before anything is changed: those after which a file would not parse, or
would lack what nobody wanted gone."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter

from ollm.providers.text_calls.definitions import list_defined_names
from ollm.runtime.calls.test_runs import is_constant

MAX_REFUSALS = 2  # of one file in a turn; then the block is taken as it is, and what is wrong with it is said
DATA = (".json", ".toml")  # never broken: nobody mends them from what is left
MIN_LOST_LINES = 2  # more lines than came, from which a page or a file of settings seems cut
REMOVES = re.compile(
    r"\b(?:remov|delet|drop|clear|empt|clean|strip|trim|shorten|simplif|refactor|rewrit|replac|merg|join|combin|mov|extract|split|"
    r"filter|dedup|duplicat|rid|only|without|except|instead|unused|uncomment|reduc|convert|translat|truncat|undo|revert|restor|summar|"
    r"no longer|not? need|keep|overwrit|unif|inlin|rename)",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:chang\w+|updat\w+|correct\w*|fix\w*|turn\w*|swap\w*|translat\w+|set|mak\w+|says?|reads?|becom\w+|to)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)(['\"`])((?:(?!\1).)+)\1(?!\w)")
_ADDS = re.compile(
    r"\b(?:add|append|insert|put|record|enter|include|duplicate|another|second|extra|more|new)\b", re.IGNORECASE
)
_OPTION = re.compile(r"\b(?:add_argument|option)\(\s*(?:['\"]-\w['\"],\s*)?['\"](--[\w-]+)['\"]")
_SENTENCE = re.compile(r"[A-Z][\w'’-]*(?:,? [\w'’.`-]+){2,}[.!]")
_SETTING = re.compile(r"^([A-Za-z_][\w.-]*)\s*=")
NO_CODE = "The block for {} is a sentence and no content for it: nothing was changed."
MAX_PROSE_LINES = 3
CODE = (".py", ".pyi", ".js", ".ts", ".jsx", ".tsx", ".go", ".rs", ".java", ".c", ".cpp", ".h", ".rb", ".php", ".sh")
READ = (
    *CODE,
    *DATA,
    ".css",
    ".scss",
    ".html",
    ".xml",
    ".yaml",
    ".yml",
    ".ini",
    ".cfg",
    ".conf",
    ".csv",
    ".env",
    ".sql",
)


class BlockChecks:
    """One for each turn."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}

    def find_damage(self, path: str, before: str | None, after: str, request: str, *, made: bool = False) -> str:
        """Why a block is not taken; nothing where it does no harm, or was asked for often enough. `made`: the file came
        in this turn."""
        from ollm.providers.text_calls.block_edits import BREAKS_FILE
        from ollm.runtime.calls.named_entries import describe_misplaced
        from ollm.services.request_reading.asked_tests import describe_missing_test
        from ollm.services.syntax_check import describe_lost_syntax

        if before and before.strip() and _is_prose(path, after) and not _is_prose(path, before):
            return NO_CODE.format(path)
        lost = describe_lost_syntax(path, before or None, after)
        if self._refused.get(path, 0) >= MAX_REFUSALS:
            return BREAKS_FILE.format(lost.rstrip(".")) if lost and path.endswith(DATA) else ""
        told = lost or find_loss(path, before or "", after, request)
        told = told or ("" if made else describe_missing_test(path, before or "", after, request))
        told = told or describe_misplaced(path, before or "", after, request)
        self._refused[path] = self._refused.get(path, 0) + bool(told)
        return BREAKS_FILE.format(told.rstrip(".")) if told else ""


def _is_prose(path: str, text: str) -> bool:
    """Whether a file that is read by a program would hold nothing but a sentence or two."""
    lines = [line for line in text.splitlines() if line.strip()]
    return 0 < len(lines) <= MAX_PROSE_LINES and path.endswith(READ) and all(map(_SENTENCE.fullmatch, lines))


def find_loss(path: str, before: str, after: str, request: str) -> str:
    """What a file would lose that nobody wanted gone: lines, a definition or the body of one, a text in quotes."""
    if not before.strip() or REMOVES.search(request):
        return ""
    quoted = () if _CHANGES.search(request) else (found[2] for found in _QUOTED.finditer(request))
    if dropped := next((text for text in quoted if text in before and text not in after), ""):
        return f"{path} loses '{dropped}'"
    if path.endswith(CODE):
        gone = [
            name
            for name in list_defined_names(before) - list_defined_names(after)
            if not re.search(rf"\b{name}\b", request)
        ]
        hollow = _list_hollow(path, after) - _list_hollow(path, before)
        lost = sorted({*gone, *(hollow & list_defined_names(before))})
        return f"{path} loses {', '.join(lost)}" if lost else _find_lost_option(path, before, after, request)
    lost_lines = _count_lines(before) - _count_lines(after)
    return f"{path} loses {lost_lines} lines" if lost_lines >= MIN_LOST_LINES else ""


def _find_lost_option(path: str, before: str, after: str, request: str) -> str:
    """An option of the command line that nobody spoke of."""
    options, left = (set(_OPTION.findall(text)) for text in (before, after))
    gone = sorted(name for name in options - left if not re.search(rf"(?<!\w){name.lstrip('-')}(?!\w)", request))
    line = next((line.strip() for line in before.splitlines() if gone and re.search(rf"['\"]{gone[0]}['\"]", line)), "")
    return f"{path} loses the option {gone[0]}: {line}" if gone and left else ""


def becomes_json(path: str, before: str, after: str) -> bool:
    """Whether a file of JSON had something else in it, and has JSON now."""
    return path.endswith(".json") and _is_json(after) and not _is_json(before)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


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

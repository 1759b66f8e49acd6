"""Definitions by indentation and patterns: for languages without a grammar, and where none is installed."""

from __future__ import annotations

import re
from itertools import pairwise

from ollm.services.code_map.definition import CodeDefinition, shorten_signature
from ollm.services.code_map.languages import get_suffix

MAX_LINES = 100_000
MAX_LINE_CHARS = 400
MAX_HEADERS = 400
TAB_COLUMNS = 4
_WORDS_BEFORE = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|sealed|open|override|virtual|async|"
    r"pub(?:\([a-z: ]+\))?|unsafe|extern|inline|const|partial|data|case|implicit|lazy|suspend|declare|local)\s+)*"
)
_KEYWORDS = re.compile(
    rf"^{_WORDS_BEFORE}(?P<kind>class|def|defp|defmodule|defmacro|function|func|fun|fn|sub|proc|struct|enum|union|interface|"
    r"trait|impl|module|mod|namespace|package|protocol|extension|object|record|type|message|service|macro|macro_rules!|"
    r"contract|task|resource)(?:\s+|(?=<))(?:<[^>]{0,80}>\s*)?(?:\([^)]{0,80}\)\s*)?(?P<name>[A-Za-z_$][\w$.:!?'-]*)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"^{_WORDS_BEFORE}(?:let|var|const|val)?\s*(?P<name>[A-Za-z_$][\w$]*)\s*[:=]\s*(?:async\s*)?"
    r"(?:function\b|\([^)]{0,200}\)\s*(?::[^=]{1,80})?=>)"
)
_C_LIKE = re.compile(
    r"^(?:[A-Za-z_][\w:<>,*&\[\]?]*\s+){1,5}[*&]*(?P<name>[A-Za-z_~][\w:~]*)\s*\([^;]{0,300}\)?\s*[^;=]{0,60}\{?\s*$"
)
_METHOD = re.compile(
    r"^(?:@\w+\s+)*(?:(?P<marked>public|private|protected|internal|static|abstract|final|override|virtual|async|sealed|"
    r"extern|synchronized|default|unsafe|get|set)\s+)*(?:<[^>]{0,80}>\s*)?(?:[A-Za-z_][\w.]*(?:<[^()]{0,120}>)?[\[\]?&*]*\s+)?"
    r"(?P<name>[A-Za-z_$#~][\w$]*)\s*(?:<[^()]{0,80}>)?\("
)
_OPENED = re.compile(r"\)\s*\{")
_SHELL = re.compile(r"^(?P<name>[\w.:-]+)\s*\(\)\s*\{?")
_HEADING = re.compile(r"^(?P<marks>#{1,6})\s+(?P<name>.+?)\s*#*$")
_SECTION = re.compile(r"^\[+\s*(?P<name>[^\]]+?)\s*\]+")
_KEY = re.compile(r"^(?P<name>[A-Za-z_][\w.-]*)\s*:(?:\s|$)")
_TARGET = re.compile(r"^(?P<name>[A-Za-z0-9_./%-]+)\s*:(?!=)")
_SQL = re.compile(
    r"^create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?P<kind>table|view|function|procedure|index|trigger|type)\s+"
    r"(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`]+)",
    re.IGNORECASE,
)
_NOT_NAMES = frozenset(
    "if for while switch catch return else do when elif until with using lock new throw await yield case foreach try "
    "not assert print import from del raise super this base typeof sizeof delete go defer function".split()
)
_METHOD_SUFFIXES = frozenset("java cs dart groovy js jsx mjs cjs ts mts cts tsx vue svelte cpp cc hpp h cxx".split())
_CLOSING_WORDS = frozenset({"end", "fi", "done"})
_BY_SUFFIX: dict[str, tuple[re.Pattern[str], ...]] = {
    **dict.fromkeys(("md", "markdown", "rst", "adoc"), (_HEADING,)),
    **dict.fromkeys(("toml", "ini", "cfg"), (_SECTION,)),
    **dict.fromkeys(("yaml", "yml"), (_KEY,)),
    "sql": (_SQL,),
    "mk": (_TARGET,),
    **dict.fromkeys(("json", "txt", "html", "css", "scss", "sass", "less"), ()),
}
_SHELL_SUFFIXES = frozenset({"sh", "bash", "zsh", "ksh", "fish", ""})


def find_definitions(name: str, text: str) -> list[CodeDefinition]:
    """What a text defines as far as patterns can tell; else the lines that others are indented below."""
    lines = text.split("\n")[:MAX_LINES]
    patterns = _choose_patterns(name)
    found = _collect(lines, patterns)
    if not found and patterns and _HEADING not in patterns:
        found = _collect_headers(lines)
    return _add_scopes(found, lines, flat=_HEADING in patterns or _SECTION in patterns)


def _choose_patterns(name: str) -> tuple[re.Pattern[str], ...]:
    suffix, base = get_suffix(name), name.rpartition("/")[2].lower()
    if base in ("makefile", "justfile"):
        return (_TARGET,)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if suffix in _METHOD_SUFFIXES:
        return (_KEYWORDS, _ASSIGNED, _C_LIKE, _METHOD)
    if suffix in ("py", "pyi", "pyw"):
        return (_KEYWORDS,)
    return (_KEYWORDS, _ASSIGNED, _SHELL) if suffix in _SHELL_SUFFIXES else (_KEYWORDS, _ASSIGNED, _C_LIKE)


class _Header:
    """A line that defines something, not yet given its place among the others."""

    def __init__(self, row: int, indent: int, kind: str, name: str) -> None:
        self.row = row
        self.indent = indent
        self.kind = kind
        self.name = name


def _collect(lines: list[str], patterns: tuple[re.Pattern[str], ...]) -> list[_Header]:
    found = []
    fenced = False
    for row, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("```") and _HEADING in patterns:
            fenced = not fenced
        if not stripped or len(line) > MAX_LINE_CHARS or fenced or stripped.startswith(("//", "*", "/*", '"', "'")):
            continue
        indent = measure_indent(line)
        if header := _match_line(row, stripped, indent, patterns):
            found.append(header)
    return found


def _match_line(row: int, stripped: str, indent: int, patterns: tuple[re.Pattern[str], ...]) -> _Header | None:
    for pattern in patterns:
        if pattern in (_C_LIKE, _TARGET, _KEY) and indent:
            continue
        match = pattern.match(stripped)
        if match is None or (pattern in (_C_LIKE, _METHOD) and not _is_function(match, stripped, indent)):
            continue
        groups = match.groupdict()
        if "marks" in groups:
            return _Header(row, len(groups["marks"]), "heading", groups["name"])
        kind = (
            groups.get("kind") or ("function" if pattern in (_ASSIGNED, _C_LIKE, _METHOD, _SHELL) else "section")
        ).lower()
        return _Header(row, indent, kind, groups["name"].strip("\"`'").rstrip(":"))
    return None


def _is_function(match: re.Match[str], line: str, indent: int) -> bool:
    """Whether what looks like a function is one, and not a call, a condition or a loop."""
    first = re.split(r"\W", line)[0]
    if first in _NOT_NAMES or match["name"] in _NOT_NAMES or "=" in line.partition("(")[0]:
        return False
    if match.re is not _METHOD:
        return True
    return bool(indent and (match["marked"] or line.endswith("{") or _OPENED.search(line)))


def _collect_headers(lines: list[str]) -> list[_Header]:
    """Lines at the margin with indented ones below."""
    found = []
    filled = [row for row, line in enumerate(lines) if line.strip()]
    for row, following in pairwise(filled):
        line = lines[row]
        if not measure_indent(line) and measure_indent(lines[following]) and line.strip()[:1].isalnum():
            found.append(_Header(row, 0, "block", " ".join(line.split()[:4])[:60]))
    return found[:MAX_HEADERS]


def _add_scopes(headers: list[_Header], lines: list[str], *, flat: bool) -> list[CodeDefinition]:
    """Give each what it is in and where it ends."""
    found = list[CodeDefinition]()
    outer: list[tuple[_Header, int]] = []  # with the last line of each
    for header, following in zip(headers, _find_following_rows(headers, len(lines)), strict=True):
        while outer and outer[-1][1] <= header.row:
            outer.pop()
        scope = ".".join(open_header.name for open_header, _ in outer) if not flat else ""
        last = following if flat else _find_block_end(lines, header, following)
        signature = shorten_signature(lines[header.row], header.kind)
        if header.kind == "heading":
            signature = f"{'  ' * (header.indent - 1)}{header.name}"
        found.append(
            CodeDefinition(header.kind, header.name, scope, signature, header.row + 1, header.row + 1, max(last, 1))
        )
        outer.append((header, last))
    return found


def _find_following_rows(headers: list[_Header], end: int) -> list[int]:
    """For each header the row of the next one that is not inside it."""
    rows = [end] * len(headers)
    later: list[_Header] = []  # those that nothing nearer hides
    for number in range(len(headers) - 1, -1, -1):
        while later and later[-1].indent > headers[number].indent:
            later.pop()
        rows[number] = later[-1].row if later else end
        later.append(headers[number])
    return rows


def _find_block_end(lines: list[str], header: _Header, following: int) -> int:
    """The last line of what is indented below a header, with the bracket that closes it."""
    last = header.row
    for row in range(header.row + 1, min(following, len(lines))):
        line = lines[row].strip()
        if not line:
            continue
        indent = measure_indent(lines[row])
        if indent <= header.indent:
            if indent < header.indent or not (line[0] in ")]}{" or line.lower().rstrip(";.") in _CLOSING_WORDS):
                break
            last = row
            if (line[0] == "}" or line[0].isalpha()) and not line.endswith("{"):
                break
            continue
        last = row
    return last + 1


def measure_indent(line: str) -> int:
    blank = line[: len(line) - len(line.lstrip())]
    return len(blank) + (TAB_COLUMNS - 1) * blank.count("\t")

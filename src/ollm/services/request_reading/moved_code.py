"""The command that takes functions, classes and constants from one module of Python to another and leaves every module
working, where a request says all of it. Empty where anything is in doubt. Pure but for the reading.

A small model that is to do this imports what it should move, or loses one half of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import takewhile

from ollm.domain.struct import Data
from ollm.services.request_reading.asked_places import MovedNames, is_move_command
from ollm.services.request_reading.module_paths import MAX_READ_MODULES, find_users, name_module, reaches
from ollm.services.request_reading.plain_words import CHANGE_VERBS, forbids_change, is_kept
from ollm.services.request_reading.python_modules import (
    BUILTINS,
    LOOKUPS,
    PLACE_NAMES,
    Imported,
    Lines,
    Module,
    find_globals,
    read_module,
    sets_global,
)
from ollm.services.request_reading.replaced_names import escape_replacement
from ollm.services.request_reading.reservations import KEEPS, is_reserved

Read = Callable[[str], str | None]
MAX_COMMAND_CHARS = 1_500
_FILE = r"`?(?P<{}>[\w./-]*\w\.py)`?(?![\w/])"
_NAME = r"`?[A-Za-z_]\w*(?:\([^)\n]*\))?`?"
_ALSO = r"(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:(?:the|its|their)\s+)?(?:(?:helper|function|class|constant)\s+){0,2}"
_NAMES = rf"(?P<names>{_NAME}(?:{_ALSO}{_NAME})*)"
_KIND = (
    r"(?:(?:the|both|these|its|two|three)\s+){0,2}(?:helper\s+)?(?:(?:functions?|class(?:es)?|helpers?|constants?)\s+)?"
)
_VERB = r"(?:move|extract|pull|take|put|factor|split|relocate|transfer|shift)\s+(?:out\s+)?"
_INTO = r"(?:out\s+)?(?:over\s+)?(?:in)?to\s+|in(?:side)?\s+"
_NEW = (
    r"(?:(?:a|an|the|its|their)\s+)?(?:own\s+)?(?:new\s+|separate\s+|other\s+)?(?:(?:file|module)\s+)?"
    r"(?:called\s+|named\s+)?"
)
_TARGET = rf"(?:{_INTO}){_NEW}{_FILE.format('target')}(?!\s+as\b)"
_FROM = rf"\s+(?:(?:out\s+of|from|in)\s+{_FILE.format('source')}\s+(?:and\s+(?:put|move)\s+(?:it|them)\s+)?)?"
_START = (
    r"(?:^|[.;:!]\s+|\n)\s*(?:(?:please|now|let's|let\s+us|we\s+should|"
    r"(?:i|we)(?:'d|\s+would)?\s+(?:like|want|need)\s+to)\s+)?"
)
_MISPLACED = r"\s+(?:is|are|stands?|lives?|sits?)\b[^.,;\n]*[.,;]\s+(?:please\s+)?"
_WANTED = rf"(?:i|we)\s+(?:want|need)\s+{_KIND}{_NAMES}\s+"
_AWAY = rf"(?:moved\s+(?:(?:out\s+of|from)\s+{_FILE.format('source')}\s+)?)"
_INSTEAD = r"\s*,?\s*(?:and\s+)?(?:not\s+in|instead\s+of|rather\s+than)\b"
_HOME = rf"(?:(?:in|from)\s+|(?:split|refactor|clean\s+up|tidy\s+up)\s+(?:up\s+)?){_FILE.format('source')}\s*[,:;]?\s+"
_MADE = rf"(?:create|make|add)\s+{_NEW}{_FILE.format('target')}(?:\s+and|,)\s+"
_THERE = rf"(?:\s+(?:out\s+of|from)\s+{_FILE.format('source')})?\s+(?:there|(?:in)?to\s+it|in\s+it)\b"
_BELONGS = (
    r"\s+(?:belongs?|should\s+(?:be|live|go|move|stand)|(?:has|have)\s+to\s+(?:go|move|be)|must\s+(?:go|move|be))\s+"
    rf"(?:moved\s+)?(?:from\s+{_FILE.format('source')}\s+)?"
)
_WORDINGS = tuple(
    re.compile(_START + wording, re.IGNORECASE)
    for wording in (
        rf"{_VERB}{_KIND}{_NAMES}{_FROM}{_TARGET}",
        rf"{_HOME}{_VERB}{_KIND}{_NAMES}\s+{_TARGET}",
        rf"{_MADE}{_VERB}{_KIND}{_NAMES}{_THERE}",
        rf"{_KIND}{_NAMES}{_BELONGS}{_TARGET}",
        rf"{_KIND}{_NAMES}{_MISPLACED}(?:put|move)\s+(?:it|them)\s+{_TARGET}",
        rf"{_WANTED}{_AWAY}{_TARGET}",
        rf"{_WANTED}{_TARGET}{_INSTEAD}",
    )
)
_NO_NAME = re.compile(r"\([^)]*\)|\b(?:and|the|its|their|helper|function|class|constant)\b(?=\s)", re.IGNORECASE)
_IMPORTED = re.compile(
    rf"\bimport\s+(?:them|it|both)\b(?:\s+(?:back|again|from\s+there))?(?:\s+(?:in|into|to)\s+{_FILE.format('user')})?",
    re.IGNORECASE,
)
_ORDER = re.compile(
    rf"\b(?:{'|'.join(CHANGE_VERBS)}|run|execute|start|write|download|install|if|when|unless|don't|not)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:copy|copies|wrappers?|alias(?:es)?|deprecat\w*|shim|stub|duplicates?|methods?)\b|"
    rf"{KEEPS}|"
    r"\b(?:don't|do\s+not|without|never|no)\s+(?:\w+\s+)?(?:re-?)?(?:import|export)",
    re.IGNORECASE,
)


class _Plan(Data, frozen=True):
    """What moves, as lines of the source, and the imports that go with it."""

    moved: MovedNames
    source: Module
    parts: tuple[Lines, ...]
    brought: tuple[Imported, ...]


def find_move_command(request: str, names: Sequence[str], read: Read) -> str:
    """The command for the move that a request asks for first; `names` are the project's files."""
    moved = _find_move(request, names, read)
    if moved is None or is_kept(moved.source, request) or is_kept(moved.target, request):
        return ""
    there = read(moved.target)
    source, target = read_module(read(moved.source) or ""), read_module(there or "")
    if (moved.target in names) != (there is not None):
        return ""  # it may not be read, or is ignored
    link = name_module(moved.source, moved.target, names, read)
    if source is None or target is None or not link or not set(moved.names) <= set(source.parts):
        return ""
    plan = _make_plan(moved, source)
    if plan is None or (moved.target in names and not _fits(plan, target, names, read)):
        return ""
    rest = source.cut(plan.parts)
    if not _is_left(rest) or any(sets_global("\n".join(source.lines), name) for name in moved.names):
        return ""
    only = forbids_change(request)
    users = find_users(moved, names, read, may_change=lambda path: not only and not is_kept(path, request))
    said = _IMPORTED.search(request)
    all_of_them = said is not None and said["user"] in (None, moved.source)
    used = find_globals(rest) | users.left
    kept = [name for name in moved.names if all_of_them or name in used or used & LOOKUPS]
    steps = [_write_target(plan, target, exists=moved.target in names), _cut_source(plan, link, kept)]
    command = " && ".join([*steps, *users.changes])
    return command if len(command) <= MAX_COMMAND_CHARS and is_move_command(command) else ""


def _find_move(request: str, names: Sequence[str], read: Read) -> MovedNames | None:
    """Names, source and target, where no other order comes before; the source may be left to be the only module that
    has them all."""
    if is_reserved(request) or _DOUBT.search(request):
        return None
    for pattern in _WORDINGS:
        found = pattern.search(request)
        if found is None or _ORDER.search(request[: found.start()]):
            continue
        sentence = re.match(r"(?:[^.?!\n]|[.](?=\w))*", request[found.end() :])
        if sentence and request[found.end() + sentence.end() :].startswith("?"):
            return None
        listed = _NO_NAME.sub(" ", found["names"])
        wanted = tuple(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", listed)))
        source = found.groupdict().get("source") or ""
        if not source and _is_plain_name(found[0], wanted):
            source = _find_only_home(wanted, names, read)
        if source in names and source != found["target"]:
            return MovedNames(names=wanted, source=source, target=found["target"])
    return None


def _is_plain_name(said: str, wanted: Sequence[str]) -> bool:
    """Whether these are names of code for sure, and no words of the language."""
    marked = re.search(r"`|\(|\b(?:functions?|class(?:es)?|helpers?|constants?)\b", said)
    return marked is not None or all(re.search(r"[_\dA-Z]", name) for name in wanted)


def _find_only_home(wanted: tuple[str, ...], names: Sequence[str], read: Read) -> str:
    homes: list[str] = []
    paths = [path for path in names if path.endswith(".py")]
    for path in paths if len(paths) <= MAX_READ_MODULES else ():
        module = read_module(read(path) or "")
        homes += [path] if module and set(wanted) & (set(module.parts) | module.others) else []
    return homes[0] if len(homes) == 1 else ""


def _is_left(rest: str) -> bool:
    """Whether more than imports is left of a module."""
    module = read_module(rest)
    return module is not None and any(line.strip() for line in module.lines[module.head :])


def _make_plan(moved: MovedNames, source: Module) -> _Plan | None:
    """None where the moved code needs what stays, for then each module would need the other."""
    spans = tuple(sorted(source.parts[name] for name in moved.names))
    needed = find_globals(source.copy(spans)) - set(moved.names)
    brought = [found for found in source.imports if needed & set(found.names) or found.module == "__future__"]
    known = {name for found in brought for name in found.names} - source.others
    if needed & PLACE_NAMES or needed - known - BUILTINS:
        return None
    away = "/" in moved.source + moved.target and moved.source.rpartition("/")[0] != moved.target.rpartition("/")[0]
    if away and any(found.module.startswith(".") for found in brought):
        return None
    return _Plan(moved=moved, source=source, parts=spans, brought=tuple(brought))


def _fits(plan: _Plan, target: Module, names: Sequence[str], read: Read) -> bool:
    """Whether a module that is there takes the parts: it has none of their names for something else, and does not need
    the module that they come from."""
    known = {name for found in target.imports for name in found.names} | set(target.parts) | target.others
    if known & set(plan.moved.names) or reaches(plan.moved.target, plan.moved.source, names, read):
        return False
    lacking = _list_lacking(plan, target)
    return all(not set(found.names) & known and found.module != "__future__" for found in lacking)


def _list_lacking(plan: _Plan, target: Module) -> list[Imported]:
    """Imports that the target does not have in the same words."""
    there = {target.copy([found.lines]) for found in target.imports}
    return [found for found in plan.brought if plan.source.copy([found.lines]) not in there]


def _write_target(plan: _Plan, target: Module, *, exists: bool) -> str:
    source, path = shlex.quote(plan.moved.source), shlex.quote(plan.moved.target)
    if not exists:
        folder = plan.moved.target.rpartition("/")[0]
        made = f"mkdir -p {shlex.quote(folder)} && " if folder else ""
        spans = [*(found.lines for found in plan.brought), *plan.parts]
        return f"{made}sed -n '{_print_lines(plan, spans)}' {source} > {path}"
    lacking = _list_lacking(plan, target)
    added = [line for found in lacking for line in plan.source.copy([found.lines]).split("\n")]
    inserted = f"{_insert_lines(target, added)} " if added else ""
    printed = f"sed -n '{_print_lines(plan, plan.parts)}' {source}"
    printed = f"{printed} >> {path}" if _continues(plan, target) else f"{{ echo; echo; {printed}; }} >> {path}"
    return f"sed -i {inserted}-e '$a\\' {path} && {printed}"


def _continues(plan: _Plan, target: Module) -> bool:
    """Whether constants come behind others."""
    last = next((line for line in reversed(target.lines) if line.strip()), "")
    return set(plan.moved.names) <= plan.source.simple and re.match(r"\w+(?: *:[^=]+)? *=(?!=)", last) is not None


def _print_lines(plan: _Plan, spans: Sequence[Lines]) -> str:
    """sed's commands that print these lines with what belongs between them."""
    simple = {plan.source.parts[name] for name in plan.source.simple}
    imports = {found.lines for found in plan.brought}
    printed = []
    for place, (first, last) in enumerate(sorted(spans)):
        following = sorted(spans)[place + 1] if place + 1 < len(spans) else None
        plain = {(first, last), following} <= (imports | simple)
        alike = {(first, last), following} <= imports or {(first, last), following} <= simple
        gap = 0 if following is None or alike else 1 if plain else 2
        printed += [f"{first},{last}p"] if not gap else [f"{first},{last - 1}p"] if last > first else []
        printed += [f"{last}{{{'G;' * gap}p}}"] if gap else []
    return ";".join(printed)


def _cut_source(plan: _Plan, link: str, kept: Sequence[str]) -> str:
    """Without the parts and the blank lines behind them, with the import of what is still used."""
    cuts = [f"-e '{first},{last}d'" for first, last in _find_cuts(plan)]
    there = next((found for found in plan.source.imports if found.module == link and found.plain), None)
    if not kept:
        inserted = []
    elif there:
        inserted = [f"-e '{there.lines[0]}s/$/, {', '.join(kept)}/'"]
    else:
        inserted = [_insert_lines(plan.source, [f"from {link} import {', '.join(kept)}"])]
    return f"sed -i {' '.join([*inserted, *cuts])} {shlex.quote(plan.moved.source)}"


def _find_cuts(plan: _Plan) -> list[Lines]:
    """The lines of the parts, and of the blank lines on both sides of them the fewer."""
    lines = plan.source.lines
    cuts: list[Lines] = []
    for first, last in plan.parts:
        joined = cuts and not any(line.strip() for line in lines[cuts[-1][1] : first - 1])
        cuts = [*cuts[:-1], (cuts[-1][0], last)] if joined else [*cuts, (first, last)]
    found = []
    for first, last in cuts:
        before = len(list(takewhile(lambda line: not line.strip(), reversed(lines[: first - 1]))))
        after = len(list(takewhile(lambda line: not line.strip(), lines[last:])))
        earlier = before < first - 1 and (last + after == len(lines) or before < after)
        found.append((first - before, last) if earlier else (first, last + after))
    return found


def _insert_lines(module: Module, added: Sequence[str]) -> str:
    """sed's command that puts imports behind those of a module, behind its docstring, or at its top."""
    text = "\\n".join(line.replace("\\", "\\\\") for line in added)
    if module.has_imports:
        return f"-e {shlex.quote(f'{module.head}a {text}')}"
    if module.head:
        replacement = "\\n".join(map(escape_replacement, added))
        return f"-e {shlex.quote(f'{module.head}{{G;G;s/$/{replacement}/}}')}"
    top = f"{_find_top(module)}i {text}" + "\\n\\n"
    return f"-e {shlex.quote(top)}"


def _find_top(module: Module) -> int:
    """The first line behind comments that are about the whole file."""
    comments = len(list(takewhile(lambda line: line.startswith("#"), module.lines)))
    if comments < len(module.lines) - 1 and not module.lines[comments].strip():
        return comments + 2
    return 1 + len(list(takewhile(lambda line: re.match(r"#!|#.*coding[:=]", line), module.lines)))

"""The one line that is to be commented out, or in again, and the command for it. Pure: words in, commands out.

A small model comments out all lines that have the word, and with them the head of a function.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.plain_words import FILE_NAME, is_named_file
from ollm.services.request_reading.python_modules import parse_python
from ollm.services.request_reading.shown_files import list_shown_texts

_SIGNS = {
    "#": ("py", "sh", "bash", "yml", "yaml", "toml", "conf", "cfg", "ini", "rb", "env", "r", "pl", "tf", "mk"),
    "//": ("js", "ts", "jsx", "tsx", "mjs", "java", "c", "h", "cpp", "go", "rs", "kt", "swift", "scss", "php"),
    "--": ("sql", "lua"),
}
_ORDER = re.compile(
    rf"(?:^\s*(?:in\s+`?(?:{FILE_NAME})`?,?\s+)?|[.;:,]\s+|\b(?:and|then|please|now|to)\s+)"
    r"(?P<verb>comment\s+out|comment\s+in|uncomment|comment(?=\s.*?\sout\b))\s+"
    r"(?P<what>(?:[^.;\n]|\.(?=\w))+?)(?=,?\s+(?:and|then)\s+(?:run|tell|show|say|check|add|set|change|make|remove|write)\b|[.!]?\s*$|[.;]\s)",
    re.IGNORECASE,
)
_MANY = re.compile(
    r"\b(?:lines|all|every|each|both|calls|imports|(?<!that )(?<!which )prints|statements|"
    r"functions?|methods?|class|block|section|loop|everything|"
    r"tests?|not|except|but|or|and)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`(?P<code>[^`\n]+)`|\"(?P<double>[^\"\n]+)\"|(?<!\w)'(?P<single>[^\n]+)'(?!\w)")
_NUMBER = re.compile(r"\bline\s+(?:number\s+|no\.?\s*)?(?P<number>\d+)\b", re.IGNORECASE)
_CALL = re.compile(
    r"\b(?:calls?(?:\s+(?:to|of))?|invocation\s+of|runs|invokes)\s+(?:the\s+function\s+)?(?P<named>[A-Za-z_][\w.]*)|"
    r"(?P<bare>[A-Za-z_][\w.]*)\(\)",
    re.IGNORECASE,
)
_IMPORT = re.compile(
    r"\bimports?\s+(?:of\s+|for\s+)?(?P<name>[A-Za-z_][\w.]*)|\b(?P<before>(?!the\b|an?\b)[A-Za-z_]\w*)\s+import\b",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"^(?:the\s+)?(?:(?:line|setting|option|variable|constant|entry|key)\s+)?(?P<name>[A-Za-z_][\w.-]*)"
    r"(?:\s+(?:line|setting|option|variable|constant|entry|key))?$",
    re.IGNORECASE,
)
_SAID = re.compile(r"\bline\b.*?\b(?:that|which|where)\s+(?P<words>.+)$", re.IGNORECASE)
_LITTLE = ("the a an that which is are was its it in of on to for with and this my our does do line code").split()  # noqa: SIM905
MIN_WORDS = 2  # of a description that the line must have


def find_comment_command(request: str, primed: str) -> str:
    """The command for the line that a request wants commented out, or in, before anything else; none unless one line
    alone of a file that was shown whole is meant."""
    order = _ORDER.match(request)
    shown = list_shown_texts(primed) if order else []
    founds = [(path, text, place) for path, text in shown if (place := find_line(request, path, text)) is not None]
    return _make_command(*founds[0], enters=_enters(order)) if order and len(founds) == 1 else ""


def find_comment_steps(request: str, texts: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """The step for a line that was to be commented out, or in, and is as it was."""
    order = _ORDER.search(request)
    steps = []
    for path, text in texts.items() if order else ():
        first = before.get(path, text)
        place = find_line(request, path, first)
        line = first.splitlines()[place] if place is not None else ""
        there = [number for number, other in enumerate(text.splitlines()) if line and other == line]
        if order and len(there) == 1:
            done = "in" if _enters(order) else "out"
            command = _make_command(path, text, there[0], enters=_enters(order))
            steps.append(f"Line {there[0] + 1} of {path} is not commented {done}. Now run {command}.")
    return steps if len(steps) == 1 else []


def _enters(order: re.Match[str] | None) -> bool:
    return order is not None and order["verb"].lower().split()[-1] in ("in", "uncomment")


def find_line(request: str, path: str, text: str) -> int | None:
    """The place of the line that is meant."""
    order = _ORDER.search(request)
    if order is None or not _find_sign(path) or not is_named_file(path, request) or not asks_for_change(request):
        return None
    what = re.sub(rf"\s+(?:in|of|from|inside)\s+(?:the\s+)?(?:file\s+)?`?(?:{FILE_NAME})\b`?", "", order["what"])
    what = re.sub(r"\s+out$", "", what.strip())
    lines = text.splitlines()
    enters = _enters(order)
    bare = [_strip_sign(path, line) if enters else line for line in lines]
    places = [place for place, line in enumerate(lines) if line.strip() and _is_comment(path, line) == enters]
    for likely in _list_meant(what, bare, places):
        if found := [place for place in likely if _may_change(path, lines, place, enters=enters)]:
            return found[0] if len(found) == 1 and bare[found[0]].strip() else None
    return None


def _list_meant(what: str, lines: list[str], places: list[int]) -> Iterator[list[int]]:
    """The places that the words mean, the best first: only one of the first that may change is taken."""
    if _MANY.search(_QUOTED.sub(" ", what)):
        return
    if number := _NUMBER.search(what):
        yield [place for place in places if place == int(number["number"]) - 1]
        return
    if quoted := _QUOTED.search(what):
        told = (quoted["code"] or quoted["double"] or quoted["single"]).strip()
        yield [place for place in places if lines[place].strip() == told]
        yield [place for place in places if told in lines[place]]
        return
    for pattern, make in ((_CALL, _match_call), (_IMPORT, _match_import), (_SETTING, _match_setting)):
        if found := pattern.search(what):
            name = next(filter(None, found.groups()))
            yield [place for place in places if re.match(make(name), lines[place])]
            return
    if said := _SAID.search(what):
        yield from _list_described(said["words"], lines, places)


def _match_call(name: str) -> str:
    return rf"\s*(?:\w+\s*=\s*)?(?:await\s+)?(?:\w+\.)*{re.escape(name)}\("


def _match_import(name: str) -> str:
    word = re.escape(name)
    return rf"\s*(?:import\s+{word}\b(?!\s*,)|from\s+{word}\s+import\b|from\s+\S+\s+import\s+{word}\s*$)"


def _match_setting(name: str) -> str:
    return rf"\s*(?:export\s+|const\s+|let\s+|var\s+)?[\"']?{re.escape(name)}[\"']?\s*[=:](?!=)"


def _list_described(words: str, lines: list[str], places: list[int]) -> Iterator[list[int]]:
    """The lines that have the most words of a description, then those that have fewer."""
    wanted = set(_list_stems(words)) - {_find_stem(word) for word in _LITTLE}
    counts = {place: len(wanted.intersection(_list_stems(lines[place]))) for place in places}
    for most in range(max(counts.values(), default=0), MIN_WORDS - 1, -1):
        yield [place for place, count in counts.items() if count == most]


def _list_stems(text: str) -> list[str]:
    return [_find_stem(word) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)]


def _find_stem(word: str) -> str:
    return re.sub(r"(?:ing|es|ed|s|e)$", "", word.lower())


def _is_comment(path: str, line: str) -> bool:
    return line.lstrip().startswith(_find_sign(path))


def _may_change(path: str, lines: list[str], place: int, *, enters: bool) -> bool:
    """Whether the file is whole without the line, or with it."""
    line = lines[place]
    bare = _strip_sign(path, line)
    changed = bare if enters else _add_sign(path, line)
    if path.endswith(".py"):
        return parse_python("\n".join((*lines[:place], changed, *lines[place + 1 :]))) is not None
    return all(bare.count(opening) == bare.count(closing) for opening, closing in ("()", "[]", "{}"))


def _find_sign(path: str) -> str:
    ending = path.rpartition(".")[2].lower()
    return next((sign for sign, endings in _SIGNS.items() if ending in endings), "")


def _add_sign(path: str, line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}{_find_sign(path)} {line.lstrip()}"


def _strip_sign(path: str, line: str) -> str:
    return re.sub(rf"^(\s*){re.escape(_find_sign(path))} ?", r"\1", line)


def _make_command(path: str, text: str, place: int, *, enters: bool) -> str:
    sign = _find_sign(path)
    line = text.splitlines()[place]
    spaced = r"[[:space:]]*"
    if enters:
        blank = " " if re.match(rf"\s*{re.escape(sign)} ", line) else ""
        change = rf"{place + 1}s|^\({spaced}\){sign}{blank}|\1|"
    else:
        change = rf"{place + 1}s|^{spaced}|&{sign} |"
    return f"sed -i {shlex.quote(change)} {shlex.quote(path)}"

"""The values of a file of settings or styles, by the names that lead to them, and where they stand in its text. Pure.

Read by their signs and not by a parser: what is half written is read as far as it goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from ollm.domain.struct import Data

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_MASKED = re.compile(r"/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)
_HEAD = re.compile(r"^\s*(?P<open>\[{1,2})(?P<name>[^\]\n]+)\]{1,2}\s*(?:[#;].*)?$")
_LINE = re.compile(
    r"^(?P<indent>[ \t]*(?:- +)*)(?P<quote>[\"']?)(?P<key>[\w./@-]+)(?P=quote)(?P<sign>[ \t]*[:=][ \t]*)(?P<rest>.*)$"
)
_SCALAR = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#;].*?(?=\s+[#;]|\s*$)")
_ITEM_NAMES = ("name", "id", "key", "title", "hostname", "host", "service")  # what tells an item of a list from others

Names = tuple[str, ...]


class SettingValue(Data, frozen=True):
    """A value as it is written: `text[start:end]` of its file."""

    names: Names  # of the entries around it, then its own
    text: str
    start: int
    end: int


def list_values(path: str, text: str) -> dict[Names, SettingValue]:
    """The values of a file that are told from each other by their names; none where it is no such file."""
    read = next((read for ending, read in _READERS.items() if path.endswith(ending)), None)
    values = _name_items(list(read(text))) if read else []
    counts = Counter(value.names for value in values)
    return {value.names: value for value in values if counts[value.names] == 1}


def _name_items(values: list[SettingValue]) -> list[SettingValue]:
    """Items of lists by what they are called, where they say so: `{"name": "web", …}`."""
    called: dict[Names, str] = {}
    for field in reversed(_ITEM_NAMES):
        called |= {value.names[:-1]: value.text.strip("\"'") for value in values if value.names[-1] == field}
    return [_rename(value, called) for value in values]


def _rename(value: SettingValue, called: Mapping[Names, str]) -> SettingValue:
    names = tuple(
        called.get(value.names[: place + 1], name) if name.startswith("[") else name
        for place, name in enumerate(value.names)
    )
    return SettingValue(names=names, text=value.text, start=value.start, end=value.end)


def _read_json(text: str) -> Iterator[SettingValue]:
    stack: list[tuple[str, int]] = []  # open brackets, with how many items of a list have come
    names: list[str] = []
    key = ""
    signs = list(_TOKEN.finditer(text))
    for place, found in enumerate(signs):
        sign = found[0]
        following = signs[place + 1][0] if place + 1 < len(signs) else ""
        listed = bool(stack) and stack[-1][0] == "["
        if sign in ("{", "["):
            names += [f"[{stack[-1][1]}]" if listed else key] if stack else []
            stack.append((sign, 0))
        elif sign in ("}", "]"):
            stack = stack[:-1]
            names = names[: max(0, len(stack) - 1)]
        elif sign == "," and listed:
            stack[-1] = ("[", stack[-1][1] + 1)
        elif following == ":" and not listed:
            key = sign.strip('"')
        elif sign not in (",", ":") and stack and not listed:
            yield SettingValue(names=(*names, key), text=sign, start=found.start(), end=found.end())


def _read_css(text: str) -> Iterator[SettingValue]:
    masked = _MASKED.sub(lambda found: re.sub(r"[^\n]", " " if found[0].startswith("/") else "x", found[0]), text)
    names: list[str] = []
    begun = 0
    for found in re.finditer(r"[{};]", masked):
        part = masked[begun : found.start()]
        if found[0] == "{":
            names.append(" ".join(part.split()))
        elif ":" in part and names:
            name, _, value = part.partition(":")
            start = begun + len(name) + 1 + len(value) - len(value.lstrip())
            end = begun + len(part.rstrip())
            yield SettingValue(names=(*names, name.strip()), text=text[start:end], start=start, end=end)
        if found[0] == "}" and names:
            names.pop()
        begun = found.end()


def _read_sections(text: str) -> Iterator[SettingValue]:
    names: Names = ()
    tables: Counter[str] = Counter()
    place = 0
    for line in text.splitlines(keepends=True):
        head = _HEAD.match(line.rstrip("\r\n"))
        if head and head["open"] == "[[":
            names = (*_split_head(head["name"]), f"[{tables[head['name']]}]")
            tables[head["name"]] += 1
        elif head:
            names = _split_head(head["name"])
        elif value := _read_line(line, place, names):
            yield value
        place += len(line)


def _split_head(name: str) -> Names:
    """`servers.alpha` and `remote "origin"` as two names."""
    return tuple(part.strip("\"'") for part in re.findall(r"\"[^\"]+\"|'[^']+'|[^\s.\"']+", name))


def _read_yaml(text: str) -> Iterator[SettingValue]:
    around: list[tuple[int, str]] = []  # names that are open, with their depths
    items: Counter[Names] = Counter()
    place = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if bare and not bare.startswith("#"):
            dash = re.match(r"(?:- +)+", line.lstrip())
            around = [(other, name) for other, name in around if other < depth or (dash and _holds(other, depth, name))]
            if bare.startswith("-"):
                outer = tuple(name for _, name in around)
                around.append((depth, f"[{items[outer]}]"))
                items[outer] += 1
            found = _LINE.match(line.rstrip("\r\n"))
            value = _read_line(line, place, tuple(name for _, name in around)) if found else None
            if value:
                yield value
            elif found and not found["rest"].partition("#")[0].strip(" |>-+"):
                around.append((len(found["indent"]), found["key"]))
        place += len(line)


def _holds(other: int, depth: int, name: str) -> bool:
    """Whether a name may hold items that are no deeper than it is."""
    return other == depth and not name.startswith("[")


def _read_line(line: str, place: int, names: Names) -> SettingValue | None:
    found = _LINE.match(line.rstrip("\r\n"))
    scalar = _SCALAR.match(found["rest"]) if found else None
    if found is None or scalar is None or scalar[0][0] in "[{|>&*":
        return None
    start = place + found.start("rest")
    return SettingValue(names=(*names, found["key"]), text=scalar[0], start=start, end=start + scalar.end())


def style_value(old: str, value: str) -> str:
    """The value as the one before it is written: quoted or not, `True` or `true`."""
    bare = value.strip("\"'")
    if old[0] in "\"'":
        return f"{old[0]}{bare}{old[0]}"
    if bare.lower() in ("true", "false") and old.lower() in ("true", "false"):
        return bare.capitalize() if old[0].isupper() else bare.lower()
    return value if value == bare or not re.fullmatch(r"[\w.-]+", old) else bare


_READERS: dict[str, Callable[[str], Iterator[SettingValue]]] = {
    ".json": _read_json,
    ".css": _read_css,
    ".scss": _read_css,
    ".less": _read_css,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".toml": _read_sections,
    ".ini": _read_sections,
    ".cfg": _read_sections,
    ".conf": _read_sections,
}

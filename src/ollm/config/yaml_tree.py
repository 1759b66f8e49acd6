"""YAML 1.2 text read into plain values that know where they stand, safe on hostile text."""

from __future__ import annotations

from typing import Any

from ollm.domain.errors import UsageError
from ollm.domain.struct import Data

LARGEST_FILE = 1024 * 1024
DEEPEST = 40
MOST_NODES = 50_000
PREFIX = "tag:yaml.org,2002:"


class Place(Data, frozen=True):
    """Where a setting stands: a file with line and column (from 1), or the name of a variable or flag without."""

    file: str
    line: int = 0
    column: int = 0
    name: str = ""

    def __str__(self) -> str:
        shown = self.name or self.file
        return f"{shown}:{self.line}:{self.column}" if self.line else shown


class Entry(Data, frozen=True):
    """A value and its place: a mapping is `dict[str, Entry]`, a list is `list[Entry]`, anything else a scalar."""

    place: Place
    value: Any


class NotYaml(UsageError):  # noqa: N818 - what the text is
    """The text is not YAML; `place` is where reading stopped."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place} {message}")
        self.place = place
        self.reason = message


def parse(text: str, file: Place) -> Entry | None:
    """The tree of one document; None when there is nothing in it but comments."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True, plug_ins=[])
    yaml.max_depth = DEEPEST
    try:
        node = yaml.compose(text)
        return None if node is None else _Reader(file, yaml.constructor).entry(node)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(_at(file, mark), f"is not YAML: {error.problem or error.context}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise NotYaml(file, f"is not YAML: {str(error).splitlines()[0]}") from error


def plain(entry: Entry) -> Any:
    """The value alone, all the way down."""
    if isinstance(entry.value, dict):
        return {key: plain(child) for key, child in entry.value.items()}
    if isinstance(entry.value, list):
        return [plain(child) for child in entry.value]
    return entry.value


class _Reader:
    """Turns nodes into entries; aliases are followed, but neither in circles nor without end."""

    def __init__(self, file: Place, constructor: Any) -> None:
        self._file = file
        self._constructor = constructor
        self._nodes = 0
        self._inside: set[int] = set()

    def entry(self, node: Any, place: Place | None = None) -> Entry:
        place = place or _at(self._file, node.start_mark)
        self._nodes += 1
        if self._nodes > MOST_NODES or id(node) in self._inside:
            raise NotYaml(place, "is not usable YAML: an alias makes it endless")
        self._inside.add(id(node))
        try:
            return Entry(place=place, value=self._value(node, place))
        finally:
            self._inside.discard(id(node))

    def _value(self, node: Any, place: Place) -> Any:
        kind = str(node.tag).removeprefix(PREFIX)
        if kind == "map":
            return self._mapping(node)
        if kind == "seq":
            return [self.entry(child) for child in node.value]
        if kind in ("int", "float", "bool", "null"):
            return self._constructor.construct_object(node)
        if kind in ("str", "timestamp", "value", "merge"):
            return node.value
        raise NotYaml(place, f"is not usable YAML: the tag {node.tag} means nothing here")

    def _mapping(self, node: Any) -> dict[str, Entry]:
        merged: dict[str, Entry] = {}
        own: dict[str, Entry] = {}
        for key, child in node.value:
            place = _at(self._file, key.start_mark)
            if str(key.tag) == PREFIX + "merge":
                merged = {**self._merged(child, place), **merged}
                continue
            if not isinstance(key.value, str):
                raise NotYaml(place, "is not usable YAML: a key must be a word")
            if key.value in own:
                raise NotYaml(place, f"the key {key.value} stands here twice")
            own[key.value] = self.entry(child, place)
        return {**merged, **own}

    def _merged(self, node: Any, place: Place) -> dict[str, Entry]:
        found = self.entry(node, place).value
        if not isinstance(found, dict):
            raise NotYaml(place, "is not usable YAML: << takes a mapping")
        return found


def _at(file: Place, mark: Any) -> Place:
    if mark is None:
        return file
    return Place(file=file.file, name=file.name, line=mark.line + 1, column=mark.column + 1)

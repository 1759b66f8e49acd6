"""Parse YAML 1.2 text into plain values with their positions, safely even for hostile text.

Parsing YAML takes a fifth of a short run's startup, so the tree of a configuration file is cached with its text. The
text itself is compared, so a cached tree cannot be stale. A damaged one is ignored.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.errors import UsageError
from ollm.domain.struct import Data
from ollm.system.atomic import read_small_file, write_private_file

FORMAT_VERSION = 2
MAX_FILE_BYTES = 1024 * 1024
MAX_YAML_DEPTH = 40
MAX_YAML_NODES = 50_000
TAG_PREFIX = "tag:yaml.org,2002:"


class SourcePosition(Data, frozen=True):
    """Position of a setting: a file with line and column (from 1), or the name of a variable or flag."""

    file: str
    line: int = 0
    column: int = 0
    name: str = ""

    def __str__(self) -> str:
        shown = self.name or self.file
        return f"{shown}:{self.line}:{self.column}" if self.line else shown


class YamlEntry(Data, frozen=True):
    """A value and its place: a mapping is `dict[str, YamlEntry]`, a list `list[YamlEntry]`, all else a scalar."""

    place: SourcePosition
    value: Any


class InvalidYaml(UsageError):  # noqa: N818 - what the text is
    """Error for text that is not YAML; `place` is where parsing stopped."""

    def __init__(self, place: SourcePosition, message: str) -> None:
        super().__init__(f"{place} {message}")
        self.place = place
        self.reason = message


def parse_yaml(text: str, file: SourcePosition) -> YamlEntry | None:
    """Parse one document into a tree, or return None if it contains only comments."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True, plug_ins=[])
    yaml.max_depth = MAX_YAML_DEPTH
    try:
        node = yaml.compose(text)
        return None if node is None else _NodeReader(file, yaml.constructor).read_entry(node)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidYaml(_make_position(file, mark), f"is not YAML: {error.problem or error.context}") from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise InvalidYaml(file, f"is not YAML: {str(error).splitlines()[0]}") from error


def to_plain_value(entry: YamlEntry) -> Any:
    """Return the plain value, without places at any level."""
    if isinstance(entry.value, dict):
        return {key: to_plain_value(child) for key, child in entry.value.items()}
    if isinstance(entry.value, list):
        return [to_plain_value(child) for child in entry.value]
    return entry.value


class _NodeReader:
    """Converter of nodes to entries. Aliases are followed, but neither in cycles nor without limit."""

    def __init__(self, file: SourcePosition, constructor: Any) -> None:
        self._file = file
        self._constructor = constructor
        self._nodes = 0
        self._inside: set[int] = set()

    def read_entry(self, node: Any, place: SourcePosition | None = None) -> YamlEntry:
        place = place or _make_position(self._file, node.start_mark)
        self._nodes += 1
        if self._nodes > MAX_YAML_NODES or id(node) in self._inside:
            raise InvalidYaml(place, "is not usable YAML: it holds too many values, or an alias makes it endless")
        self._inside.add(id(node))
        try:
            return YamlEntry(place=place, value=self._read_value(node, place))
        finally:
            self._inside.discard(id(node))

    def _read_value(self, node: Any, place: SourcePosition) -> Any:
        kind = str(node.tag).removeprefix(TAG_PREFIX)
        if kind == "map":
            return self._read_mapping(node)
        if kind == "seq":
            return [self.read_entry(child) for child in node.value]
        if kind in ("int", "float", "bool", "null"):
            return self._constructor.construct_object(node)
        if kind in ("str", "timestamp", "value", "merge"):
            return node.value
        raise InvalidYaml(place, f"is not usable YAML: the tag {node.tag} means nothing here")

    def _read_mapping(self, node: Any) -> dict[str, YamlEntry]:
        merged: dict[str, YamlEntry] = {}
        own: dict[str, YamlEntry] = {}
        for key, child in node.value:
            place = _make_position(self._file, key.start_mark)
            if str(key.tag) == TAG_PREFIX + "merge":
                merged = {**self._read_merged(child, place), **merged}
                continue
            if not isinstance(key.value, str):
                raise InvalidYaml(place, "is not usable YAML: keys must be plain words")
            if key.value in own:
                raise InvalidYaml(place, f"duplicate key {key.value}")
            own[key.value] = self.read_entry(child, place)
        return {**merged, **own}

    def _read_merged(self, node: Any, place: SourcePosition) -> dict[str, YamlEntry]:
        found = self.read_entry(node, place).value
        if not isinstance(found, dict):
            raise InvalidYaml(place, "is not usable YAML: << takes a mapping")
        return found


def _make_position(file: SourcePosition, mark: Any) -> SourcePosition:
    if mark is None:
        return file
    return SourcePosition(file=file.file, name=file.name, line=mark.line + 1, column=mark.column + 1)


def parse_yaml_cached(text: str, place: SourcePosition, memory: Path) -> YamlEntry | None:
    """Return `parse_yaml(text)`, from `memory` if it holds this text: `[form, text, tree]`, where the tree has
    `[line, column, value]` for each entry, nested, and is null for a file of comments."""
    with contextlib.suppress(OSError, msgspec.MsgspecError, TypeError, ValueError):
        form, known, tree = msgspec.json.decode(read_small_file(memory))
        if (form, known) == (FORMAT_VERSION, text):
            return None if tree is None else _decode_entry(tree, place)
    entry = parse_yaml(text, place)
    _store_cache(memory, text, entry, place)
    return entry


def _store_cache(memory: Path, text: str, entry: YamlEntry | None, place: SourcePosition) -> None:
    """Cache the tree if it survives a round trip. A home that does not exist is not created for it."""
    data = msgspec.json.encode([FORMAT_VERSION, text, None if entry is None else _encode_entry(entry)])
    back = msgspec.json.decode(data)[2]
    if back is not None and _decode_entry(back, place) != entry:
        return
    with contextlib.suppress(OSError):
        if memory.parent.parent.is_dir():
            write_private_file(memory, data, durable=False)


def _encode_entry(entry: YamlEntry) -> list[Any]:
    value = entry.value
    if isinstance(value, dict):
        value = {key: _encode_entry(child) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_encode_entry(child) for child in value]
    return [entry.place.line, entry.place.column, value]


def _decode_entry(tree: Any, file: SourcePosition) -> YamlEntry:
    line, column, value = tree
    if isinstance(value, dict):
        value = {key: _decode_entry(child, file) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_decode_entry(child, file) for child in value]
    return YamlEntry(place=SourcePosition(file=file.file, name=file.name, line=line, column=column), value=value)

"""The tree of a configuration file, remembered beside the text it came from.

Reading YAML costs a fifth of a short run's whole start; a file that has not changed is not read as YAML again. The text
itself is compared, so a remembered tree cannot be stale, and whatever is wrong with it only means reading again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from ollm.config.yaml_tree import SourcePosition, YamlEntry, parse_yaml
from ollm.domain.struct import Data
from ollm.system.small_files import read_small_file

FORMAT_VERSION = 1


class CachedYaml(Data, frozen=True):
    """`tree` holds `[line, column, value]` for each entry, nested; None for a file of comments."""

    form: int
    text: str
    tree: Any


def parse_yaml_cached(text: str, place: SourcePosition, memory: Path) -> YamlEntry | None:
    """What `parse` gives, from `memory` when the text is the one remembered there."""
    found = _load_cache(memory)
    if found is not None and found.text == text:
        with contextlib.suppress(TypeError, ValueError):
            return None if found.tree is None else _decode_entry(found.tree, place)
    entry = parse_yaml(text, place)
    _store_cache(memory, text, entry, place)
    return entry


def _load_cache(memory: Path) -> CachedYaml | None:
    try:
        found = msgspec.json.decode(read_small_file(memory), type=CachedYaml)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if found.form == FORMAT_VERSION else None


def _store_cache(memory: Path, text: str, entry: YamlEntry | None, place: SourcePosition) -> None:
    """Kept only when it comes back the same; a home that does not exist yet is not made for it."""
    tree = None if entry is None else _encode_entry(entry)
    data = msgspec.json.encode(CachedYaml(form=FORMAT_VERSION, text=text, tree=tree))
    back = msgspec.json.decode(data, type=CachedYaml).tree
    if back is not None and _decode_entry(back, place) != entry:
        return
    from ollm.system.atomic import make_private_directory, replace_file

    with contextlib.suppress(OSError):
        if memory.parent.parent.is_dir():
            make_private_directory(memory.parent)
            replace_file(memory, data, durable=False)


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

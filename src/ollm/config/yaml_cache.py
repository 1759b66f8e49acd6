"""The tree of a configuration file, remembered beside the text it came from.

Reading YAML costs a fifth of a short run's whole start; a file that has not changed is not read as YAML again. The text
itself is compared, so a remembered tree cannot be stale, and whatever is wrong with it only means reading anew.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from ollm.config.yaml_tree import Entry, Place, parse
from ollm.domain.struct import Data

FORM = 1


class Remembered(Data, frozen=True):
    """`tree` holds `[line, column, value]` for each entry, nested; None for a file of comments."""

    form: int
    text: str
    tree: Any


def parse_or_remember(text: str, place: Place, memory: Path) -> Entry | None:
    """What `parse` gives, from `memory` when the text is the one remembered there."""
    found = _recalled(memory)
    if found is not None and found.text == text:
        with contextlib.suppress(TypeError, ValueError):
            return None if found.tree is None else _entry(found.tree, place)
    entry = parse(text, place)
    _remember(memory, text, entry, place)
    return entry


def _recalled(memory: Path) -> Remembered | None:
    try:
        found = msgspec.json.decode(memory.read_bytes(), type=Remembered)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if found.form == FORM else None


def _remember(memory: Path, text: str, entry: Entry | None, place: Place) -> None:
    """Kept only when it comes back the same; a home that does not exist yet is not made for it."""
    tree = None if entry is None else _tree(entry)
    data = msgspec.json.encode(Remembered(form=FORM, text=text, tree=tree))
    back = msgspec.json.decode(data, type=Remembered).tree
    if back is not None and _entry(back, place) != entry:
        return
    from ollm.system.atomic import make_private_directory, replace_file

    with contextlib.suppress(OSError):
        if memory.parent.parent.is_dir():
            make_private_directory(memory.parent)
            replace_file(memory, data, durable=False)


def _tree(entry: Entry) -> list[Any]:
    value = entry.value
    if isinstance(value, dict):
        value = {key: _tree(child) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_tree(child) for child in value]
    return [entry.place.line, entry.place.column, value]


def _entry(tree: Any, file: Place) -> Entry:
    line, column, value = tree
    if isinstance(value, dict):
        value = {key: _entry(child, file) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_entry(child, file) for child in value]
    return Entry(place=Place(file=file.file, name=file.name, line=line, column=column), value=value)

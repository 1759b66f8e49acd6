"""`config set`: one setting changed in the user's file, checked before anything is written."""

from __future__ import annotations

import contextlib
import os
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ollm.config.checks import check_url
from ollm.config.paths import Home
from ollm.config.settings import Settings
from ollm.config.source_file import SERVICES, read_text
from ollm.config.validation import Reading, known_keys
from ollm.config.variables import tree
from ollm.config.yaml_edit import remove_key, set_key
from ollm.config.yaml_tree import NotYaml, Place, parse, plain
from ollm.domain.errors import UsageError
from ollm.system.atomic import make_private_directory, replace_file

FREE = ("hooks", "mcpServers")
"""Mappings whose keys are the user's own."""


def change(home: Home, key: str, text: str) -> Path:
    """Set `key` to what `text` says, in its type; the file that was written. Comments and all else stay."""
    value = _value(key, text)
    return _rewritten(home, lambda before: set_key(before, _path(before, key, home.config), value))


def put(home: Home, key: str, name: str, value: Any) -> Path:
    """Set the entry `name` of a mapping whose keys are the user's own; the file that was written."""
    return _rewritten(home, lambda before: set_key(before, [key, name], value))


def remove(home: Home, key: str, name: str) -> Path:
    """Take the entry `name` out of such a mapping; the file that was written."""
    return _rewritten(home, lambda before: remove_key(before, [key, name]))


def _rewritten(home: Home, edit: Callable[[str], str]) -> Path:
    make_private_directory(home.root)
    file = home.config.resolve()
    with _alone(home.root):
        before = _current(file)
        after = edit(before)
        if after != before:
            replace_file(file, after.encode(), mode=file.stat().st_mode & 0o777 if file.exists() else 0o600)
    return file


def _value(key: str, text: str) -> Any:
    """The value in the type of its key; a `UsageError` says what is wrong with either."""
    kinds = known_keys(Settings)
    value = text if _wants_text(kinds.get(key)) else _read(text)
    reading = Reading()
    check_url(reading.struct(Settings, tree({key: (Place(file="the value"), value)})), reading)
    for mistake in reading.mistakes:
        raise UsageError(f"{mistake.key}: {mistake.message}", action="docs/configuration.md lists every key.")
    if key not in kinds and key.partition(".")[0] not in FREE:
        raise UsageError(f"{key} is a section, not a setting.", action=f"Name one in it, such as {_first(key, kinds)}.")
    return value


def _first(section: str, kinds: dict[str, Any]) -> str:
    return next(name for name in kinds if name.startswith(section))


def _wants_text(kind: Any) -> bool:
    """Whether the words are the value themselves: `config set provider.model 3` is the model named 3."""
    bare = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    return bare is str or (typing.get_origin(bare) is types.UnionType and str in typing.get_args(bare))


def _read(text: str) -> Any:
    try:
        entry = parse(text, Place(file="the value"))
    except NotYaml as error:
        raise UsageError(f"{text!r} {error.reason}.") from error
    return None if entry is None else plain(entry)


def _current(file: Path) -> str:
    try:
        text = read_text(file) if file.exists() else ""
        parse(text, Place(file=str(file)))
    except NotYaml as error:
        raise UsageError(f"{error} Nothing was changed.", action="Mend it first; `ollm config check` helps.") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}. Nothing was changed.") from error
    return text


def _path(text: str, key: str, file: Path) -> list[str]:
    """Where the key stands in this file: under `services:` if it was written there."""
    parts = key.split(".")
    entry = parse(text, Place(file=str(file)))
    services = plain(entry).get("services") if entry is not None and isinstance(entry.value, dict) else None
    for name, section in (services or {}).items():
        if SERVICES.get(name) == parts[0] and isinstance(section, dict) and parts[1] in section:
            return ["services", name, *parts[1:]]
    return parts


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Two changes at once follow each other, so that neither is lost."""
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

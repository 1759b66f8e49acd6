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
from ollm.config.source_file import SERVICES, read_config_text
from ollm.config.validation import SettingsReader, find_choice, find_keys_named, list_known_keys
from ollm.config.variables import build_entry_tree
from ollm.config.yaml_edit import remove_key, set_key
from ollm.config.yaml_tree import InvalidYaml, SourcePosition, parse_yaml, to_plain_value
from ollm.domain.errors import UsageError
from ollm.system.atomic import make_private_directory, replace_file

FREE_FORM_KEYS = ("hooks", "mcpServers")
"""Mappings whose keys are the user's own."""


def set_setting(home: Home, key: str, text: str) -> Path:
    """Set `key` to what `text` says, in its type; the file that was written. Comments and all else stay."""
    value = _parse_setting(key, text)
    return _rewrite_config(home, lambda before: set_key(before, _find_key_path(before, key, home.config), value))


def unset_setting(home: Home, key: str) -> Path:
    """Take `key` out of the file, which must set it; the file that was written."""

    def remove(before: str) -> str:
        try:
            return remove_key(before, _find_key_path(before, key, home.config))
        except UsageError:
            require_known_key(key)  # a key that is wrong and in the file goes; one that is not there has another name
            raise

    return _rewrite_config(home, remove)


def require_known_key(key: str) -> None:
    """Raises `UsageError` with the most likely key when no key has this name. The name of a section counts as a key."""
    kinds = list_known_keys(Settings)
    if key in kinds or key.partition(".")[0] in FREE_FORM_KEYS or any(name.startswith(f"{key}.") for name in kinds):
        return
    from ollm.domain.suggest import suggest_names

    near = find_keys_named(key.rpartition(".")[2])[:1] or suggest_names(key, kinds)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise UsageError(f"{key}: unknown key{hint}", action="See docs/configuration.md for all keys.")


def put_mapping_entry(home: Home, key: str, name: str, value: Any) -> Path:
    """Set the entry `name` of a mapping whose keys are the user's own; the file that was written."""
    return _rewrite_config(home, lambda before: set_key(before, [key, name], value))


def remove_mapping_entry(home: Home, key: str, name: str) -> Path:
    """Take the entry `name` out of such a mapping; the file that was written."""
    return _rewrite_config(home, lambda before: remove_key(before, [key, name]))


def _rewrite_config(home: Home, edit: Callable[[str], str]) -> Path:
    make_private_directory(home.root)
    file = home.config.resolve()
    with _lock_directory(home.root):
        before = _read_current(file)
        after = edit(before)
        if after != before:
            replace_file(file, after.encode(), mode=file.stat().st_mode & 0o777 if file.exists() else 0o600)
    return file


def _parse_setting(key: str, text: str) -> Any:
    """The value in the type of its key; a `UsageError` says what is wrong with either."""
    kinds = list_known_keys(Settings)
    value = text if _wants_text(kinds.get(key)) else _parse_value(text)
    reading = SettingsReader()
    check_url(
        reading.read_struct(Settings, build_entry_tree({key: (SourcePosition(file="the value"), value)})), reading
    )
    for mistake in reading.mistakes:
        raise UsageError(f"{mistake.key}: {mistake.message}", action="See docs/configuration.md for all keys.")
    if key not in kinds and key.partition(".")[0] not in FREE_FORM_KEYS:
        raise UsageError(
            f"{key} is a section, not a setting.", action=f"Use one of its keys, such as {_find_first_key(key, kinds)}."
        )
    return find_choice(kinds.get(key), value)


def _find_first_key(section: str, kinds: dict[str, Any]) -> str:
    return next(name for name in kinds if name.startswith(section))


def _wants_text(kind: Any) -> bool:
    """Whether the words are the value themselves: `config set provider.model 3` is the model named 3."""
    bare = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    return bare is str or (typing.get_origin(bare) is types.UnionType and str in typing.get_args(bare))


def _parse_value(text: str) -> Any:
    try:
        entry = parse_yaml(text, SourcePosition(file="the value"))
    except InvalidYaml as error:
        raise UsageError(f"{text!r} {error.reason}.") from error
    return None if entry is None else to_plain_value(entry)


def _read_current(file: Path) -> str:
    try:
        text = read_config_text(file) if file.exists() else ""
        parse_yaml(text, SourcePosition(file=str(file)))
    except InvalidYaml as error:
        raise UsageError(f"{error} Nothing changed.", action="Fix it first; see `ollm config check`.") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot read {file}: {error}. Nothing changed.") from error
    return "" if text.strip() == "{}" else text


def _find_key_path(text: str, key: str, file: Path) -> list[str]:
    """Where the key is in this file: under `services:` if it was written there."""
    parts = key.split(".")
    entry = parse_yaml(text, SourcePosition(file=str(file)))
    services = to_plain_value(entry).get("services") if entry is not None and isinstance(entry.value, dict) else None
    for name, section in (services or {}).items():
        if SERVICES.get(name) == parts[0] and isinstance(section, dict) and set(parts[1:2]) <= {*section}:
            return ["services", name, *parts[1:]]
    return parts


@contextlib.contextmanager
def _lock_directory(directory: Path) -> Iterator[None]:
    """Two changes at once follow each other, so that neither is lost."""
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

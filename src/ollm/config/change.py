"""`config set`: change one setting in the user's file, checked before anything is written.

Only the characters of that value change; the rest of the file is preserved.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from ollm.config.environment import Home
from ollm.config.load import build_entry_tree, check_url, split_key
from ollm.config.settings import Settings
from ollm.config.validation import (
    SERVICES,
    SettingsReader,
    find_choice,
    find_keys_named,
    list_known_keys,
    read_config_text,
    strip_annotation,
)
from ollm.config.yaml_tree import (
    MAX_YAML_DEPTH,
    InvalidYaml,
    SourcePosition,
    YamlEntry,
    parse_yaml,
    to_plain_value,
)
from ollm.domain.errors import UsageError
from ollm.domain.text import suggest_names
from ollm.system.atomic import lock_directory, replace_file

PLAIN_WORD = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
RESERVED_WORDS = {"true", "false", "null", "yes", "no", "on", "off", ".inf", ".nan"}
FREE_FORM_KEYS = ("hooks", "mcpServers", "models", "roles", "tools.diagnostics.languages")
"""Mappings whose keys are the user's own."""


def set_setting(home: Home, key: str, text: str) -> Path:
    """Set `key` to `text`, parsed as the key's type, and return the file written. Comments and all else stay."""
    value = parse_setting(key, text)
    return _rewrite_config(home, lambda before: set_key(before, _find_key_path(before, key, home.config), value))


def unset_setting(home: Home, key: str) -> Path:
    """Remove `key` from the file, which must set it, and return the file written."""

    def remove(before: str) -> str:
        try:
            return remove_key(before, _find_key_path(before, key, home.config))
        except UsageError:
            require_known_key(key)  # Even an unknown key can be removed if it is in the file.
            raise

    return _rewrite_config(home, remove)


def require_known_key(key: str) -> None:
    """Raise `UsageError` with the most likely key if this one is unknown. The name of a section counts as a key."""
    kinds = list_known_keys(Settings)
    if key in kinds or _is_free_form(key) or any(name.startswith(f"{key}.") for name in kinds):
        return
    near = find_keys_named(key.rpartition(".")[2])[:1] or suggest_names(key, kinds)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise UsageError(f"{key}: unknown key{hint}", action="See docs/configuration.md for all keys.")


def _is_free_form(key: str) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in FREE_FORM_KEYS)


def put_mapping_entry(home: Home, key: str, name: str, value: Any) -> Path:
    """Set the entry `name` of a mapping with user-defined keys, and return the file written."""
    return _rewrite_config(home, lambda before: set_key(before, [key, name], value))


def _rewrite_config(home: Home, edit: Callable[[str], str]) -> Path:
    with lock_directory(home.root):
        file = home.config.resolve()
        before = _read_current(file)
        after = edit(before)
        if after != before:
            replace_file(file, after.encode(), mode=file.stat().st_mode & 0o777 if file.exists() else 0o600)
    return file


def parse_setting(key: str, text: str) -> Any:
    """Parse the value in the type of its key. Raises `UsageError` if the key or the value is invalid."""
    kinds = list_known_keys(Settings)
    value = text if _wants_text(kinds.get(key)) else _parse_value(text)
    if isinstance(value, str) and _wants_texts(kinds.get(key)):
        value = [value]
    reading = SettingsReader()
    check_url(
        reading.read_struct(Settings, build_entry_tree({key: (SourcePosition(file="the value"), value)})), reading
    )
    for mistake in reading.mistakes:
        raise UsageError(f"{mistake.key}: {mistake.message}", action="See docs/configuration.md for all keys.")
    if key not in kinds and not _is_free_form(key):
        raise UsageError(
            f"{key} is a section, not a setting.",
            action=f"Use one of its keys, such as {next(name for name in kinds if name.startswith(key))}.",
        )
    return find_choice(kinds.get(key), value)


def _wants_text(kind: Any) -> bool:
    """Return True if the text itself is the value: `config set provider.model 3` sets the model named 3."""
    bare = strip_annotation(kind)
    parts = typing.get_args(bare) if typing.get_origin(bare) is types.UnionType else (bare,)
    return str in parts and not any(typing.get_origin(part) is dict for part in parts)


def _wants_texts(kind: Any) -> bool:
    bare = strip_annotation(kind)
    return typing.get_origin(bare) in (tuple, list) and str in typing.get_args(bare)


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
    """Find the key in this file: under `services:` if it was written there."""
    parts = split_key(key)
    entry = parse_yaml(text, SourcePosition(file=str(file)))
    services = to_plain_value(entry).get("services") if entry is not None and isinstance(entry.value, dict) else None
    for name, section in (services or {}).items():
        if SERVICES.get(name) == parts[0] and isinstance(section, dict) and set(parts[1:2]) <= {*section}:
            return ["services", name, *parts[1:]]
    return parts


def set_key(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text` with the dotted `path` set to `value`. Refuses if anything else would change."""
    key, node, rest = _find_pair(text, path)
    shown = format_flow_value(value)
    changed = _insert_value(text, key, node, rest, shown) if rest else _replace_value(text, node, shown, path)
    if _parse_plain(changed) != _set_value(_parse_plain(text), path, value):
        raise _make_refusal(path)
    return changed


def remove_key(text: str, path: Sequence[str]) -> str:
    """Return `text` without the key at `path`. A section that loses its last key stays, and sets nothing."""
    key, node, rest = _find_pair(text, path)
    if rest:
        raise UsageError(f"{'.'.join(path)} is not set in the file.")
    start, end = key.start_mark.index, _find_end(node)
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():
        changed = text[:line] + text[text.find("\n", end) + 1 or len(text) :]
    else:  # The key is between braces, with others on its line.
        after = re.sub(r"\A\s*,\s*", "", text[end:])
        changed = (text[:start] if after != text[end:] else re.sub(r",\s*\Z", "", text[:start])) + after
    before = _parse_plain(text)
    if _set_value(_parse_plain(changed), path, reduce(getitem, path, before)) != before:
        raise _make_refusal(path)
    return changed


def format_flow_value(value: Any) -> str:
    """Format a value on one line: a bare word if YAML reads it as that word, else JSON, which is also YAML."""
    if isinstance(value, str) and PLAIN_WORD.fullmatch(value) and value.lower() not in RESERVED_WORDS:
        return value
    if isinstance(value, list | tuple):
        return f"[{', '.join(format_flow_value(item) for item in value)}]"
    if isinstance(value, dict):
        pairs = (f"{format_flow_value(str(key))}: {format_flow_value(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


def _find_pair(text: str, path: Sequence[str]) -> tuple[Any, Any, list[str]]:
    """Follow a path as far as it exists. Returns the last key with its value, and the rest of the path."""
    key, node, rest = None, _compose(text), list(path)
    while rest and node is not None and node.id == "mapping":
        found = next((pair for pair in node.value if pair[0].value == rest[0]), None)
        if found is None:
            break
        (key, node), rest = found, rest[1:]
    return key, node, rest


def _replace_value(text: str, node: Any, value: str, path: Sequence[str]) -> str:
    """Replace only the value's characters. Refuses if a comment is between them."""
    start, end = node.start_mark.index, _find_end(node)
    before = text[start:end].rstrip()
    if "\n" in before and "#" in before:
        raise _make_refusal(path)
    head = re.sub(r"\s*\n\s*\Z", "", text[:start])
    return f"{head}{'' if head[-1:].isspace() else ' '}{value}{text[start + len(before) :]}"


def _find_end(node: Any) -> int:
    """Find the end of a value. The parser's end mark of a block lies after the comments that follow it."""
    if node.id == "scalar" or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _find_end(last[1] if isinstance(last, tuple) else last)


def _insert_value(text: str, key: Any, node: Any, rest: list[str], value: str) -> str:
    """Insert a value at the rest of its path: directly below its section's key, or at the end of the file."""
    parts, column = list(map(format_flow_value, rest)), 0
    if node is not None and node.id == "mapping" and node.flow_style:
        start = node.start_mark.index + 1
        inner = f"{': {'.join(parts)}: {value}{'}' * (len(parts) - 1)}"
        return f"{text[:start]}{inner}{', ' if node.value else ''}{text[start:]}"
    if node is not None and node.id == "mapping":
        column = node.value[0][0].start_mark.column
    elif node is not None and node.value in ("", "~", "null") and node.style is None:
        column = key.start_mark.column + 2 if key else 0
        text = text[: node.start_mark.index] + text[node.end_mark.index :]
    elif node is not None:
        raise _make_refusal(rest)
    place = (key and text.find("\n", key.end_mark.index) + 1) or len(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if text[:place].endswith("\n") or not text else newline
    lines = [f"{' ' * (column + 2 * depth)}{part}:" for depth, part in enumerate(parts)]
    return f"{text[:place]}{gap}{newline.join(lines)} {value}{newline}{text[place:]}"


def _compose(text: str) -> Any:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True, plug_ins=[])
    yaml.max_depth = MAX_YAML_DEPTH
    return yaml.compose(text)


def _parse_plain(text: str) -> Any:
    entry: YamlEntry | None = parse_yaml(text, SourcePosition(file="config.yaml"))
    return {} if entry is None else to_plain_value(entry)


def _set_value(document: Any, path: Sequence[str], value: Any) -> Any:
    first, *rest = path
    inner = document.get(first) if isinstance(document, dict) else None
    return {**(document or {}), first: _set_value(inner or {}, rest, value) if rest else value}


def _make_refusal(path: Sequence[str]) -> UsageError:
    return UsageError(
        f"Cannot set {'.'.join(path)} without changing other parts of the file.",
        action="Edit the file yourself; find it with `ollm config path`.",
    )

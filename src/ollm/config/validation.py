"""Read configuration files into the fields of structs, and report all mistakes at once, each with its place."""

from __future__ import annotations

import math
import re
import sys
import types
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ollm.config.settings import MODEL_URLS, OWN_FIELDS, ModelSettings, ProviderSettings, Settings
from ollm.config.yaml_tree import (
    MAX_FILE_BYTES,
    InvalidYaml,
    SourcePosition,
    YamlEntry,
    parse_yaml,
    parse_yaml_cached,
    to_plain_value,
)
from ollm.domain.struct import Data
from ollm.domain.text import fold_name, format_suggestion, suggest_names
from ollm.system.atomic import read_small_file
from ollm.system.terminal_text import make_printable

SECTIONS = ("sessions", "snapshots", "compression", "loopDetection", "fileDiscovery", "environment")
SERVICES = {"session": "sessions", **{name: name for name in SECTIONS}}
MAX_NUMBER = 2**53
TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}


class Mistake(Data, frozen=True):
    """Something wrong in the configuration. A fatal mistake ends the command; others do not. A valid setting that its
    source may not make is `ignored`."""

    place: SourcePosition
    key: str
    message: str
    fatal: bool = False
    ignored: bool = False

    def __str__(self) -> str:
        return make_printable(
            f"{self.place} {self.key}: {self.message}" if self.key else f"{self.place} {self.message}"
        )


def map_fields(settings: msgspec.Struct) -> dict[str, Any]:
    """Map each field's name in the file to its value. A section's type is that of its value, because reading one
    annotation would evaluate all the others."""
    names = zip(settings.__struct_encode_fields__, settings.__struct_fields__, strict=True)
    return {key: getattr(settings, name) for key, name in names}


@cache
def find_field_type(kind: type[msgspec.Struct], key: str) -> Any:
    """Evaluate the annotation of one field, without those of the others."""
    name = kind.__struct_fields__[kind.__struct_encode_fields__.index(key)]
    alone = types.SimpleNamespace(__annotations__={name: kind.__annotations__[name]})
    return typing.get_type_hints(alone, vars(sys.modules[kind.__module__]), include_extras=True)[name]


class SettingsReader:
    """Reader that collects the mistakes of all sources, and the place of each valid key in the current one.

    A mistake in a `fatal` section is fatal. `refuse` explains why the current source may not set a key to a value.
    """

    def __init__(self, fatal: tuple[str, ...] = ()) -> None:
        self.mistakes: list[Mistake] = []
        self._fatal = fatal
        self.places: dict[str, SourcePosition] = {}
        self.refuse: Callable[[str, Any], str] | None = None

    def read_struct(self, kind: type[msgspec.Struct], entry: YamlEntry, path: str = "") -> dict[str, Any]:
        """Read the valid fields of `kind` from `entry`. An empty section sets nothing."""
        if entry.value is None:
            return {}
        if not isinstance(entry.value, dict):
            self.report_mistake(entry.place, path, "expected a mapping here")
            return {}
        defaults, values = map_fields(kind()), dict[str, Any]()
        for key, child in entry.value.items():
            name = f"{path}.{key}" if path else key
            if key not in defaults:
                self.report_mistake(child.place, name, _explain_unknown_key(key, defaults, path))
            elif isinstance(section := defaults[key], msgspec.Struct):
                values[key] = self.read_struct(type(section), child, name)
            elif name == "models" and isinstance(child.value, dict):
                values[key] = self._read_models(child)
            elif path == "roles" and isinstance(child.value, dict):
                before, role = len(self.mistakes), self.read_struct(ProviderSettings, child, name)
                if role and len(self.mistakes) == before:  # Half a role could send a key to another server.
                    values[key] = role
            else:
                self._read_field(find_field_type(kind, key), child, name, values, key)
        return values

    def report_mistake(self, place: SourcePosition, key: str, message: str) -> None:
        fatal = key.startswith(self._fatal)
        self.mistakes.append(Mistake(place=place, key=key, message=message, fatal=fatal))

    def report_ignored(self, place: SourcePosition, key: str, message: str) -> None:
        """Report a valid setting that is ignored in this source."""
        self.mistakes.append(Mistake(place=place, key=key, message=message, ignored=True))

    def report_unusable(self, place: SourcePosition, message: str) -> None:
        """Report a source that cannot be used at all."""
        self.mistakes.append(Mistake(place=place, key="", message=message, fatal=True))

    def _read_models(self, entry: YamlEntry) -> dict[str, Any]:
        """Read the settings of each model, and `models.urls`."""
        values: dict[str, Any] = {}
        for name, child in entry.value.items():
            if name == "urls":
                self._read_field(MODEL_URLS, child, "models.urls", values, name)
            else:
                if read := self.read_struct(ModelSettings, child, f"models.{name}"):
                    values[name] = read
                for field in [field for field in OWN_FIELDS if field in read.get("extra", ())]:
                    place = child.value["extra"].value[field].place
                    self.report_mistake(place, f"models.{name}.extra.{field}", "ollm sets this field itself")
                    del read["extra"][field]
        return values

    def _read_field(self, kind: Any, entry: YamlEntry, path: str, values: dict[str, Any], key: str) -> None:
        inner = strip_annotation(kind)
        if self._is_refused(entry, path) or (entry.value is None and typing.get_origin(inner) is dict):
            return
        self.places[path] = entry.place
        if typing.get_origin(inner) is tuple and isinstance(entry.value, list):
            values[key] = self._read_items(typing.get_args(inner)[0], entry, path)
            return
        value = find_choice(inner, to_plain_value(entry))
        message = explain_mismatch(kind, value, path)
        if message:
            self.report_mistake(entry.place, path, message)
            del self.places[path]
        else:
            values[key] = value

    def _is_refused(self, entry: YamlEntry, path: str) -> bool:
        reason = self.refuse(path, to_plain_value(entry)) if self.refuse else ""
        if reason:
            self.report_ignored(entry.place, path, reason)
        return bool(reason)

    def _read_items(self, kind: Any, entry: YamlEntry, path: str) -> list[Any]:
        """Read the items of a list, leaving out only the bad ones."""
        good = []
        for index, item in enumerate(entry.value):
            message = explain_mismatch(kind, to_plain_value(item), path)
            if message:
                self.report_mistake(item.place, f"{path}[{index}]", message)
            elif not self._is_refused(item, f"{path}[{index}]"):
                good.append(to_plain_value(item))
                self.places[f"{path}[{len(good) - 1}]"] = item.place
        return good


def list_known_keys(kind: type[msgspec.Struct], prefix: str = "") -> dict[str, Any]:
    """Return every dotted key with its type."""
    keys: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = f"{prefix}{field.encode_name}"
        inner = strip_annotation(field.type)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            keys.update(list_known_keys(inner, name + "."))
        elif name == "models":
            keys |= {"models.urls": MODEL_URLS, **list_known_keys(ModelSettings, "models.NAME.")}
        else:
            keys[name] = field.type
    return keys


def describe_keys(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return every dotted key with its description."""
    return {key: _get_description(found) for key, found in list_known_keys(kind).items()}


def list_key_choices(kind: type[msgspec.Struct], key: str) -> list[str]:
    """List the words that a key accepts, or return [] if it accepts others too."""
    found = strip_annotation(list_known_keys(kind).get(key))
    return ["true", "false"] if found is bool else [word for word in _list_choices(found) if isinstance(word, str)]


def _get_description(kind: Any) -> str:
    notes = typing.get_args(kind)[1:] if typing.get_origin(kind) is typing.Annotated else ()
    return next((note.description for note in notes if isinstance(note, msgspec.Meta) and note.description), "")


def strip_annotation(kind: Any) -> Any:
    return typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind


def explain_mismatch(kind: Any, value: Any, path: str) -> str:
    """Explain why `value` is invalid, or return "" if it is valid. A secret is never repeated."""
    choices = _list_choices(strip_annotation(kind))
    if choices and value not in choices:
        words = [choice for choice in choices if isinstance(choice, str)]
        expected = f"expected {', '.join(words)}{_describe_value(value, path)}"
        return expected + format_suggestion(str(value), words, lead=", ")
    if isinstance(value, float) and not math.isfinite(value):
        return "expected a finite number"
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        return "the number is too large"
    if isinstance(value, str) and "\0" in value:
        return "expected a text without zero bytes"
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return _explain_refusal(*str(error).replace("`", "").partition(" - at ")[::2], _describe_value(value, path))
    return ""


def _explain_refusal(message: str, place: str, described: str) -> str:
    """Explain an error of msgspec in a value, or at a place inside the value."""
    if place.strip("$") or not message.startswith("Expected "):
        return f"{place.lstrip('$.')}: {message[0].lower()}{message[1:]}".removeprefix(": ")
    expected = message.partition(", got ")[0].removeprefix("Expected ")
    words = [TYPE_WORDS.get(word, word) for word in expected.replace(" | null", "").split(" ")]
    return f"expected {' '.join(words)}{described}"


def find_choice(kind: Any, value: Any) -> Any:
    """Return the choice equal to `value` except for case, blanks, `.`, `_` and `-`, or `value` if there is none."""
    choices = _list_choices(strip_annotation(kind)) if isinstance(value, str) else []
    if value in choices:
        return value
    same = (choice for choice in choices if isinstance(choice, str) and _fold_word(choice) == _fold_word(value))
    return next(same, value)


def _fold_word(word: str) -> str:
    return re.sub(r"[\s._-]", "", word).lower()


def _list_choices(kind: Any) -> list[Any]:
    """List the words that a Literal field accepts, also if it may be unset."""
    if typing.get_origin(kind) is typing.Literal:
        return list(typing.get_args(kind))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        found = [_list_choices(part) for part in typing.get_args(kind)]
        words = next((part for part in found if part), [])
        return [*words, None] if words else []
    return []


def _describe_value(value: Any, path: str) -> str:
    if path.lower().endswith(("apikey", "headers")):
        return ""
    if isinstance(value, list | dict):
        return f", not a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    shown = "nothing" if value is None else repr(value)
    return f", not {shown if len(shown) <= 40 else shown[:37] + '...'}"


def _explain_unknown_key(key: str, fields: typing.Mapping[str, Any], section: str) -> str:
    """Describe an unknown key and suggest the likely one in full, from this section or else from another."""
    same = [name for name in fields if fold_name(name) == fold_name(key)]
    elsewhere = [] if section or same else find_keys_named(key)
    near = same or elsewhere or suggest_names(key, fields) or find_keys_named(key)
    if not near:
        return "unknown key"
    return f"unknown key, did you mean {f'{section}.{near[0]}' if section and near[0] in fields else near[0]}?"


def find_keys_named(name: str) -> list[str]:
    """List the full keys whose last part is this name, those of the model server first."""
    found = [key for key in list_known_keys(Settings) if fold_name(key.rpartition(".")[2]) == fold_name(name)]
    return sorted(found, key=lambda key: not key.startswith("provider."))


def read_config_file(file: SourcePosition, reading: SettingsReader, memory: Path | None = None) -> YamlEntry | None:
    """Read the file's mapping with `services:` flattened, or return None if the file is missing or unusable."""
    try:
        text = read_config_text(Path(file.file))
        entry = parse_yaml(text, file) if memory is None else parse_yaml_cached(text, file, memory)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, InvalidYaml) as error:
        place = error.place if isinstance(error, InvalidYaml) else file
        why = error.reason if isinstance(error, InvalidYaml) else f"cannot be read: {error}"
        reading.report_unusable(place, "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else why)
        return None
    if entry is not None and not isinstance(entry.value, dict):
        reading.report_unusable(entry.place, "expected a mapping of settings")
        return None
    if entry is not None and "search" in entry.value:
        from ollm.config.roles import move_search

        entry = move_search(entry)
    return None if entry is None else _flatten_services(entry, reading)


def read_config_text(file: Path) -> str:
    return read_small_file(file, MAX_FILE_BYTES).decode("utf-8-sig")


def _flatten_services(entry: YamlEntry, reading: SettingsReader) -> YamlEntry:
    """Move the `services:` form to the top level, which wins if both set a key."""
    if "services" not in entry.value:
        return entry
    top = {key: child for key, child in entry.value.items() if key != "services"}
    services = entry.value["services"]
    if not isinstance(services.value, dict | None):
        reading.report_mistake(services.place, "services", "expected a mapping here")
        return YamlEntry(place=entry.place, value=top)
    for key, child in (services.value or {}).items():
        name = SERVICES.get(key)
        if name is None:
            reading.report_mistake(
                child.place, f"services.{key}", f"unknown key{format_suggestion(key, SERVICES, lead=', ')}"
            )
            continue
        top[name] = _merge_entries(child, top.get(name))
    return YamlEntry(place=entry.place, value=top)


def _merge_entries(under: YamlEntry, over: YamlEntry | None) -> YamlEntry:
    if over is None or over.value is None:
        return under
    if not isinstance(under.value, dict) or not isinstance(over.value, dict):
        return over
    return YamlEntry(place=over.place, value={**under.value, **over.value})

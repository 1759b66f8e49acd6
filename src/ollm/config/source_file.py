"""A configuration file read into entries, in either of the two forms the keys have."""

from __future__ import annotations

from pathlib import Path

from ollm.config.validation import SettingsReader
from ollm.config.yaml_cache import parse_yaml_cached
from ollm.config.yaml_tree import MAX_FILE_BYTES, InvalidYaml, SourcePosition, YamlEntry, parse_yaml
from ollm.system.small_files import read_small_file

SECTIONS = ("sessions", "snapshots", "compression", "loopDetection", "fileDiscovery", "environment")
SERVICES = {"session": "sessions", **{name: name for name in SECTIONS}}


def read_config_file(file: SourcePosition, reading: SettingsReader, memory: Path | None = None) -> YamlEntry | None:
    """The file's mapping, with `services:` brought to the top; None when there is no file or it cannot be used."""
    try:
        text = read_config_text(Path(file.file))
        entry = parse_yaml(text, file) if memory is None else parse_yaml_cached(text, file, memory)
    except FileNotFoundError:
        return None
    except InvalidYaml as error:
        reading.report_unusable(error.place, error.reason)
        return None
    except UnicodeDecodeError:
        reading.report_unusable(file, "is not UTF-8 text")
        return None
    except (OSError, ValueError) as error:
        reading.report_unusable(file, f"cannot be read: {error}")
        return None
    if entry is not None and not isinstance(entry.value, dict):
        reading.report_unusable(entry.place, "expected a mapping of settings")
        return None
    return None if entry is None else _flatten_services(entry, reading)


def read_config_text(file: Path) -> str:
    return read_small_file(file, MAX_FILE_BYTES).decode("utf-8-sig")


def _flatten_services(entry: YamlEntry, reading: SettingsReader) -> YamlEntry:
    """The `services:` form brought to the top-level one, which wins where both set a key."""
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
            reading.report_mistake(child.place, f"services.{key}", _suggest_service(key))
            continue
        top[name] = _merge_entries(child, top.get(name))
    return YamlEntry(place=entry.place, value=top)


def _merge_entries(under: YamlEntry, over: YamlEntry | None) -> YamlEntry:
    if over is None or over.value is None:
        return under
    if not isinstance(under.value, dict) or not isinstance(over.value, dict):
        return over
    return YamlEntry(place=over.place, value={**under.value, **over.value})


def _suggest_service(key: str) -> str:
    from ollm.domain.suggest import suggest_names

    near = suggest_names(key, SERVICES)
    return f"unknown key, did you mean {near[0]}?" if near else "unknown key"

"""A configuration file read into entries, in either of the two forms the keys have."""

from __future__ import annotations

from pathlib import Path

from ollm.config.validation import Reading
from ollm.config.yaml_cache import parse_or_remember
from ollm.config.yaml_tree import LARGEST_FILE, Entry, NotYaml, Place, parse

SECTIONS = ("sessions", "snapshots", "compression", "loopDetection", "fileDiscovery", "environment")
SERVICES = {"session": "sessions", **{name: name for name in SECTIONS}}


def read_entry(file: Place, reading: Reading, memory: Path | None = None) -> Entry | None:
    """The file's mapping, with `services:` brought to the top; None when there is no file or it cannot be used."""
    try:
        text = read_text(Path(file.file))
        entry = parse(text, file) if memory is None else parse_or_remember(text, file, memory)
    except FileNotFoundError:
        return None
    except NotYaml as error:
        reading.unusable(error.place, error.reason)
        return None
    except (OSError, ValueError) as error:
        reading.unusable(file, f"cannot be read: {error}")
        return None
    if entry is not None and not isinstance(entry.value, dict):
        reading.unusable(entry.place, "a mapping of settings is expected")
        return None
    return None if entry is None else _unfolded(entry, reading)


def read_text(file: Path) -> str:
    with file.open("rb") as stream:
        data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    return data.decode("utf-8-sig")


def _unfolded(entry: Entry, reading: Reading) -> Entry:
    """The `services:` form brought to the top-level one, which wins where both set a key."""
    if "services" not in entry.value:
        return entry
    top = {key: child for key, child in entry.value.items() if key != "services"}
    services = entry.value["services"]
    if not isinstance(services.value, dict | None):
        reading.wrong(services.place, "services", "a mapping is expected here")
        return Entry(place=entry.place, value=top)
    for key, child in (services.value or {}).items():
        name = SERVICES.get(key)
        if name is None:
            reading.wrong(child.place, f"services.{key}", _near_service(key))
            continue
        top[name] = _joined(child, top.get(name))
    return Entry(place=entry.place, value=top)


def _joined(under: Entry, over: Entry | None) -> Entry:
    if over is None or over.value is None:
        return under
    if not isinstance(under.value, dict) or not isinstance(over.value, dict):
        return over
    return Entry(place=over.place, value={**under.value, **over.value})


def _near_service(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, SERVICES, n=1)
    return f"unknown key, did you mean {near[0]}?" if near else "unknown key"

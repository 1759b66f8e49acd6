"""What an extension says of itself: its name, what it adds, and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from ollm.config.yaml_cache import parse_yaml_cached
from ollm.config.yaml_tree import InvalidYaml, SourcePosition, parse_yaml, to_plain_value
from ollm.domain.errors import UsageError
from ollm.domain.struct import Data
from ollm.system.small_files import read_small_file

Kind = Literal["tools", "context", "searchBackends", "providers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MANIFEST_FILE = "extension.yaml"
KEYS = {"name", "version", "description", "adds", "asks"}
NAME_PATTERN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
TARGET_PATTERN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
MAX_MANIFEST_BYTES = 64 * 1024
KIND_DESCRIPTIONS: dict[Kind, str] = {
    "tools": "tools the model can call, under your policy",
    "context": "text sent to the model every turn",
    "searchBackends": "a backend for web_search",
    "providers": "a model provider, which receives the whole conversation",
}


class Addition(Data, frozen=True):
    """One thing it adds: `target` is where it is, as `module:attribute`."""

    kind: Kind
    name: str
    target: str


class Manifest(Data, frozen=True):
    """`asks` is what its author says it needs. `place` is its folder, or the package it comes with."""

    name: str
    version: str
    description: str
    adds: tuple[Addition, ...]
    asks: tuple[str, ...] = ()
    place: str = ""

    def describe_abilities(self) -> list[str]:
        """What it will be able to do, in lines for the person who decides."""
        lines = [f"{self.name} {self.version}: {self.description}"]
        for kind in KINDS:
            names = [addition.name for addition in self.adds if addition.kind == kind]
            if names:
                lines.append(f"  adds {KIND_DESCRIPTIONS[kind]}: {', '.join(names)}")
        lines.append(f"  requests: {', '.join(self.asks) or 'nothing'}")
        lines.append(
            "  It is Python code that runs inside ollm with all your permissions; nothing enforces what it requests."
        )
        return lines


def read_manifest(folder: Path, memory: Path | None = None) -> Manifest:
    """The manifest of a folder; UsageError says everything that is wrong with it. `memory` is where what was read is
    kept, so that an unchanged file is not read as YAML again."""
    file = folder / MANIFEST_FILE
    try:
        if file.stat().st_size > MAX_MANIFEST_BYTES:
            raise UsageError(f"{file} is larger than {MAX_MANIFEST_BYTES // 1024} KiB.")
        text, place = read_small_file(file).decode("utf-8"), SourcePosition(file=str(file))
        entry = parse_yaml(text, place) if memory is None else parse_yaml_cached(text, place, memory)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read {file}: {error}.", action="An extension has one.") from error
    except InvalidYaml as error:
        raise UsageError(str(error)) from error
    document = to_plain_value(entry) if entry is not None else None
    if not isinstance(document, Mapping):
        raise UsageError(f"{file} is not a mapping.")
    faults = list(_find_faults(document, folder))
    if faults:
        raise UsageError(f"{file} cannot be used: {'; '.join(faults)}.")
    return Manifest(
        name=document["name"],
        version=str(document["version"]),
        description=str(document.get("description") or ""),
        adds=tuple(_read_additions(document["adds"])),
        asks=tuple(str(ask) for ask in document.get("asks") or ()),
        place=str(folder),
    )


def _find_faults(document: Mapping[str, Any], folder: Path) -> list[str]:
    faults = [f"unknown key {key}" for key in document if key not in KEYS]
    if not isinstance(document.get("name"), str) or not NAME_PATTERN.fullmatch(document["name"]):
        faults.append("name: expected up to 40 lowercase letters, digits and -")
    if not isinstance(document.get("version"), str | int | float):
        faults.append("version is missing")
    if not isinstance(document.get("asks") or [], list):
        faults.append("asks: expected a list")
    adds = document.get("adds")
    if not isinstance(adds, Mapping) or not adds:
        return [*faults, f"adds: expected a mapping with some of {', '.join(KINDS)}"]
    for kind, named in adds.items():
        if kind not in KINDS:
            faults.append(f"adds.{kind}: unknown; available: {', '.join(KINDS)}")
        elif not isinstance(named, Mapping):
            faults.append(f"adds.{kind}: expected a mapping of names to module:attribute")
        else:
            faults += [fault for name, target in named.items() if (fault := _check_target(kind, name, target, folder))]
    return faults


def _check_target(kind: str, name: str, target: Any, folder: Path) -> str:
    if not isinstance(target, str) or not TARGET_PATTERN.fullmatch(target):
        return f"adds.{kind}.{name}: expected module:attribute"
    module = folder.joinpath(*target.partition(":")[0].split("."))
    if not module.with_suffix(".py").is_file() and not (module / "__init__.py").is_file():
        return f"adds.{kind}.{name}: no module {target.partition(':')[0]}"
    return ""


def _read_additions(adds: Mapping[Kind, Mapping[str, str]]) -> list[Addition]:
    return [
        Addition(kind=kind, name=str(name), target=target)
        for kind, named in adds.items()
        for name, target in named.items()
    ]

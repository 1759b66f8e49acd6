"""What is told of our tools before any is called: worked out from their classes, and remembered.

Importing every tool and describing its parameters costs a good part of a short run's start. What is remembered counts
only while the files it came from have the times and sizes they had; whatever is wrong with it means working it out.
"""

from __future__ import annotations

import contextlib
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import Risk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ollm.tools.base import Tool

HERE = Path(__file__).parent
Stamp = tuple[tuple[str, int, int], ...]


class Described(Data, frozen=True):
    """A tool as models, policy and dispatch know it before it is imported."""

    name: str
    description: str
    parameters: JsonObject
    risk: Risk
    reads_only: bool
    keep: Literal["head", "ends"]


class Remembered(Data, frozen=True):
    """`stamp` holds name, time and size of every file in this package."""

    stamp: Stamp
    tools: tuple[Described, ...]


def described(places: Mapping[str, str], memory: Path | None = None) -> tuple[Described, ...]:
    """The tools by name, from `memory` when they are what they were; `places` maps names to `module:Class`."""
    if memory is None:
        return _worked_out(places)
    stamp = _stamp()
    found = _recalled(memory)
    if found is None or found.stamp != stamp:
        found = Remembered(stamp=stamp, tools=_worked_out(places))
        _remember(memory, found)
    return found.tools


def _worked_out(places: Mapping[str, str]) -> tuple[Described, ...]:
    from ollm.tools.base import spec_of

    specs = [spec_of(tool_class(place), None) for place in places.values()]
    return tuple(
        Described(
            name=spec.name,
            description=spec.description,
            parameters=spec.parameters,
            risk=spec.risk,
            reads_only=spec.reads_only,
            keep=spec.keep,
        )
        for spec in specs
    )


def tool_class(place: str) -> type[Tool[Any]]:
    """The class at `module:Class` in this package."""
    module, _, name = place.partition(":")
    found: type[Tool[Any]] = getattr(import_module(f"ollm.tools.{module}"), name)
    return found


def _stamp() -> Stamp:
    with os.scandir(HERE) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
    return tuple(sorted((name, found.st_mtime_ns, found.st_size) for name, found in files))


def _recalled(memory: Path) -> Remembered | None:
    try:
        return msgspec.json.decode(memory.read_bytes(), type=Remembered)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _remember(memory: Path, found: Remembered) -> None:
    """A home that does not exist yet is not made for it."""
    from ollm.system.atomic import make_private_directory, replace_file

    with contextlib.suppress(OSError):
        if memory.parent.parent.is_dir():
            make_private_directory(memory.parent)
            replace_file(memory, msgspec.json.encode(found))

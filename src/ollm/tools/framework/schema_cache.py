"""What is told of our tools before any is called: worked out from their classes, and remembered.

Importing every tool and describing its parameters costs a good part of a short run's start. What is remembered counts
only while every file it came from, in this package and those under it, has the time and size it had, and the libraries
are the same; whatever is wrong with it means working it out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.clock import STARTED
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import Risk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ollm.tools.framework.base import Tool

ROOT = Path(__file__).parents[2]
FLOORS = ("tools", "policy", "services", "providers", "store", "config", "system", "domain")  # what a tool may import
LIBRARIES = f"{sys.hexversion:x} {msgspec.__version__}"
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
    """`stamp` holds name, time and size of every file that had a part in it."""

    libraries: str
    stamp: Stamp
    tools: tuple[Described, ...]


def described(places: Mapping[str, str], memory: Path | None = None) -> tuple[Described, ...]:
    """The tools by name, from `memory` when they are what they were; `places` maps names to `module:Class`."""
    if memory is None:
        return _worked_out(places)
    found = _recalled(memory)
    if found is None:
        tools = _worked_out(places)
        found = Remembered(libraries=LIBRARIES, stamp=_stamp(_files()), tools=tools)
        _remember(memory, found)
    return found.tools


def _worked_out(places: Mapping[str, str]) -> tuple[Described, ...]:
    from ollm.tools.framework.base import spec_of

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


def _files() -> list[str]:
    """Everything imported that the tools may build on, as paths in our package. All of it is more than they use."""
    loaded = [(name.split("."), module.__file__) for name, module in sys.modules.items() if name.startswith("ollm.")]
    return sorted(os.path.relpath(file, ROOT) for (_, floor, *_), file in loaded if floor in FLOORS and file)


def _stamp(files: Iterable[str]) -> Stamp:
    found = ((name, os.stat(f"{ROOT}/{name}")) for name in files)  # noqa: PTH116 - a hundred of them at every start
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in found)


def _recalled(memory: Path) -> Remembered | None:
    """What is remembered and still true."""
    try:
        found = msgspec.json.decode(memory.read_bytes(), type=Remembered)
        current = found.libraries == LIBRARIES and found.stamp == _stamp(name for name, _, _ in found.stamp)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return found if current else None


def _remember(memory: Path, found: Remembered) -> None:
    """Unless a file changed since it was imported: which one was it? A home that is not there yet is not made."""
    if any(changed >= STARTED for _, changed, _ in found.stamp):
        return
    from ollm.system.atomic import make_private_directory, replace_file

    with contextlib.suppress(OSError):
        if memory.parent.parent.is_dir():
            make_private_directory(memory.parent)
            replace_file(memory, msgspec.json.encode(found), durable=False)

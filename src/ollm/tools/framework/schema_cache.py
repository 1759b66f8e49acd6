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
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import PROCESS_STARTED_NS
from ollm.domain.struct import Data
from ollm.tools.framework.base import ToolDescription, describe_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ollm.tools.framework.base import Tool

PACKAGE_ROOT = Path(__file__).parents[2]
TOOL_PACKAGES = (
    "tools",
    "policy",
    "services",
    "providers",
    "store",
    "config",
    "system",
    "domain",
)  # what a tool may import
LIBRARY_VERSIONS = f"{sys.hexversion:x} {msgspec.__version__}"
FileStamps = tuple[tuple[str, int, int], ...]


class SchemaCache(Data, frozen=True):
    """`stamp` holds name, time and size of every file that had a part in it."""

    libraries: str
    stamp: FileStamps
    tools: tuple[ToolDescription, ...]


def describe_tools(places: Mapping[str, str], memory: Path | None = None) -> tuple[ToolDescription, ...]:
    """The tools by name, from `memory` when they are what they were; `places` maps names to `module:Class`."""
    if memory is None:
        return _describe_classes(places)
    found = _load_cache(memory)
    if found is None:
        tools = _describe_classes(places)
        found = SchemaCache(libraries=LIBRARY_VERSIONS, stamp=_stamp_files(_list_files()), tools=tools)
        _save_cache(memory, found)
    return found.tools


def _describe_classes(places: Mapping[str, str]) -> tuple[ToolDescription, ...]:
    return tuple(describe_class(load_tool_class(place)) for place in places.values())


def load_tool_class(place: str) -> type[Tool[Any]]:
    """The class at `module:Class` in this package."""
    module, _, name = place.partition(":")
    found: type[Tool[Any]] = getattr(import_module(f"ollm.tools.{module}"), name)
    return found


def _list_files() -> list[str]:
    """Everything imported that the tools may build on, as paths in our package. All of it is more than they use."""
    every = sys.modules.copy()  # another thread may import something meanwhile
    loaded = [(name.split("."), module.__file__) for name, module in every.items() if name.startswith("ollm.")]
    return sorted(
        os.path.relpath(file, PACKAGE_ROOT) for (_, floor, *_), file in loaded if floor in TOOL_PACKAGES and file
    )


def _stamp_files(files: Iterable[str]) -> FileStamps:
    found = ((name, os.stat(f"{PACKAGE_ROOT}/{name}")) for name in files)  # noqa: PTH116 - a hundred of them at every start
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in found)


def _load_cache(memory: Path) -> SchemaCache | None:
    """What is remembered and still true."""
    try:
        found = msgspec.json.decode(memory.read_bytes(), type=SchemaCache)
        current = found.libraries == LIBRARY_VERSIONS and found.stamp == _stamp_files(
            name for name, _, _ in found.stamp
        )
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return found if current else None


def _save_cache(memory: Path, found: SchemaCache) -> None:
    """Unless a file changed since it was imported: which one was it? A home that is not there yet is not made."""
    if any(changed >= PROCESS_STARTED_NS for _, changed, _ in found.stamp):
        return
    from ollm.system.atomic import make_private_directory, replace_file

    with contextlib.suppress(OSError):
        if memory.parent.parent.is_dir():
            make_private_directory(memory.parent)
            replace_file(memory, msgspec.json.encode(found), durable=False)

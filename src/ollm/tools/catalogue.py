"""The single list of all built-in tools, with their dependencies. A tool is imported on its first call."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ollm.tools.framework.base import ToolDescription, ToolRegistry, add_parser, describe_class

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.domain.tools import Todo, ToolCategory
    from ollm.services.code_map.service import CodeMapService
    from ollm.services.diagnostics.service import DiagnosticsService
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_discovery.service import FileDiscoveryService
    from ollm.store.notes import NoteStore
    from ollm.tools.framework.base import Tool

DESCRIPTIONS = Path(__file__).with_name("descriptions.json")  # Written by `make format`.


class ToolServices(Protocol):
    """Services for the tools of one conversation, each created when a tool first needs it. `TOOLS` names more of them
    for single tools."""

    @property
    def edits(self) -> EditLedger: ...

    @property
    def discovery(self) -> FileDiscoveryService: ...

    @property
    def code_map(self) -> CodeMapService: ...

    def count_tokens(self, text: str) -> int: ...

    def get_result_tokens(self) -> int | None: ...

    @property
    def notes(self) -> NoteStore: ...

    @property
    def global_notes(self) -> NoteStore: ...

    @property
    def diagnostics(self) -> Lazy[DiagnosticsService]: ...
    @property
    def untrusted_servers(self) -> str: ...

    def todos_changed(self, todos: tuple[Todo, ...]) -> None: ...


def describe_classes() -> tuple[ToolDescription, ...]:
    """Describe the tools from their classes. Imports all of them."""
    return tuple(describe_class(load_tool_class(place)) for place, _ in TOOLS.values())


def load_tool_class(place: str) -> type[Tool[Any]]:
    """Load the class at `module:Class` in this package."""
    module, _, name = place.partition(":")
    found: type[Tool[Any]] = getattr(import_module(f"ollm.tools.{module}"), name)
    return found


@cache
def describe_catalogue() -> tuple[ToolDescription, ...]:
    """Return the stored tool descriptions without importing any tool."""
    return msgspec.json.decode(DESCRIPTIONS.read_bytes(), type=tuple[ToolDescription, ...])


def list_categories() -> dict[str, ToolCategory]:
    return {found.name: found.category for found in describe_catalogue() if found.category}


def build_registry(services: ToolServices) -> ToolRegistry:
    registry = ToolRegistry()
    for description in describe_catalogue():
        if description.name != "outline" or PathFinder.find_spec("tree_sitter"):  # The extra `[code]` brings it.
            place, needs = TOOLS[description.name]
            get_needs = partial(getattr, services, needs) if needs else lambda: services
            registry.register(add_parser(description, partial(load_tool_class, place), get_needs))
    return registry


TOOLS = {  # Each tool has a class and the service that its calls need; "" means all services.
    "read_file": ("read_file:ReadFile", ""),
    "read_many_files": ("read_many_files:ReadManyFiles", ""),
    "write_file": ("write_file:WriteFile", "edits"),
    "edit_file": ("edit_file:EditFile", "edits"),
    "glob": ("glob:Glob", "discovery"),
    "grep": ("grep:Grep", "discovery"),
    "ls": ("ls:Ls", "discovery"),
    "task": ("task:Task", "run_task"),
    "outline": ("outline:Outline", ""),
    "memory": ("memory:Memory", ""),
    "write_todos": ("write_todos:WriteTodos", ""),
    "goal": ("goal:GoalTool", "goals"),
    "recall": ("recall:Recall", "archive"),
    "web_fetch": ("web_fetch:WebFetch", ""),
    "web_search": ("web_search:WebSearch", "search"),
    "diagnostics": ("diagnostics:Diagnostics", ""),
    "shell": ("shell:Shell", "jobs"),
}

if __name__ == "__main__":
    lines = b",\n".join(map(msgspec.json.encode, describe_classes()))
    DESCRIPTIONS.write_bytes(b"[\n" + lines + b"\n]\n")

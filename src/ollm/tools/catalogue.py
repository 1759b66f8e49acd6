"""The single list of all built-in tools, with their dependencies. A tool is imported on its first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ollm.tools.framework.base import (
    Invocation,
    ToolDescription,
    ToolRegistry,
    ToolSpec,
    add_parser,
    bind_tool,
    describe_class,
)

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.domain.session import TaskReport, TaskRequest
    from ollm.domain.tools import Todo, ToolCategory
    from ollm.services.background_jobs import BackgroundJobs
    from ollm.services.code_map.service import CodeMapService
    from ollm.services.diagnostics.service import DiagnosticsService
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_discovery.service import FileDiscoveryService
    from ollm.services.goals import GoalKeeper
    from ollm.store.notes import NoteStore
    from ollm.tools.framework.base import Tool
    from ollm.tools.recall import Archive
    from ollm.tools.web_fetch import PageCache
    from ollm.tools.web_search import WebSearchNeeds

DESCRIPTIONS = Path(__file__).with_name("descriptions.json")  # written by `make format`


class ToolServices(Protocol):
    """Services for the tools of one conversation, each created when a tool first needs it."""

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
    def goals(self) -> GoalKeeper: ...

    @property
    def archive(self) -> Archive: ...

    @property
    def pages(self) -> PageCache: ...

    @property
    def jobs(self) -> BackgroundJobs: ...

    @property
    def diagnostics(self) -> Lazy[DiagnosticsService]: ...

    @property
    def search(self) -> WebSearchNeeds: ...

    async def run_task(self, request: TaskRequest, emit: Callable[[str], None]) -> TaskReport: ...

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
        if description.name != "outline" or PathFinder.find_spec("tree_sitter"):  # of the extra `[code]`
            registry.register(_make_spec(description, services))
    return registry


def _make_spec(description: ToolDescription, services: ToolServices) -> ToolSpec:
    place, choose_needs = TOOLS[description.name]

    def parse(arguments: Any) -> Invocation:
        return bind_tool(load_tool_class(place), arguments, choose_needs(services))

    return add_parser(description, parse)


def _get_services(services: ToolServices) -> ToolServices:
    return services


TOOLS: dict[str, tuple[str, Callable[[ToolServices], Any]]] = {
    "read_file": ("read_file:ReadFile", _get_services),
    "read_many_files": ("read_many_files:ReadManyFiles", _get_services),
    "write_file": ("write_file:WriteFile", lambda services: services.edits),
    "edit_file": ("edit_file:EditFile", lambda services: services.edits),
    "glob": ("glob:Glob", lambda services: services.discovery),
    "grep": ("grep:Grep", lambda services: services.discovery),
    "ls": ("ls:Ls", lambda services: services.discovery),
    "task": ("task:Task", lambda services: services.run_task),
    "outline": ("outline:Outline", _get_services),
    "memory": ("memory:Memory", _get_services),
    "write_todos": ("write_todos:WriteTodos", _get_services),
    "goal": ("goal:GoalTool", lambda services: services.goals),
    "recall": ("recall:Recall", lambda services: services.archive),
    "web_fetch": ("web_fetch:WebFetch", lambda services: services.pages),
    "web_search": ("web_search:WebSearch", lambda services: services.search),
    "diagnostics": ("diagnostics:Diagnostics", _get_services),
    "shell": ("shell:Shell", lambda services: services.jobs),
}

if __name__ == "__main__":
    lines = b",\n".join(map(msgspec.json.encode, describe_classes()))
    DESCRIPTIONS.write_bytes(b"[\n" + lines + b"\n]\n")

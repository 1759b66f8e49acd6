"""Every tool of ours, with what it needs: the one place that lists them. A tool is imported with its first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ollm.tools.framework.base import Invocation, ToolSpec, bind_tool
from ollm.tools.framework.registry import ToolRegistry
from ollm.tools.framework.schema_cache import ToolDescription, describe_tools, load_tool_class

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.domain.lazy import Lazy
    from ollm.domain.tools import Todo
    from ollm.services.background_jobs import BackgroundJobs
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.services.goals import GoalKeeper
    from ollm.store.notes import NoteStore
    from ollm.tools.memory import MemoryStores
    from ollm.tools.read_many_files import ReadManyFilesNeeds
    from ollm.tools.recall import Archive
    from ollm.tools.web_fetch import PageCache
    from ollm.tools.web_search import WebSearchNeeds
    from ollm.tools.write_todos import TodoList


class ToolServices(Protocol):
    """What the tools of one conversation need; each is asked for when a tool is first called."""

    @property
    def edits(self) -> EditLedger: ...

    @property
    def discovery(self) -> FileDiscoveryService: ...

    @property
    def notes(self) -> NoteStore: ...

    @property
    def global_notes(self) -> NoteStore: ...

    @property
    def goals(self) -> GoalKeeper: ...

    @property
    def archive(self) -> Archive: ...

    @property
    def pages(self) -> Lazy[PageCache]: ...

    @property
    def jobs(self) -> BackgroundJobs: ...

    @property
    def search(self) -> WebSearchNeeds: ...

    def todos_changed(self, todos: tuple[Todo, ...]) -> None: ...


def build_registry(parts: ToolServices, memory: Path | None = None) -> ToolRegistry:
    """A registry with all of them. What they are described as is remembered in the file `memory`."""
    registry = ToolRegistry()
    for found in describe_tools({name: tool for name, (tool, _) in TOOLS.items()}, memory):
        registry.register(_make_spec(found, parts))
    return registry


def _make_spec(found: ToolDescription, parts: ToolServices) -> ToolSpec:
    tool, needs = TOOLS[found.name]

    def parse(arguments: Any) -> Invocation:
        return bind_tool(load_tool_class(tool), arguments, needs(parts))

    return ToolSpec(
        name=found.name,
        description=found.description,
        parameters=found.parameters,
        parse=parse,
        risk=found.risk,
        reads_only=found.reads_only,
        keep=found.keep,
    )


def _make_many_files(parts: ToolServices) -> ReadManyFilesNeeds:
    from ollm.tools.read_many_files import ReadManyFilesNeeds

    async def find(root: Path, pattern: str) -> list[str]:
        return (await parts.discovery.find(root, pattern)).paths

    return ReadManyFilesNeeds(ledger=parts.edits, find=find)


def _make_notes(parts: ToolServices) -> MemoryStores:
    from ollm.tools.memory import MemoryStores

    return MemoryStores(workspace=parts.notes, everywhere=parts.global_notes)


def _make_todos(parts: ToolServices) -> TodoList:
    from ollm.tools.write_todos import TodoList

    return TodoList(store=parts.notes, changed=parts.todos_changed)


TOOLS: dict[str, tuple[str, Callable[[ToolServices], Any]]] = {
    "read_file": ("read_file:ReadFile", lambda parts: parts.edits),
    "read_many_files": ("read_many_files:ReadManyFiles", _make_many_files),
    "write_file": ("write_file:WriteFile", lambda parts: parts.edits),
    "edit_file": ("edit_file:EditFile", lambda parts: parts.edits),
    "glob": ("glob:Glob", lambda parts: parts.discovery),
    "grep": ("grep:Grep", lambda parts: parts.discovery),
    "ls": ("ls:Ls", lambda parts: parts.discovery),
    "memory": ("memory:Memory", _make_notes),
    "write_todos": ("write_todos:WriteTodos", _make_todos),
    "goal": ("goal:GoalTool", lambda parts: parts.goals),
    "recall": ("recall:Recall", lambda parts: parts.archive),
    "web_fetch": ("web_fetch:WebFetch", lambda parts: parts.pages.get()),
    "web_search": ("web_search:WebSearch", lambda parts: parts.search),
    "shell": ("shell:Shell", lambda parts: parts.jobs),
}

"""Every tool of ours, with what it needs: the one place that lists them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ollm.domain.struct import Data
from ollm.domain.tools import Todo
from ollm.services.background_jobs import BackgroundJobs
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.goals import GoalKeeper
from ollm.store.notes import NoteStore
from ollm.tools.recall import Archive
from ollm.tools.registry import ToolRegistry
from ollm.tools.web_fetch import PageCache
from ollm.tools.web_search import Search


class ShelfParts(Data, frozen=True):
    """What the tools of one conversation are registered with."""

    edits: EditLedger
    discovery: FileDiscoveryService
    notes: NoteStore
    global_notes: NoteStore
    todos_changed: Callable[[tuple[Todo, ...]], None]
    goals: GoalKeeper
    archive: Archive
    pages: PageCache
    jobs: BackgroundJobs
    search: Search


def stocked(parts: ShelfParts) -> ToolRegistry:
    """A registry with all of them."""
    registry = ToolRegistry()
    _register_files(registry, parts)
    _register_notes(registry, parts)
    _register_web(registry, parts)
    _register_shell(registry, parts)
    return registry


def _register_files(registry: ToolRegistry, parts: ShelfParts) -> None:
    from ollm.tools.edit_file import EditFile
    from ollm.tools.glob import Glob
    from ollm.tools.grep import Grep
    from ollm.tools.ls import Ls
    from ollm.tools.read_file import ReadFile
    from ollm.tools.read_many_files import ManyFiles, ReadManyFiles
    from ollm.tools.write_file import WriteFile

    async def find(root: Path, pattern: str) -> list[str]:
        return (await parts.discovery.find(root, pattern)).paths

    registry.register(ReadFile, parts.edits)
    registry.register(ReadManyFiles, ManyFiles(ledger=parts.edits, find=find))
    registry.register(WriteFile, parts.edits)
    registry.register(EditFile, parts.edits)
    registry.register(Glob, parts.discovery)
    registry.register(Grep, parts.discovery)
    registry.register(Ls, parts.discovery)


def _register_notes(registry: ToolRegistry, parts: ShelfParts) -> None:
    from ollm.tools.goal import GoalTool
    from ollm.tools.memory import Memory, Notes
    from ollm.tools.recall import Recall
    from ollm.tools.write_todos import TodoList, WriteTodos

    registry.register(Memory, Notes(workspace=parts.notes, everywhere=parts.global_notes))
    registry.register(WriteTodos, TodoList(store=parts.notes, changed=parts.todos_changed))
    registry.register(GoalTool, parts.goals)
    registry.register(Recall, parts.archive)


def _register_web(registry: ToolRegistry, parts: ShelfParts) -> None:
    from ollm.tools.web_fetch import WebFetch
    from ollm.tools.web_search import WebSearch

    registry.register(WebFetch, parts.pages)
    registry.register(WebSearch, parts.search)


def _register_shell(registry: ToolRegistry, parts: ShelfParts) -> None:
    from ollm.tools.shell import Shell

    registry.register(Shell, parts.jobs)

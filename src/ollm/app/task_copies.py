"""Copies of the workspace for tasks that write side by side. Their changes come back in the order of the calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec.structs import replace

from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.events import Notice
from ollm.domain.session import TaskReport
from ollm.domain.text import format_names

if TYPE_CHECKING:
    from ollm.app.toolbox import Toolbox
    from ollm.app.worktrees import WorktreeManager
    from ollm.services.worktrees import Worktree

MAX_NAMED_FILES = 12
CONFLICT = "Its changes conflict with the files as they are now and were not applied: {names}. "
KEPT = "The branch {branch} has its changes: git diff {branch}^ {branch}"
Result = TypeVar("Result")


class TaskCopies:
    """The copies of a conversation's tasks. `toolbox` is the conversation's own."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._running: list[asyncio.Event] = []  # ends of the tasks that write, in the order of their calls
        self._git = asyncio.Lock()
        self._alone = asyncio.Lock()

    @contextmanager
    def join_line(self) -> Iterator[list[asyncio.Event]]:
        """Take the next place in the order of the calls. Yields the ends of the tasks before it."""
        before, end = list(self._running), asyncio.Event()
        self._running.append(end)
        try:
            yield before
        finally:
            self._running.remove(end)
            end.set()

    async def run(
        self, title: str, before: list[asyncio.Event], work: Callable[[Path | None], Awaitable[TaskReport]]
    ) -> TaskReport:
        """Run a task in a copy and bring its changes back. Without git, tasks take turns in the workspace itself."""
        manager = await asyncio.to_thread(self._find_manager)
        if manager is None:
            async with self._alone:
                return await work(None)
        async with self._git:
            base = await asyncio.to_thread(manager.worktrees.take_snapshot)
        async with manager.open_copy(base) as (copy, folder):
            try:
                report = await work(folder)
                for end in before:
                    await end.wait()
            except BaseException as error:
                kept = await finish_first(self._keep_unfinished(manager, copy, title))
                if kept and isinstance(error, ToolFailure):
                    raise ToolFailure(error.kind, f"{error} {kept}") from error
                raise
            return await finish_first(self._bring_back(manager, copy, report, title))

    def _find_manager(self) -> WorktreeManager | None:
        """Return None if there is no git, or an editor has files open."""
        from ollm.app.worktrees import WorktreeManager

        scope = self._toolbox.scope
        manager = WorktreeManager(scope.process, scope.path, self._tell)
        try:
            return manager if manager.worktrees and self._toolbox.editor is None else None
        except OllmError:
            return None

    async def _bring_back(self, manager: WorktreeManager, copy: Worktree, report: TaskReport, title: str) -> TaskReport:
        """Apply the changes as one recorded edit of each file, or keep them on a branch if they conflict."""
        toolbox, worktrees = self._toolbox, manager.worktrees
        paths = [worktrees.here / name for name in await asyncio.to_thread(worktrees.list_changes, copy)]
        if not paths:
            return report
        names = [os.path.relpath(path, worktrees.here / worktrees.prefix) for path in paths]
        async with self._git:
            await toolbox.checkpoint_observer.before_change([str(path) for path in paths])
            before = {path: read_content(path) for path in paths}
            try:
                await asyncio.to_thread(worktrees.apply, copy)
            except OllmError:
                branch = await asyncio.to_thread(worktrees.keep, copy, title)
                problem = CONFLICT.format(names=format_names(names, MAX_NAMED_FILES)) + KEPT.format(branch=branch)
                self._tell(f"{title}: {problem}", "warning")
                return replace(report, problem=f"{report.problem} {problem}".strip())
            for path in paths:
                after = read_content(path)
                if before[path] is not None or after is not None:
                    toolbox.edits.save_undo_copy(path, before[path], after or b"")
            failures = [await self._check(path) for path in paths if path.is_file()]
            await toolbox.checkpoint_observer.after_changes()
        problem = "\n".join(filter(None, (report.problem, *failures)))
        return replace(report, changed=tuple(names), problem=problem)

    async def _check(self, path: Path) -> str:
        return await self._toolbox.checks.check_edit(path, False) if self._toolbox.checks else ""

    async def _keep_unfinished(self, manager: WorktreeManager, copy: Worktree, title: str) -> str:
        if not await asyncio.to_thread(manager.worktrees.list_changes, copy):
            return ""
        kept = KEPT.format(branch=await asyncio.to_thread(manager.worktrees.keep, copy, title))
        self._tell(f"{title} did not finish. {kept}", "warning")
        return kept

    def _tell(self, text: str, level: Literal["info", "warning"] = "info") -> None:
        self._toolbox.storage.stream.emit(Notice(level=level, text=text))


def read_content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


async def finish_first(work: Awaitable[Result]) -> Result:
    """Finish the work even if the turn is stopped meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise

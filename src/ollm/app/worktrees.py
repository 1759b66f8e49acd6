"""Worktrees for conversations: opened with their setup and the trust of the main workspace, and finished. Also copies
of the workspace for tasks that write side by side; their changes come back in the order of the calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from ollm.app.process import ProcessScope
from ollm.app.toolbox import Toolbox, run_tool_call
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import NotFoundError, OllmError, ToolFailure
from ollm.domain.events import Notice
from ollm.domain.messages import ToolCall
from ollm.domain.session import TaskReport
from ollm.domain.text import format_names
from ollm.runtime.base import ConversationOptions
from ollm.services.worktrees import Ending, Worktree, Worktrees
from ollm.system.atomic import lock_directory
from ollm.system.path_names import find_steering_name

SETUP_TIMEOUT_SECONDS = 1800


class WorktreeManager:
    """The worktrees of a workspace. `tell` shows progress. Raises UsageError outside of a git repository."""

    def __init__(self, process: ProcessScope, workspace: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self._process = process
        self._workspace = workspace
        self._tell = tell

    @cached_property
    def worktrees(self) -> Worktrees:
        return Worktrees(self._workspace, self._process.settings.worktree, self._process.environment)

    async def open(self, name: str) -> Path:
        """Return the workspace in the worktree of this name. It is created if there is none. Its setup runs until it
        has succeeded once."""
        trusted = self._list_trusted(self.worktrees.main_workspace)
        worktree, ready = await asyncio.to_thread(self.worktrees.create, name, trusted)
        if not ready:
            self._tell(f"Preparing worktree {name} in {worktree.path}.")
            with ExitStack() as stack:  # Another process may be preparing it.
                await asyncio.to_thread(stack.enter_context, lock_directory(worktree.path))
                if not (await asyncio.to_thread(self.worktrees.create, name, trusted))[1]:
                    await self._prepare(self.worktrees.main_workspace, worktree)
        return self.worktrees.locate(worktree)

    @asynccontextmanager
    async def open_copy(self, base: str = "") -> AsyncIterator[tuple[Worktree, Path]]:
        """Create a copy of the files as they are now, or as in a snapshot, with its workspace, and remove it after."""
        making = asyncio.create_task(
            asyncio.to_thread(self.worktrees.create_copy, base, self._list_trusted(self._workspace))
        )
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:  # Git goes on in its thread, so its copy is removed first.
            await asyncio.to_thread(self._remove_copy, await making)
            raise
        try:
            folder = self.worktrees.locate(made)
            await self._prepare(self._workspace, made)
            if self._process.settings.worktree.setup:  # Changes of the setup do not count as the task's changes.
                made = replace(made, base=await asyncio.to_thread(self.worktrees.commit_changes, made, "Setup"))
            yield made, folder
        finally:
            if rescued := await asyncio.shield(asyncio.to_thread(self._remove_copy, made)):
                self._tell(rescued)

    def _remove_copy(self, copy: Worktree) -> str:
        rescued = ""
        with suppress(OllmError, OSError):
            rescued = self.worktrees.rescue(copy.path)
        self.worktrees.remove(copy.path)
        self._forget_trust(copy)
        return rescued

    def _list_trusted(self, workspace: Path) -> tuple[str, ...]:
        """List the files that trust covers, which a worktree needs even if git does not track them."""
        state = self._process.trust_book.get_state(workspace)
        return state.files if state.trusted else ()

    async def _prepare(self, workspace: Path, worktree: Worktree) -> None:
        folder, book = self.worktrees.locate(worktree), self._process.trust_book
        book.extend(workspace, folder)
        trusted = book.is_trusted(folder)
        succeeded = await self._set_up(folder)
        state = book.get_state(folder)
        steering = any(find_steering_name(name) for name in state.added)
        if trusted and state.added and not (state.changed or state.removed or steering):
            book.trust(folder)  # The trusted settings name files that the setup makes.
        if succeeded:
            await asyncio.to_thread(self.worktrees.mark_ready, worktree)

    async def _set_up(self, folder: Path) -> bool:
        for command in self._process.settings.worktree.setup:
            self._tell(f"Running {command}")
            code, output = await self.run_command(folder, command, SETUP_TIMEOUT_SECONDS)
            if code:
                self._tell(f"The setup of the worktree failed: {command}\n{output.strip()[-2000:]}")
                return False
        return True

    async def run_command(
        self, folder: Path, command: str, timeout: float, flags: dict[str, Any] | None = None
    ) -> tuple[int, str]:
        """Run a command of the settings or the command line like an approved shell command, in the sandbox. Returns
        its exit code, as a shell would, and its output."""
        call = ToolCall(id="setup", name="shell", arguments={"command": command, "timeout": timeout})
        options = ConversationOptions(workspace=folder, yes=True, flags=flags or {})
        done = await run_tool_call(options, call, lambda _: None)
        if done.error or done.result is None:
            return 124 if done.error and done.error.type == "Timeout" else 126, done.error.message if done.error else ""
        return done.result.exit_code or 0, done.result.llm_content

    def find_current(self) -> Worktree | None:
        """Return the worktree that this workspace is in."""
        return self.worktrees.find_around(self._workspace)

    def finish(self, worktree: Worktree, ending: Ending) -> str:
        """Merge or drop a worktree that no session is open in, and return a sentence about it."""
        lease = WorkspaceScope(self._process, self.worktrees.locate(worktree)).create_lease()
        lease.acquire()
        try:
            text = self.worktrees.finish(worktree, ending, self._name_work(worktree))
        finally:
            lease.release()
        if not worktree.path.exists():
            self._forget_trust(worktree)
        return text

    def _name_work(self, worktree: Worktree) -> str:
        """Return a subject for the commit: the title of the last session that worked there."""
        rows, place = self._process.session_index.list_sessions(), str(self.worktrees.locate(worktree))
        titles = (row["title"] for row in rows if row["workspace"] == place)
        return next(filter(None, titles), f"Changes of worktree {worktree.name}")

    def _forget_trust(self, worktree: Worktree) -> None:
        with suppress(NotFoundError):
            self._process.trust_book.revoke(self.worktrees.locate(worktree))


def find_session_folder(process: ProcessScope, workspace: Path, prefix: str) -> Path:
    """Find the folder that a session works in, if it is another worktree of this workspace; else return this one."""
    try:
        files = process.session_files
        folder = files.describe_session(files.places.find(prefix)).metadata.workspace
    except OllmError:
        return workspace  # Opening the session reports the error.
    return workspace if folder == str(workspace) else WorkspaceScope(process, workspace).locate_session(folder)


MAX_NAMED_FILES = 12
CONFLICT = "Its changes conflict with the files as they are now and were not applied: {names}. "
KEPT = "The branch {branch} has its changes: git diff {branch}^ {branch}"
Result = TypeVar("Result")


class TaskCopies:
    """The copies of a conversation's tasks. `toolbox` is the conversation's own."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._running: list[asyncio.Event] = []  # Ends of writing tasks, in the order of their calls.
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

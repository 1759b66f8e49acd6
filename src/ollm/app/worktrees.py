"""Worktrees for conversations: opened with their setup and the trust of the main workspace, and finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from ollm.app.process import ProcessScope
from ollm.app.toolbox import run_tool_call
from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.messages import ToolCall
from ollm.runtime.base import ConversationOptions
from ollm.services.worktrees import Worktree, Worktrees

SETUP_TIMEOUT_SECONDS = 1800
Ending = Literal["merge", "drop"]


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
        """Return the workspace in the worktree of this name. It is created and set up if there is none."""
        worktree, new = await asyncio.to_thread(
            self.worktrees.create, name, self._list_trusted(self.worktrees.main_workspace)
        )
        folder = self.worktrees.locate(worktree)
        if new:
            self._tell(f"Created worktree {name} in {worktree.path}.")
            await self._prepare(self.worktrees.main_workspace, folder)
        return folder

    @asynccontextmanager
    async def open_copy(self, base: str = "") -> AsyncIterator[tuple[Worktree, Path]]:
        """Create a copy of the files as they are now, or as in a snapshot, with its workspace, and remove it after."""
        making = asyncio.create_task(
            asyncio.to_thread(self.worktrees.create_copy, base, self._list_trusted(self._workspace))
        )
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:  # git goes on in its thread: what it made is removed first
            await asyncio.to_thread(self._remove_copy, await making)
            raise
        try:
            folder = self.worktrees.locate(made)
            await self._prepare(self._workspace, folder)
            if self._process.settings.worktree.setup:  # what it made is no change
                made = replace(made, base=await asyncio.to_thread(self.worktrees.commit_changes, made, "Setup"))
            yield made, folder
        finally:
            await asyncio.shield(asyncio.to_thread(self._remove_copy, made))

    def _remove_copy(self, copy: Worktree) -> None:
        self.worktrees.remove(copy)
        self._forget_trust(copy)

    def _list_trusted(self, workspace: Path) -> tuple[str, ...]:
        """List the files that trust covers, which a worktree needs even if git does not track them."""
        state = self._process.trust_book.get_state(workspace)
        return state.files if state.trusted else ()

    async def _prepare(self, workspace: Path, folder: Path) -> None:
        self._process.trust_book.extend(workspace, folder)
        for command in self._process.settings.worktree.setup:
            self._tell(f"Running {command}")
            passed, output = await self.run_command(folder, command, SETUP_TIMEOUT_SECONDS)
            if not passed:
                self._tell(f"The setup of the worktree failed: {command}\n{output.strip()[-2000:]}")
                return

    async def run_command(self, folder: Path, command: str, timeout: float) -> tuple[bool, str]:
        """Run a command of the settings or the command line like an approved shell command, in the sandbox. Returns
        True if it ended with exit code 0, and its output."""
        call = ToolCall(id="setup", name="shell", arguments={"command": command, "timeout": timeout})
        done = await run_tool_call(ConversationOptions(workspace=folder, yes=True), call, lambda _: None)
        if done.error or done.result is None:
            return False, done.error.message if done.error else ""
        return not done.result.exit_code, done.result.llm_content

    def find_current(self) -> Worktree | None:
        """Return the worktree that this workspace is in."""
        return self.worktrees.find_around(self._workspace)

    def describe(self, worktree: Worktree) -> str:
        """Describe the changes of a worktree in a few words."""
        return self.worktrees.diff(worktree, "--shortstat").strip() or "no changes"

    def ask_before(self, worktree: Worktree, ending: Ending) -> str:
        """Return the question that the person must answer first, or "" if there is none."""
        if ending == "drop":
            return f"Drop the worktree {worktree.name} ({self.describe(worktree)})? Files that git ignores are deleted."
        names = ", ".join(self.worktrees.list_steering(worktree))
        return f"The worktree {worktree.name} changes files that steer tools: {names}. Merge it?" if names else ""

    def finish(self, worktree: Worktree, ending: Ending) -> str:
        """Merge or drop a worktree and return a sentence about it."""
        end = self.worktrees.merge if ending == "merge" else self.worktrees.drop
        text = end(worktree, f"Work in {worktree.name}")
        if not worktree.path.exists():
            self._forget_trust(worktree)
        return text

    def _forget_trust(self, worktree: Worktree) -> None:
        with suppress(NotFoundError):
            self._process.trust_book.revoke(self.worktrees.locate(worktree))


def find_session_folder(process: ProcessScope, workspace: Path, prefix: str) -> Path:
    """Find the folder that a session works in, if it is another worktree of this workspace; else return this one."""
    from ollm.app.workspace import WorkspaceScope

    try:
        files = process.session_files
        folder = files.describe_session(files.places.find(prefix)).metadata.workspace
    except OllmError:
        return workspace  # opening the session reports it
    return workspace if folder == str(workspace) else WorkspaceScope(process, workspace).locate_session(folder)

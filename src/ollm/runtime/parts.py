"""Parts of a conversation, assembled by `app`, and its mutable state: model, approvals, plan, steps so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from ollm.domain.clock import Clock, monotonic, now
from ollm.domain.context import Approval, ModeName, Usage
from ollm.domain.lazy import Lazy
from ollm.domain.session import ChatSession, TaskReport, TaskRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.message_bus import MessageBus
    from ollm.runtime.base import Attachment, EventStream
    from ollm.runtime.calls.dispatch import Dispatch
    from ollm.runtime.checks import Checks
    from ollm.runtime.model.model import Model
    from ollm.runtime.model.role_models import RoleModels
    from ollm.runtime.prompt.compaction import Compactor
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.runtime.session import OpenSession
    from ollm.runtime.small_models.project_files import ProjectFiles
    from ollm.services.agents import Agent
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_checkpoints.service import FileCheckpoints
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.message_search.session_archive import SessionArchive
    from ollm.services.snapshots import SnapshotManager
    from ollm.services.worktrees import Worktree, Worktrees
    from ollm.store.notes import NoteStore
    from ollm.system.sandbox.sandbox import Sandbox
    from ollm.tools.framework.base import ToolContext, ToolRegistry


class ConversationState(msgspec.Struct, kw_only=True):
    """Mutable state. `approval` is chosen apart from the mode's; `last_loop` is why the last turn was stopped."""

    model: Model
    approval: Approval = "ask"
    has_rules: bool  # Without configured rules, policy says nothing about external tools.
    auto_switch: Literal["off", "propose", "on"] = "off"
    proposed_modes: set[ModeName] = msgspec.field(default_factory=set)
    last_loop: str = ""
    chosen_model: str = ""  # The next session keeps the name given with /model.
    usage: Usage = Usage()
    cost: float = 0.0
    seconds: float = 0.0
    material: tuple[str, tuple[Attachment, ...]] = ("", ())  # A command prepared these parts for that text.
    answer_schema: dict[str, Any] | None = None  # Answers bound to a schema call no tools.
    before_model_change: Callable[[], Awaitable[None]] | None = None  # It is called while the old server is connected.
    count_unread: Callable[[], Awaitable[int | None]] | None = None  # It counts tokens to read after a restore.

    async def sees(self) -> bool:
        """Return True if the current model supports images. May query its server."""
        return await self.model.supports_images()


class TaskStarter(Protocol):
    """Runs tasks. `take_usage` returns the tokens they used since its last call, and their cost."""

    async def run(self, request: TaskRequest, emit: Callable[[str], None]) -> TaskReport: ...

    def take_usage(self) -> tuple[Usage, float]: ...

    def list_agents(self) -> list[Agent]: ...


class WorktreeActions(Protocol):
    """The worktrees of a workspace. All but `open` block."""

    @property
    def worktrees(self) -> Worktrees: ...

    async def open(self, name: str) -> Path: ...

    def find_current(self) -> Worktree | None: ...

    def finish(self, worktree: Worktree, ending: Literal["merge", "drop"]) -> str: ...


class ConversationParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a conversation, built elsewhere. Only `state` and the parts themselves change."""

    workspace: Path
    find_directories: Callable[[str], tuple[Path, ...]]
    notices: list[str]

    state: ConversationState
    session: OpenSession
    stream: EventStream
    prompt: Prompt
    compactor: Compactor
    loops: LoopDetectionService
    snapshots: SnapshotManager
    notes: Lazy[NoteStore]
    archive: Lazy[SessionArchive]
    list_sessions: Callable[[], list[ChatSession]]

    dispatch: Lazy[Dispatch]
    registry: Lazy[ToolRegistry]
    policy: Lazy[PolicyEngine]
    bus: Lazy[MessageBus]
    edits: Lazy[EditLedger]
    sandbox: Lazy[Sandbox]
    project_files: Lazy[ProjectFiles]
    checkpoints: Lazy[FileCheckpoints]
    files: Lazy[ToolContext]
    checkpoints_enabled: bool
    mcp: McpServers | None = None
    tasks: Lazy[TaskStarter] | None = None
    checks: Checks | None = None
    roles: Lazy[RoleModels] | None = None

    worktrees: Lazy[WorktreeActions]
    choose_model: Callable[[str], Awaitable[Model]]
    trust: Callable[[bool], str]
    export: Callable[[str, Path], None]
    add_root: Callable[[Path], None]
    asked_to_close: Callable[..., bool]
    closing: AsyncExitStack
    clock: Clock = now
    monotonic: Callable[[], float] = monotonic

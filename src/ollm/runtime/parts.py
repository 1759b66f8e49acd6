"""What a conversation is made of: `app` puts it together, the conversation and its commands work with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.domain.clock import Clock, monotonic, now
from ollm.domain.lazy import Lazy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.message_bus import MessageBus
    from ollm.runtime.base import EventStream
    from ollm.runtime.calls.dispatch import Dispatch
    from ollm.runtime.model.model import Model
    from ollm.runtime.prompt.compaction import Compactor
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.runtime.session import OpenSession
    from ollm.runtime.small_models.project_files import ProjectFiles
    from ollm.runtime.state import ConversationState, Plan
    from ollm.runtime.task_offer import TaskStarter
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_checkpoints import FileCheckpoints
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.snapshots import SnapshotManager
    from ollm.store.notes import NoteStore
    from ollm.system.sandbox.sandbox import Sandbox
    from ollm.tools.framework.base import ToolContext, ToolRegistry
    from ollm.tools.recall import Archive


class ConversationParts(msgspec.Struct, frozen=True, kw_only=True):
    """Handed in, never built here. What changes is in `state`, and in the parts themselves."""

    workspace: Path
    command_directories: tuple[Path, ...]  # where `/NAME` finds NAME.md
    skill_directories: tuple[Path, ...]
    notices: list[str]  # what the person is told when it opens

    state: ConversationState
    session: OpenSession
    stream: EventStream
    prompt: Prompt
    compactor: Compactor
    loops: LoopDetectionService
    plan: Plan
    snapshots: SnapshotManager
    notes: Lazy[NoteStore]
    archive: Lazy[Archive]
    workspace_sessions: Lazy[WorkspaceContext]

    dispatch: Lazy[Dispatch]
    registry: Lazy[ToolRegistry]
    policy: Lazy[PolicyEngine]
    bus: Lazy[MessageBus]
    edits: Lazy[EditLedger]
    sandbox: Lazy[Sandbox]
    project_files: Lazy[ProjectFiles]
    left_out: frozenset[str] = frozenset()  # parts of the help for small models, while they are measured
    checkpoints: Lazy[FileCheckpoints]
    files: Lazy[ToolContext]  # as an editor has them, where there is one
    checkpoints_enabled: bool
    mcp: McpServers | None = None
    tasks: Lazy[TaskStarter] | None = None

    choose_model: Callable[[str], Awaitable[Model]]
    trust: Callable[[bool], str]
    export: Callable[[str, Path], None]
    asked_to_close: Callable[..., bool]
    closing: AsyncExitStack
    clock: Clock = now
    monotonic: Callable[[], float] = monotonic

    @property
    def model(self) -> Model:
        """The model of the moment."""
        return self.state.model

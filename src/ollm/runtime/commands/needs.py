"""What the slash commands need of a conversation, family by family; a conversation's parts have all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ollm.runtime.changes import Changeable

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.domain.tasks import AgentListing
    from ollm.domain.workspace import ChatSession
    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.runtime.plan import Plan
    from ollm.runtime.prompt.compaction import Compactor
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_checkpoints import FileCheckpoints
    from ollm.store.notes import NoteStore
    from ollm.tools.framework.base import ToolContext
    from ollm.tools.recall import Archive


class WorkspaceSessions(Protocol):
    """The sessions of the workspace."""

    def list_sessions(self) -> list[ChatSession]: ...


class ContextNeeds(Changeable, Protocol):
    """For commands about what the model sees."""

    @property
    def compactor(self) -> Compactor: ...

    @property
    def archive(self) -> Lazy[Archive]: ...


class SessionNeeds(Changeable, Protocol):
    """For commands about this session and others."""

    @property
    def workspace(self) -> Path: ...

    @property
    def workspace_sessions(self) -> Lazy[WorkspaceSessions]: ...

    @property
    def export(self) -> Callable[[str, Path], None]: ...


class RewindNeeds(Changeable, Protocol):
    """For commands that go back."""

    @property
    def checkpoints(self) -> Lazy[FileCheckpoints]: ...

    @property
    def checkpoints_enabled(self) -> bool: ...

    @property
    def files(self) -> Lazy[ToolContext]: ...


class AgentSource(Protocol):
    """Knows the agents people defined."""

    def list_agents(self) -> list[AgentListing]: ...


class SettingsNeeds(Changeable, Protocol):
    """For commands that change how the agent works."""

    @property
    def mcp(self) -> McpServers | None: ...

    @property
    def trust(self) -> Callable[[bool], str]: ...

    @property
    def command_directories(self) -> tuple[Path, ...]: ...

    @property
    def skill_directories(self) -> tuple[Path, ...]: ...

    @property
    def tasks(self) -> Lazy[AgentSource] | None: ...

    @property
    def workspace(self) -> Path: ...


class WorkNeeds(RewindNeeds, Protocol):
    """For commands about goals, plan, todos, memory and edits."""

    @property
    def prompt(self) -> Prompt: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def notes(self) -> Lazy[NoteStore]: ...

    @property
    def edits(self) -> Lazy[EditLedger]: ...

    @property
    def policy(self) -> Lazy[PolicyEngine]: ...


class McpNeeds(Protocol):
    """For `/mcp`."""

    @property
    def prompt(self) -> Prompt: ...

    @property
    def mcp(self) -> McpServers | None: ...


class CommandNeeds(ContextNeeds, SessionNeeds, SettingsNeeds, WorkNeeds, McpNeeds, Protocol):
    """For all of them."""

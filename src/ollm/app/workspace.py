"""What all conversations in one workspace share: the boundary, the policy, its memory."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.process import Process

if TYPE_CHECKING:
    from ollm.config.load import Loaded
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.rules import RuleSet
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.store.notes import NoteStore
    from ollm.store.workspace_db import WorkspaceDatabase
    from ollm.system.paths import Boundary


class WorkspaceScope:
    """What all conversations in one workspace share: the boundary, the policy, its memory."""

    def __init__(self, process: Process, path: Path) -> None:
        self.process = process
        self.path = path

    @cached_property
    def boundary(self) -> Boundary:
        from ollm.system.paths import Boundary

        roots = [self.process.place(root, self.path) for root in self.process.settings.tools.allowed_roots]
        return Boundary.around(self.path, roots, user_home=self.process.user_home, ollm_home=self.process.home.root)

    @cached_property
    def database(self) -> WorkspaceDatabase:
        from ollm.store.workspace_db import WorkspaceDatabase
        from ollm.store.workspace_place import workspace_directory

        return WorkspaceDatabase(workspace_directory(self.path, self.process.home))

    @cached_property
    def notes(self) -> NoteStore:
        from ollm.store.migrations import WORKSPACE
        from ollm.store.notes import NoteStore
        from ollm.store.workspace_place import workspace_directory

        def locate() -> Path:
            return workspace_directory(self.path, self.process.home) / "memory.db"

        return NoteStore(locate, WORKSPACE, clock=self.process.clock)

    @cached_property
    def discovery(self) -> FileDiscoveryService:
        from ollm.services.file_discovery import FileDiscoveryService

        named = self.process.environment.get("XDG_CONFIG_HOME")
        settings, home = self.process.settings.file_discovery, self.process.user_home
        return FileDiscoveryService(settings, home, Path(named) if named else None)

    @cached_property
    def context(self) -> WorkspaceContext:
        from ollm.runtime.resume.workspace_sessions import WorkspaceContext

        context = WorkspaceContext(
            self.path, self.database, self.process.library.summaries, self.process.settings.resume
        )
        context.settle()
        return context

    def close(self) -> None:
        """Let go of the databases and watches that were opened."""
        for name in ("database", "notes", "discovery"):
            if name in self.__dict__:
                getattr(self, name).close()

    def trust(self, yes: bool) -> str:
        """What /trust says, and does when it is confirmed. The files count from the next conversation on."""
        book = self.process.trust
        state = book.state(self.path)
        if state.trusted:
            return f"{state.workspace} is trusted since {state.since}."
        changed = [*state.added, *state.changed, *state.removed] if state.known else state.files
        listed = "".join(f"\n  {name}" for name in changed) or " no files of its own"
        if not yes:
            return f"{state.workspace} is not trusted. It brings:{listed}"
        book.trust(self.path)
        return f"{state.workspace} is trusted from the next conversation on, with:{listed}"

    def policy(self, grants: tuple[str, ...] = ()) -> PolicyEngine:
        from ollm.policy.engine import PolicyEngine
        from ollm.policy.grants import GrantBook

        return PolicyEngine(
            rule_set(self.process.loaded),
            self.boundary,
            grants=GrantBook(self.process.home.grants, grants),
            approval=self.process.settings.policy.approval,
            trusted=self.process.trusted,
        )

    def policy_of(self, file: Path) -> PolicyEngine:
        """The policy a file of rules makes when it stands in place of all others, built-in ones and grants too."""
        from ollm.config.load import load_policy
        from ollm.policy.engine import PolicyEngine

        loaded = load_policy(file)
        approval = loaded.usable().policy.approval
        return PolicyEngine(
            rule_set(loaded, builtin=False), self.boundary, approval=approval, trusted=self.process.trusted
        )


def rule_set(loaded: Loaded, *, builtin: bool = True) -> RuleSet:
    """The configured rules with where each stands."""
    from ollm.policy.rules import RuleSet, Source, read_rules

    rules = [
        rule
        for entry, where in zip(loaded.settings.policy.rules, loaded.rule_places, strict=True)
        for rule in read_rules(
            [entry],
            Source(file=where.place.file, lines=(where.place.line,), workspace=where.layer == "workspace"),
        )
    ]
    return RuleSet(rules=tuple(rules), default_action=loaded.settings.policy.default_action, builtin=builtin)

"""Objects that all conversations in one workspace share: the boundary, the policy, its memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.app.process import ProcessScope
from ollm.config.environment import Home
from ollm.domain.clock import format_age
from ollm.domain.errors import NotFoundError
from ollm.domain.lazy import Lazy
from ollm.policy.trust import find_named_files, read_configuration
from ollm.store.workspace_place import (
    ensure_fallback_directory,
    ensure_workspace_directory,
    find_main_workspace,
    find_repository,
    get_checkpoint_directory,
    get_worktree_directory,
    keep_identity,
)
from ollm.tools.catalogue import list_categories

if TYPE_CHECKING:
    from ollm.config.load import LoadedSettings
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.rules import RuleSet
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.services.diagnostics.servers import ServerFinder
    from ollm.services.file_checkpoints.service import FileCheckpoints
    from ollm.services.file_discovery.service import FileDiscoveryService
    from ollm.store.database import Database
    from ollm.store.lease import Lease
    from ollm.store.notes import NoteStore
    from ollm.store.workspace_db import WorkspaceDatabase
    from ollm.system.folders import FolderMemory
    from ollm.system.paths import Boundary
    from ollm.system.sandbox.sandbox import Sandbox


class WorkspaceScope:
    """Objects shared by the conversations in one workspace, built on first use."""

    def __init__(self, process: ProcessScope, path: Path) -> None:
        self.process = process
        self.path = path
        self.added_roots: list[Path] = []  # A person named these in the conversation.
        self._closing = ExitStack()
        self.report: Callable[[str], None] = lambda _: None  # A conversation in the workspace shows the reports.

    @cached_property
    def main(self) -> Path:
        """The workspace that keeps the sessions and notes of this one: itself, unless this is one of its worktrees."""
        return find_main_workspace(self.path, self.process.settings.worktree.dir)

    def name_worktree(self, folder: str | None) -> str:
        """Return the name of the worktree of this workspace that a session works in, or "" if it works in none."""
        named, top = self.process.settings.worktree.dir, find_repository(self.main)
        directory = get_worktree_directory(top, named) if top else None
        if top is None or directory is None or not folder or not Path(folder).is_relative_to(directory):
            return ""
        if Path(folder).is_dir() and find_main_workspace(Path(folder), named) != self.main:
            return ""
        inner = "" if self.main == top else f"/{self.main.relative_to(top)}"
        return str(Path(folder).relative_to(directory)).removesuffix(inner)

    def works_here(self, folder: str | None) -> bool:
        """Return False for the folder of a session that works elsewhere: in another worktree of this workspace, or in
        the folder that this one is a copy of."""
        if folder and folder in self.context.load_origins().values() and Path(folder).is_dir():
            return False
        return self.name_worktree(folder) == self.name_worktree(str(self.path))

    def locate_session(self, folder: str | None) -> Path:
        """Return the folder that a session of this workspace works in: another worktree if it is there, else this."""
        is_ours = folder and (folder == str(self.main) or self.name_worktree(folder))
        return Path(folder) if folder and is_ours and Path(folder).is_dir() else self.path

    def find_session(self, prefix: str) -> str:
        """Find a session of this workspace by the prefix of its id. One that is only in the team archive is pulled."""
        files = self.process.session_files
        try:
            found = files.places.find(prefix)
            self.context.check_ownership(files.describe_session(found))  # A resume would repair its files.
            return found
        except NotFoundError:
            from ollm.archive.listing import pull_when_archived

            if pulled := pull_when_archived(self.process, prefix, self.path):
                return pulled
            raise

    def _forward_report(self, text: str) -> None:
        self.report(text)

    @cached_property
    def boundary(self) -> Boundary:
        from ollm.system.paths import Boundary

        roots = [self.process.resolve_directory(root, self.path) for root in self.process.settings.tools.allowed_roots]
        roots += self.added_roots
        return Boundary.around(
            self.path,
            roots,
            user_home=self.process.user_home,
            ollm_home=self.process.home.root,
            records=self.process.home.list_record_names(),
            executed=self._find_executed_files(),
            readable=self.process.find_directories("skills", self.path),
        )

    def _find_executed_files(self) -> list[Path]:
        settings, servers = self.process.settings, self.path / ".mcp.json"
        if not settings.hooks and not settings.mcp_servers and not servers.exists():
            return []
        told = msgspec.json.encode([settings.hooks, settings.mcp_servers]).decode()
        return find_named_files(Path(os.path.realpath(self.path)), [told, *read_configuration(servers)])

    @cached_property
    def memory(self) -> Database:
        """`memory.db`, ready for writing: in the workspace, or else in the home, or else in a directory that is
        removed after this run. A conversation keeps the one it started with, so that its plan and notes stay
        together; the next one tries again."""
        own = ensure_workspace_directory(self.main, self.process.home)
        chosen = self._create_memory(own)
        if fault := chosen.find_fault():
            chosen = self._create_memory(ensure_fallback_directory(self.main, self.process.home))
            if chosen.path.parent == own or chosen.find_fault():
                chosen = self._create_memory(self._make_passing_directory())
            self.report(f"{own / 'memory.db'} {fault} and is left alone; this run uses {chosen.path.parent}.")
        self._closing.callback(chosen.close)
        return chosen

    def _create_memory(self, directory: Path) -> Database:
        from ollm.store.database import WORKSPACE_MIGRATIONS, Database

        return Database(directory / "memory.db", WORKSPACE_MIGRATIONS, report=self._forward_report)

    def _make_passing_directory(self) -> Path:
        from tempfile import TemporaryDirectory

        return Path(self._closing.enter_context(TemporaryDirectory(prefix="ollm-state-")))

    def create_lease(self, holder: str = "") -> Lease:
        """Create the lease for the one active session of this workspace."""
        from ollm.store.lease import Lease

        return Lease(ensure_workspace_directory(self.path, self.process.home), holder)

    @cached_property
    def database(self) -> WorkspaceDatabase:
        from ollm.store.workspace_db import WorkspaceDatabase

        return WorkspaceDatabase(self.memory.path.parent, self.memory)

    @cached_property
    def notes(self) -> NoteStore:
        from ollm.store.notes import NoteStore

        return NoteStore(lambda: self.memory, clock=self.process.clock)

    @property
    def agent_directories(self) -> tuple[Path, ...]:
        return self.process.find_directories("agents", self.path)

    @cached_property
    def discovery(self) -> FileDiscoveryService:
        from ollm.services.file_discovery.service import FileDiscoveryService

        named = self.process.environment.get("XDG_CONFIG_HOME")
        settings, home = self.process.settings.file_discovery, self.process.user_home
        discovery = FileDiscoveryService(settings, home, Path(named) if named else None, self._folders)
        self._closing.callback(discovery.close)
        return discovery

    @cached_property
    def _folders(self) -> FolderMemory:
        from ollm.system.folders import FolderMemory

        return FolderMemory()

    def create_checkpoints(self) -> FileCheckpoints:
        """Create the checkpoints of this workspace's files, which never include ollm's own files."""
        from ollm.services.file_checkpoints.service import FileCheckpoints
        from ollm.services.file_checkpoints.tree import CheckpointPlace

        root, home = Path(os.path.realpath(self.path)), Path(os.path.realpath(self.process.home.root))
        own = {".ollm", *([str(home.relative_to(root))] if home.is_relative_to(root) else [])}
        place = CheckpointPlace(
            root=root,
            folder=get_checkpoint_directory(self.path, self.process.home),
            user_home=self.process.user_home,
            excluded=frozenset(own),
        )
        settings, clock = self.process.settings.checkpoints, self.process.clock
        return FileCheckpoints(place, settings, self.discovery.scan_tree, clock)

    def create_server_finder(self) -> ServerFinder:
        from ollm.services.diagnostics.servers import ServerFinder

        languages = self.process.settings.tools.diagnostics.languages
        programs = self.process.environment.get("PATH", "")
        return ServerFinder(self.boundary.workspace, programs, languages, trusted=self.process.trusted)

    @cached_property
    def context(self) -> WorkspaceContext:
        from ollm.runtime.resume.workspace_sessions import WorkspaceContext

        context = WorkspaceContext(
            self.main,
            self.database,
            self.process.library.list_summaries,
            self.process.settings.resume,
            lambda folder: bool(self.name_worktree(folder)),
        )
        context.detect_move()
        keep_identity(self.main, self.process.home, self.database.get_or_create_id)
        return context

    def close(self) -> None:
        """Close the databases and watches that were opened."""
        self._closing.close()

    def trust_workspace(self, yes: bool) -> str:
        """Run /trust: describe the files, or trust them from the next conversation on."""
        book = self.process.trust_book
        state = book.get_state(self.path)
        if state.trusted:
            return f"{state.workspace} is trusted (since {format_age(state.since or '')})."
        changed = [*state.added, *state.changed, *state.removed] if state.known else state.files
        listed = "\n".join(f"- `{name}`" for name in changed) or "It has no settings, hooks or instructions of its own."
        if not yes:
            todo = "\n\nTrust them with /trust yes." if changed else ""
            return f"{state.workspace} is not trusted.\n\n{listed}{todo}"
        book.trust(self.path)
        return f"{state.workspace} is trusted, starting with the next conversation.\n\n{listed}"

    def create_sandbox(self) -> Sandbox:
        """Create the sandbox for this workspace's programs."""
        from ollm.system.sandbox.sandbox import Sandbox

        settings, process = self.process.settings.sandbox, self.process
        cache = process.home.cache
        if not os.access(next(one for one in (cache, *cache.parents) if one.exists()), os.W_OK):
            cache = Home(self._make_passing_directory()).cache
        resolve = process.resolve_user_path
        return Sandbox(
            self.boundary.workspace,
            process.user_home,
            shared=(process.home.extensions, process.home.skills),
            mode=settings.mode,
            network=settings.network,
            readable=map(resolve, settings.readable),
            writable=(
                *(resolve(one) if one[:1] in "~/" else self.boundary.workspace / one for one in settings.writable),
                *self.boundary.places.roots[1:],
            ),
            hidden=(process.home.root, *map(resolve, settings.hidden)),
            executed=self.boundary.places.executed,
            auto_approve=settings.auto_approve,
            programs=process.environment.get("PATH", ""),
            cache=cache,
            folders=self._folders,
            prepare=lambda: ensure_workspace_directory(self.path, process.home),
            report=self._forward_report,
        )

    def create_policy(self, grants: tuple[str, ...] = (), sandbox: Lazy[Sandbox] | None = None) -> PolicyEngine:
        from ollm.policy.engine import PolicyEngine
        from ollm.policy.grants import GrantBook

        return PolicyEngine(
            build_rule_set(self.process.loaded_settings),
            self.boundary,
            grants=GrantBook(self.process.home.grants, grants, workspace=self.boundary.workspace),
            approval=self.process.settings.policy.approval,
            categories=list_categories(),
            sandbox=sandbox or Lazy(self.create_sandbox),
        )


def build_rule_set(loaded: LoadedSettings, *, builtin: bool = True) -> RuleSet:
    """Build the configured rules, each with its location."""
    from ollm.policy.rules import RuleSet, RuleSource, read_rules

    rules = [
        rule
        for entry, where in zip(loaded.settings.policy.rules, loaded.rule_places, strict=True)
        for rule in read_rules(
            [entry],
            RuleSource(file=where.place.file, lines=(where.place.line,), workspace=where.layer == "workspace"),
        )
    ]
    return RuleSet(rules=tuple(rules), default_action=loaded.settings.policy.default_action, builtin=builtin)

"""The services that the tools of one conversation ask for, each created when a call first needs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.storage import Storage
from ollm.domain.errors import ToolFailure
from ollm.domain.events import Notice, TodosChanged
from ollm.domain.lazy import Lazy

if TYPE_CHECKING:
    from ollm.domain.session import TaskReport, TaskRequest
    from ollm.domain.tools import Todo
    from ollm.extensions.loader import Extensions
    from ollm.runtime.parts import TaskStarter
    from ollm.runtime.resume.session_archive import SessionArchive
    from ollm.services.background_jobs import BackgroundJobs
    from ollm.services.code_map.service import CodeMapService
    from ollm.services.diagnostics.servers import ServerFinder
    from ollm.services.diagnostics.service import DiagnosticsService
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_discovery.service import FileDiscoveryService
    from ollm.store.notes import NoteStore
    from ollm.system.processes import ProcessHost
    from ollm.system.sandbox.sandbox import Sandbox
    from ollm.tools.web_search import WebSearchNeeds


class ToolNeeds:
    """The `ToolServices` of one conversation. Parts that need closing are pushed onto `stack` when built."""

    def __init__(self, storage: Storage, stack: AsyncExitStack) -> None:
        self.storage = storage
        self.scope = storage.scope
        self.process = storage.process
        self.options = storage.options
        self.stack = stack
        self.measure_room: Callable[[], int] | None = None
        self.tasks: Lazy[TaskStarter] | None = None
        self.goals = storage.goals
        self.count_tokens = storage.counter.count_text  # As the model of this conversation counts.
        self.diagnostics = Lazy(self._create_diagnostics)

    def _warn(self, text: str) -> None:
        self.storage.stream.emit(Notice(level="warning", text=text))

    @property
    def discovery(self) -> FileDiscoveryService:
        return self.scope.discovery

    @cached_property
    def code_map(self) -> CodeMapService:
        from ollm.services.code_map.service import CodeMapService

        return CodeMapService(self.process.settings.code_map, self.process.home.cache / "code")

    def get_result_tokens(self) -> int | None:
        """Return the tokens one result may use of the window now, or None without a conversation."""
        return self.measure_room() if self.measure_room else None

    async def run_task(self, request: TaskRequest, emit: Callable[[str], None]) -> TaskReport:
        """Run a task in its own conversation. Raises ToolFailure without a parent conversation."""
        if self.tasks is None:
            raise ToolFailure("NotFound", "A task belongs to a conversation, and there is none here. Use the chat.")
        return await self.tasks.get().run(request, emit)

    @property
    def notes(self) -> NoteStore:
        return self.storage.notes

    @property
    def global_notes(self) -> NoteStore:
        return self.process.notes

    @property
    def archive(self) -> SessionArchive:
        return self.storage.archive

    def todos_changed(self, todos: tuple[Todo, ...]) -> None:
        self.storage.stream.emit(TodosChanged(todos=todos))

    @cached_property
    def search(self) -> WebSearchNeeds:
        from ollm.tools.web_search import WebSearchNeeds

        return WebSearchNeeds(
            key=self.process.environment.get(self.process.settings.tools.web_search.api_key_env or ""),
            others=self.extensions.search_backends if self.extensions else {},
        )

    @cached_property
    def extensions(self) -> Extensions | None:
        """Enabled extensions. Failed ones are reported."""
        found = self.process.extensions
        self.storage.notices.extend(found.problems if found else ())
        return found

    @cached_property
    def jobs(self) -> BackgroundJobs:
        """Background commands. All of them, and their leftover processes, end with the conversation."""
        from ollm.services.background_jobs import BackgroundJobs

        jobs = BackgroundJobs(self.host, self.process.settings.tools.shell.max_background)
        self.stack.push_async_callback(jobs.close)
        return jobs

    @cached_property
    def sandbox(self) -> Lazy[Sandbox]:
        """Sandbox of this conversation's commands, hooks and servers, created for the first that needs one."""
        sandbox = Lazy(self.scope.create_sandbox)

        def close() -> None:
            if sandbox.built:
                sandbox.built.close()

        self.stack.callback(close)
        return sandbox

    @cached_property
    def host(self) -> ProcessHost:
        """Host that starts and ends every process of this conversation."""
        from ollm.system.processes import ProcessHost

        _ = self.sandbox  # The sandbox closes after the host, when no process is left.
        host = ProcessHost()
        self.stack.push_async_callback(host.close)
        return host

    @cached_property
    def server_finder(self) -> ServerFinder:
        return self.scope.create_server_finder()

    def find_diagnostics(self, path: Path) -> DiagnosticsService | None:
        """Return the language servers if one is installed for this file; none is started by that."""
        if not self.process.settings.tools.diagnostics.enabled or self.server_finder.find_for_file(path) is None:
            return None
        return self.diagnostics.get()

    @property
    def untrusted_servers(self) -> str:
        """Name the language servers that do not start because the workspace is not trusted."""
        names = ", ".join(one.name for one in self.server_finder.languages if one.runs_code)
        return (
            "" if self.process.trusted else f" Without trust (`/trust`) none starts for {names}, nor from the project."
        )

    def take_late_errors(self) -> str:
        return self.diagnostics.built.take_late_errors() if self.diagnostics.built else ""

    def _create_diagnostics(self) -> DiagnosticsService:
        from ollm.domain.files import DiscoveryOptions
        from ollm.services.diagnostics.service import DiagnosticsService, ServerHost

        boundary, settings = self.scope.boundary, self.process.settings.tools.diagnostics

        async def list_files(globs: tuple[str, ...]) -> list[Path]:
            options = DiscoveryOptions(root=str(boundary.workspace), include_patterns=globs, hidden=False)
            return [Path(entry.path) for entry in await self.discovery.discover_all(options)]

        host = ServerHost(
            boundary, self.host, self.sandbox.get(), self.process.tool_environment, list_files, self._warn
        )
        diagnostics = DiagnosticsService(settings, self.server_finder, host)
        self.stack.push_async_callback(diagnostics.close)
        return diagnostics

    @cached_property
    def edits(self) -> EditLedger:
        from ollm.services.edit_ledger import EditLedger

        def find_folder() -> Path | None:
            return self.process.home.undo / self.storage.session.id if self.storage.session.id else None

        return EditLedger(find_folder)

"""Diagnostics of one conversation: servers started by the first edit of their language, and errors new since an edit.

A server never delays an edit by more than `timeout` seconds. Errors it finds later come with the next result."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ollm.config.settings import DiagnosticsSettings
from ollm.domain.errors import OllmError
from ollm.domain.struct import Data
from ollm.services.diagnostics.client import ERROR, WARNING, FileProblem, LanguageClient, ServerGoneError, read_source
from ollm.services.diagnostics.servers import FoundServer, ServerFinder
from ollm.system.paths import Boundary
from ollm.system.processes import ProcessHost
from ollm.system.sandbox.sandbox import Sandbox

log = logging.getLogger("ollm.diagnostics")

MAX_STARTS = 3
MAX_SERVERS = 6
MAX_NEW_ERRORS = 10
MAX_OTHER_ERRORS = 5
MAX_LISTED_PROBLEMS = 100
LIST_TIMEOUT_SECONDS = 15.0
MAX_READ_FILES = 3_000
MAX_IMPORTERS = 5
IMPORT_WORDS = frozenset(("import", "from", "require", "include", "use", "source"))
WORDS = re.compile(r"[\w-]+")
PACKAGE_FILES = ("__init__", "index", "mod", "lib")  # Imports name the folder of such a file.

CHECKING = "still checking"


class ServerHost(Data, frozen=True):
    """The resources of servers; `list_files` lists the files of the project that match these globs, `tell` reports
    to the person."""

    boundary: Boundary
    processes: ProcessHost
    sandbox: Sandbox
    environment: Mapping[str, str]
    list_files: Callable[[tuple[str, ...]], Awaitable[list[Path]]]
    tell: Callable[[str], None]


class ProjectServer:
    """The server of one language in one project, started on first use and at most twice again after a fault."""

    def __init__(self, server: FoundServer, host: ServerHost) -> None:
        self.server = server
        self.failure = ""
        self.waiting = 0
        self._host = host
        self._client: LanguageClient | None = None
        self._starts = 0
        self._told = False
        self._lock = asyncio.Lock()
        self._known: dict[str, list[FileProblem]] = {}  # Errors that are not new any more.
        self._changed: set[str] = set()
        self._candidates: list[Path] | None = None  # Files that may import others.
        self._settled = False  # True after its report on the first change.

    @property
    def is_usable(self) -> bool:
        return not self.failure or self._starts < MAX_STARTS

    @property
    def is_prompt(self) -> bool:
        """True unless it works on an earlier change or reports nothing: a slow server delays one edit."""
        return not self.waiting and (self._client is None or self._client.has_report())

    @property
    def state(self) -> str:
        if self.failure:
            return f"stopped: {self.failure}"
        if self.waiting or self._client is None:
            return CHECKING
        return "running" if self._client.has_report() else "running, no report yet"

    @property
    def is_settled(self) -> bool:
        """True if it has reported and works on no change: what it has not reported is no error."""
        return self.state == "running"

    @property
    def problems(self) -> list[FileProblem]:
        found = self._client.problems if self._client and not self.waiting else {}
        return [problem for problems in found.values() for problem in problems]

    def has_checked(self, path: Path) -> bool:
        return self._client is not None and not self.waiting and self._client.has_report(path)

    @property
    def is_stale(self) -> bool:
        """True if a command changed files that the server has open."""
        return self._client is not None and not self.waiting and bool(self._client.list_stale_files())

    async def update(self, path: Path, before: str | None, after: str) -> None:
        """Give the server a changed file and wait for its report. Never raises, except for cancellation."""
        await self._guard(lambda client: self._send_change(client, path, before, after))

    async def sync_from_disk(self) -> None:
        """Give the server the files that a command changed, and wait for its report."""

        async def send(client: LanguageClient) -> None:
            if sent := client.sync_from_disk(self._host.boundary):
                await client.refresh(*sent)

        await self._guard(send)

    async def _guard(self, work: Callable[[LanguageClient], Awaitable[None]]) -> None:
        self.waiting += 1
        try:
            async with self._lock:
                await work(await self._ensure_started())
        except (ServerGoneError, OllmError, OSError) as error:
            await self._stop(str(error))
        finally:
            self.waiting -= 1

    async def _ensure_started(self) -> LanguageClient:
        if self._client is not None:
            return self._client
        if not self.is_usable:
            raise ServerGoneError(self.failure)
        self._starts += 1
        self._known, self._settled, self._client = {}, False, LanguageClient(self.server)
        host = self._host
        await self._client.start(host.processes, host.sandbox, host.environment)
        self.failure = ""
        return self._client

    async def _send_change(self, client: LanguageClient, path: Path, before: str | None, after: str) -> None:
        name = str(path)
        client.sync_from_disk(self._host.boundary, path)
        if name not in client.files:
            if before is not None:
                client.change(path, before)
                await client.refresh(path, *await self._open_importers(client, path))
            self._known |= {
                each: list_errors(found) for each, found in client.problems.items() if each not in self._known
            }
            self._known.setdefault(name, [])
        self._changed.add(name)
        if client.change(path, after, created=before is None):
            await client.refresh(path)
        if not self._settled:  # Errors in other files were there before the change.
            self._settled = True
            others = {each: found for each, found in client.problems.items() if each not in self._known}
            self._known |= {each: list_errors(found) for each, found in others.items()}

    async def _open_importers(self, client: LanguageClient, path: Path) -> list[Path]:
        """Open the files that import this one: servers report on open files."""
        if self._candidates is None:
            globs = tuple(f"*{suffix}" for suffix in self.server.language.suffixes)
            found = await self._host.list_files(globs)
            self._candidates = [each for each in found if each.is_relative_to(self.server.root)]
        importers = await asyncio.to_thread(find_importers, self._host.boundary, path, self._candidates)
        return [each for each, text in importers.items() if str(each) not in client.files and client.change(each, text)]

    def take_new_errors(self) -> list[FileProblem]:
        """List the errors that are new since the last call, those of changed files first."""
        if self._client is None or self.waiting:
            return []
        new: list[FileProblem] = []
        for name, problems in self._client.problems.items():
            errors = list_errors(problems)
            new += find_new_errors(self._known.get(name, []), errors)
            self._known[name] = errors
        own = [problem for problem in new if problem.path in self._changed]
        others = [problem for problem in new if problem.path not in self._changed]
        return [*own, *others[:MAX_OTHER_ERRORS]]

    async def _stop(self, reason: str) -> None:
        client, self._client = self._client, None
        if not self._told:
            self._told = True
            self._host.tell(f"The language server {self.server.name} stopped: {reason}.")
        log.warning("A language server stopped: %s", reason, extra={"operation": self.server.name})
        self.failure = reason
        if client is not None:
            await client.close()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


class DiagnosticsService:
    """The language servers of one conversation."""

    def __init__(self, settings: DiagnosticsSettings, finder: ServerFinder, host: ServerHost) -> None:
        self._timeout = settings.timeout
        self._workspace = host.boundary.workspace
        self._finder = finder
        self._host = host
        self._servers: dict[tuple[str, Path], ProjectServer] = {}
        self._updates: set[asyncio.Task[None]] = set()

    async def check_change(self, path: Path, before: str | None, after: str) -> str | None:
        """Return the new errors after a change, "" if there are none, or None if no server said so in time."""
        server = self._find_server(path)
        if server is None:
            return None
        seconds = self._timeout if server.is_prompt else 0.0
        update = self._start_task(server.update(path, before, after))
        done, _ = await asyncio.wait({update}, timeout=seconds)
        if not done or not server.has_checked(path):
            return None
        return self._render_new(server)

    def take_late_errors(self) -> str:
        """Return the errors that servers found after the result of a change was sent. Files that a command changed are
        checked until the next call."""
        for server in self._servers.values():
            if server.is_stale:
                self._start_task(server.sync_from_disk())
        return "\n".join(filter(None, (self._render_new(server) for server in self._servers.values())))

    async def list_problems(self, texts: Mapping[Path, str]) -> tuple[list[str], set[Path]]:
        """List the errors and warnings of these files, or of all known ones if empty. Also returns the files that a
        server has checked."""
        servers = {path: server for path in texts if (server := self._find_server(path))}
        if servers:
            updates = [self._start_task(one.update(path, texts[path], texts[path])) for path, one in servers.items()]
            await asyncio.wait(updates, timeout=LIST_TIMEOUT_SECONDS)
        checked = {path for path, server in servers.items() if server.has_checked(path)}
        for server in servers.values():
            server.take_new_errors()  # These errors are in the list already.
        found = [problem for server in self._servers.values() for problem in server.problems]
        shown = [one for one in found if one.severity <= WARNING and (Path(one.path) in checked or not texts)]
        lines = [problem.render(self._workspace, severity=True) for problem in shown]
        return _cap_lines(lines, MAX_LISTED_PROBLEMS), checked

    @property
    def is_settled(self) -> bool:
        return bool(self._servers) and all(server.is_settled for server in self._servers.values())

    @property
    def is_checking(self) -> bool:
        return any(server.state == CHECKING for server in self._servers.values())

    def describe_servers(self) -> list[str]:
        return [
            f"{one.server.language.name}: {one.server.name} ({one.server.argv[0]}), {one.state}"
            for one in self._servers.values()
        ]

    async def close(self) -> None:
        for update in self._updates:
            update.cancel()
        if self._updates:
            await asyncio.wait(self._updates)
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def _find_server(self, path: Path) -> ProjectServer | None:
        found = self._finder.find_for_file(path)
        if found is None:
            return None
        key = (found.language.name, found.root)
        if key not in self._servers:
            if len(self._servers) >= MAX_SERVERS or self._host.sandbox.level == "none":
                return None
            self._servers[key] = ProjectServer(found, self._host)
        server = self._servers[key]
        return server if server.is_usable else None

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        update = asyncio.create_task(work)
        self._updates.add(update)
        update.add_done_callback(self._updates.discard)
        return update

    def _render_new(self, server: ProjectServer) -> str:
        lines = [problem.render(self._workspace) for problem in server.take_new_errors()]
        shown = "\n".join(_cap_lines(lines, MAX_NEW_ERRORS))
        return f"New errors ({server.server.name}):\n{shown}" if lines else ""


def _cap_lines(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"… and {len(lines) - most} more"]


def list_errors(problems: Iterable[FileProblem]) -> list[FileProblem]:
    return [problem for problem in problems if problem.severity == ERROR]


def find_new_errors(before: Sequence[FileProblem], now: Sequence[FileProblem]) -> list[FileProblem]:
    """List the errors that are there more often than before; of equal ones, those on lines that had none."""
    left = Counter(problem.identity for problem in before)
    lines = {(problem.identity, problem.line) for problem in before}
    new: list[FileProblem] = []
    for problem in sorted(now, key=lambda one: (one.identity, one.line) not in lines):
        if left[problem.identity] > 0:
            left[problem.identity] -= 1
        else:
            new.append(problem)
    return sorted(new, key=lambda problem: (problem.path, problem.line))


def find_importers(boundary: Boundary, path: Path, candidates: Sequence[Path]) -> dict[Path, str]:
    """Find a few files that import this one, with their texts; those in folders nearby first."""
    name = path.parent.name if path.stem in PACKAGE_FILES else path.stem
    near = sorted(candidates[:MAX_READ_FILES], key=lambda each: len(os.path.relpath(each, path.parent).split("/")))
    found: dict[Path, str] = {}
    for each in near:
        text = read_source(boundary, each) if each != path else None
        lines = (set(WORDS.findall(line)) for line in (text or "").splitlines() if name in line)
        if any(name in words and words & IMPORT_WORDS for words in lines):
            found[each] = text or ""
            if len(found) == MAX_IMPORTERS:
                break
    return found

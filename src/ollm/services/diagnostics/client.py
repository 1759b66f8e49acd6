"""A client of one running language server: messages over its pipes, open files, and the problems it reports."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from ollm.domain.clock import monotonic
from ollm.domain.errors import OllmError, StartError
from ollm.domain.struct import Data
from ollm.services.diagnostics.servers import FoundServer
from ollm.system.folders import FolderStamp, read_stamp
from ollm.system.paths import Boundary
from ollm.system.processes import ProcessCommand, ProcessHost, fail_future, settle_future
from ollm.system.program_pipes import PipedProgram, RunningProgram, keep_program, start_with_pipes
from ollm.system.sandbox.sandbox import Sandbox
from ollm.system.terminal_text import flatten_text

MAX_HEADER_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_UNASKED_BYTES = 48 * 1024 * 1024  # Counted since the last change.
MAX_UNSENT_BYTES = 16 * 1024 * 1024
MAX_OPEN_FILES = 40
MAX_FILE_BYTES = 512 * 1024
MAX_REPORTED_FILES = 2_000
MAX_REASON_CHARS = 300
START_TIMEOUT_SECONDS = 30.0
REPORT_TIMEOUT_SECONDS = 6.0
FIRST_REPORT_TIMEOUT_SECONDS = 10.0  # Some servers never report on a file without errors.
UNCHANGED_SECONDS = 0.8
SETTLE_SECONDS = 0.25  # Servers report a file's syntax first, then its types.
FIRST_SETTLE_SECONDS = 1.0
SHUTDOWN_SECONDS = 0.2
CONTENT_LENGTH = re.compile(rb"Content-Length: *(\d{1,12})\r\n", re.IGNORECASE)
CAPABILITIES = {
    "workspace": {"configuration": True, "workspaceFolders": True, "didChangeConfiguration": {}},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
    },
    "window": {"workDoneProgress": False},
    "general": {"positionEncodings": ["utf-16"]},
}
MAX_PROBLEMS_PER_FILE = 500
MAX_MESSAGE_CHARS = 300
ERROR, WARNING = 1, 2
SEVERITIES = {ERROR: "error", WARNING: "warning", 3: "info", 4: "hint"}


class FileProblem(Data, frozen=True):
    """One problem. `line` and `column` count from 1."""

    path: str
    line: int
    column: int
    severity: int
    message: str
    code: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """The part that stays the same when lines move."""
        return self.code, self.message

    def render(self, workspace: Path, *, severity: bool = False) -> str:
        path = Path(self.path)
        name = path.relative_to(workspace) if path.is_relative_to(workspace) else path
        code = f" ({self.code})" if self.code else ""
        kind = f"{SEVERITIES.get(self.severity, 'error')}: " if severity else ""
        return flatten_text(f"{name}:{self.line}:{self.column} {kind}{self.message}{code}")


def parse_problems(path: str, items: Any) -> tuple[FileProblem, ...]:
    found = items if isinstance(items, list) else []
    parsed = (_parse_problem(path, item) for item in found[: MAX_PROBLEMS_PER_FILE * 4] if isinstance(item, dict))
    return tuple(sorted(parsed, key=lambda problem: (problem.severity, problem.line))[:MAX_PROBLEMS_PER_FILE])


def _parse_problem(path: str, item: dict[str, Any]) -> FileProblem:
    match item.get("range"):
        case {"start": {"line": int(line), "character": int(column)}}:
            place = line + 1, column + 1
        case _:
            place = 1, 1
    code, severity = item.get("code"), item.get("severity")
    lines = (" ".join(line.split()) for line in str(item.get("message", "")).splitlines())
    message = "; ".join(filter(None, lines))[:MAX_MESSAGE_CHARS]
    return FileProblem(
        path=path,
        line=place[0],
        column=place[1],
        severity=severity if isinstance(severity, int) else ERROR,
        message=message,
        code=str(code)[:80] if isinstance(code, str | int) else "",
    )


class ServerGoneError(Exception):
    """The server ended, hangs, or does not speak the protocol."""


class OpenFile(msgspec.Struct):
    """A file that the server has open. `sent` is the time of the last change; `stamp` detects changes on disk."""

    text: str
    version: int
    sent: float
    stamp: FolderStamp | None = None


class LanguageClient:
    """A started server. `problems` are its latest reports by path. A fault of the server raises ServerGoneError."""

    def __init__(self, server: FoundServer) -> None:
        self.server = server
        self.problems: dict[str, tuple[FileProblem, ...]] = {}
        self.files: dict[str, OpenFile] = {}
        self.gone = ""  # Holds the reason.
        self._stack = AsyncExitStack()
        self._program: RunningProgram | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._unasked_bytes = 0
        self._refusal = ""  # The server's last reason for a refusal.
        self._reports: dict[str, tuple[float, int | None]] = {}
        self._news = asyncio.Event()

    async def start(self, host: ProcessHost, sandbox: Sandbox, environment: Mapping[str, str]) -> None:
        """Start the program in the reading box: no network, and no file is changed outside a temporary folder."""
        argv = self.server.argv

        async def start() -> PipedProgram:
            box = sandbox.make_box("reading", program=())
            if box is None:
                raise StartError("language servers run only in a sandbox", "sandbox")
            programs = environment.get("PATH", os.defpath)
            added = {**environment, **sandbox.make_environment(box, unasked=True, programs=programs)}
            caches = f"{added.get('TMPDIR', '/tmp')}/caches"  # noqa: S108 - the sandbox's own, which gopls can write
            added |= {"XDG_CACHE_HOME": caches, "GOCACHE": f"{caches}/go-build"}
            command = ProcessCommand(argv=argv, cwd=self.server.root, environment=added, box=box, level=sandbox.level)
            return await start_with_pipes(host, command)

        try:
            program = await sandbox.start(start)
        except (StartError, OSError) as error:
            advice = f"if the sandbox hides {os.path.realpath(argv[0])}, add its folder to sandbox.readable"
            raise ServerGoneError(f"it could not be started: {error}; {advice}") from error
        self._program = await self._stack.enter_async_context(keep_program(program, MAX_HEADER_BYTES))
        self._reading = asyncio.create_task(self._read(self._program))
        await self._initialize()

    async def _initialize(self) -> None:
        root = self.server.root
        folder = {"uri": root.as_uri(), "name": root.name}
        found = await self._request(
            "initialize",
            {
                "processId": None,
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": CAPABILITIES,
                "initializationOptions": self.server.language.options,
            },
            START_TIMEOUT_SECONDS,
        )
        if found is None:
            raise ServerGoneError(f"it refused to start{self._refusal}")
        self._notify("initialized", {})
        self._notify("workspace/didChangeConfiguration", {"settings": self.server.settings})

    def change(self, path: Path, text: str, *, created: bool = False) -> bool:
        """Give the server the text of a file, which is opened if it is not. Returns False if it has this text."""
        name, uri, now = str(path), path.as_uri(), monotonic()
        file = self.files.get(name)
        if file is not None and file.text == text:
            file.stamp = read_stamp(name)
            return False
        self._unasked_bytes = 0
        if file is None:
            while len(self.files) >= MAX_OPEN_FILES:
                self._close_file(min(self.files, key=lambda name: self.files[name].sent))
            self.files[name] = OpenFile(text=text, version=1, sent=now, stamp=read_stamp(name))
            language = self.server.language.suffixes.get(path.suffix.lower(), self.server.language.name)
            document = {"uri": uri, "languageId": language, "version": 1, "text": text}
            self._notify("textDocument/didOpen", {"textDocument": document})
        else:
            file.text, file.version, file.sent, file.stamp = text, file.version + 1, now, read_stamp(name)
            document = {"uri": uri, "version": file.version}
            self._notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
            self._notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        event = {"uri": uri, "type": 1 if created else 2}
        self._notify("workspace/didChangeWatchedFiles", {"changes": [event]})
        return True

    def sync_from_disk(self, boundary: Boundary, known: Path | None = None) -> list[Path]:
        """Send the files, except the known one, that others changed or deleted since they were sent. Returns them."""
        sent: list[Path] = []
        for path in map(Path, self.list_stale_files()):
            text = read_source(boundary, path)
            if text is None:
                self._close_file(str(path))
            elif path != known and self.change(path, text):
                sent.append(path)
        return sent

    def list_stale_files(self) -> list[str]:
        return [name for name, file in self.files.items() if read_stamp(name) != file.stamp]

    async def refresh(self, *paths: Path) -> None:
        """Wait until the server has reported on the current text of these files. Servers need not repeat a report that
        is the same, so they are asked something else first: after the answer a report is near or does not come. A
        server that does not answer hangs."""
        names = [str(path) for path in paths]
        known = all(name in self._reports for name in names)
        limit = (
            UNCHANGED_SECONDS if known else REPORT_TIMEOUT_SECONDS if self._reports else FIRST_REPORT_TIMEOUT_SECONDS
        )
        settle = SETTLE_SECONDS if self._reports else FIRST_SETTLE_SECONDS
        await self._request(
            "textDocument/documentSymbol", {"textDocument": {"uri": paths[0].as_uri()}}, START_TIMEOUT_SECONDS
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while not all(map(self._is_reported, names)):
                    await self._wait_for_news()
                while True:
                    async with asyncio.timeout(settle):
                        await self._wait_for_news()
        self._check_alive()

    def has_report(self, path: Path | None = None) -> bool:
        """Return True if the server has reported on this file, or on any."""
        return str(path) in self._reports if path else bool(self._reports)

    async def close(self) -> None:
        if self._program is not None and not self.gone:
            with suppress(ServerGoneError):
                await self._request("shutdown", None, SHUTDOWN_SECONDS)
                self._notify("exit", None)
        self._end("it was ended")
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        await self._stack.aclose()

    def _is_reported(self, name: str) -> bool:
        file, report = self.files[name], self._reports.get(name)
        if report is None:
            return False
        at, version = report
        return version >= file.version if version is not None else at >= file.sent

    async def _wait_for_news(self) -> None:
        self._check_alive()
        self._news.clear()
        await self._news.wait()
        self._check_alive()

    def _check_alive(self) -> None:
        if self.gone:
            raise ServerGoneError(self.gone)

    def _close_file(self, name: str) -> None:
        del self.files[name]
        self.problems.pop(name, None)
        self._notify("textDocument/didClose", {"textDocument": {"uri": Path(name).as_uri()}})

    # Messages

    async def _request(self, method: str, params: Any, seconds: float) -> Any:
        self._check_alive()
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as error:
            raise ServerGoneError(f"it did not answer {method} in {seconds:g} s") from error
        finally:
            self._answers.pop(number, None)

    def _notify(self, method: str, params: Any) -> None:
        self._check_alive()
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._program is not None
        body = msgspec.json.encode(
            {key: value for key, value in message.items() if key != "params" or value is not None}
        )
        self._program.feed.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        if self._program.feed.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._end("it does not read what it is sent")

    async def _read(self, program: RunningProgram) -> None:
        """Read messages until the server ends or breaks the protocol."""
        try:
            while True:
                header = CONTENT_LENGTH.search(await program.output.readuntil(b"\r\n\r\n"))
                size = int(header[1]) if header else MAX_MESSAGE_BYTES + 1
                self._unasked_bytes += size
                if size > MAX_MESSAGE_BYTES or self._unasked_bytes > MAX_UNASKED_BYTES:
                    self._end("it sends too much, or not the language server protocol")
                    return
                self._receive(msgspec.json.decode(await program.output.readexactly(size)))
        except (asyncio.LimitOverrunError, msgspec.DecodeError, ValueError, RecursionError):
            self._end("it does not speak the language server protocol")
        except (asyncio.IncompleteReadError, OSError):
            await asyncio.sleep(0)  # Its last error output may arrive first.
            said = f": {program.stderr_tail}" if program.stderr_tail else ""
            self._end(f"it exited{said}")

    def _end(self, reason: str) -> None:
        self.gone = self.gone or reason
        self._news.set()
        for answer in self._answers.values():
            fail_future(answer, ServerGoneError(self.gone))

    def _receive(self, message: Any) -> None:
        match message:
            case {"method": "workspace/configuration", "id": number, "params": {"items": list(items)}}:
                self._send({"jsonrpc": "2.0", "id": number, "result": [self._find_setting(item) for item in items]})
            case {"method": str(), "id": number}:
                self._send({"jsonrpc": "2.0", "id": number, "result": None})
            case {
                "method": "textDocument/publishDiagnostics",
                "params": {"uri": str(uri), "diagnostics": items} as told,
            }:
                self._keep_report(uri, items, told.get("version"))
            case {"id": int(number), "result": result} if number in self._answers:
                settle_future(self._answers[number], result)
            case {"id": int(number), **more} if number in self._answers:
                error = more.get("error")
                self._refusal = f": {error.get('message')}"[:MAX_REASON_CHARS] if isinstance(error, dict) else ""
                settle_future(self._answers[number], None)

    def _find_setting(self, item: Any) -> Any:
        found: Any = self.server.settings
        for key in str(item.get("section") or "").split(".") if isinstance(item, dict) else ():
            found = found.get(key) if key and isinstance(found, Mapping) else found
        return found

    def _keep_report(self, uri: str, items: Any, version: Any = None) -> None:
        parts = urlsplit(uri)
        name = unquote(parts.path)
        if parts.scheme != "file" or (name not in self.problems and len(self.problems) >= MAX_REPORTED_FILES):
            return
        self.problems[name] = parse_problems(name, items)
        self._reports[name] = (monotonic(), version if isinstance(version, int) else None)
        self._news.set()


def read_source(boundary: Boundary, path: Path) -> str | None:
    """Read a source file, or return None if it is gone, too large, or leads out of the workspace by now."""
    try:
        with boundary.open_file(str(path)) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OllmError, OSError):
        return None
    return content.decode("utf-8", "replace") if len(content) <= MAX_FILE_BYTES else None

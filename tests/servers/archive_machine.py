"""A machine that uses the team archive: a home with its settings, sessions recorded in it, and the command run on it."""

import asyncio
import contextlib
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ollm.app.process import ProcessScope
from ollm.cli.entry import main
from ollm.domain.messages import Message, TextPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.system.locks import read_owner

AT = "2026-01-27T10:00:00.000Z"


class ArchiveMachine:
    """One home. The command runs in this process; `environment` is for those that start one of their own."""

    def __init__(self, root: Path, url: str, **settings: Any) -> None:
        self.home = root
        root.mkdir(parents=True, exist_ok=True)
        self.environment = {"OLLM_HOME": str(root)}
        self.configure(url=url, **settings)
        self.said = self.warned = ""

    def configure(self, **settings: Any) -> None:
        (self.home / "config.yaml").write_text(json.dumps({"archive": settings}), encoding="utf-8")

    @property
    def process(self) -> ProcessScope:
        return ProcessScope({**os.environ, **self.environment})

    def run(self, *arguments: str, code: int = 0) -> str:
        """Standard output of `ollm archive …`."""
        return self.ollm("archive", *arguments, code=code)

    def ollm(self, *arguments: str, code: int = 0) -> str:
        out, err = io.StringIO(), io.StringIO()
        with self.inside(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            found = main(list(arguments))
        self.said, self.warned = out.getvalue(), err.getvalue()
        assert found == code, f"exit {found}: {self.said}{self.warned}"
        return self.said

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)

    def record(self, *texts: str, calls: tuple[ToolCallRecord, ...] = (), workspace: str | None = None) -> str:
        """A closed session in which these were said in turn, the first by the user."""
        return self._run_apart(None, texts, calls, workspace)

    def go_on(self, session_id: str, *texts: str) -> None:
        self._run_apart(session_id, texts, (), None)

    def _run_apart(self, *arguments: Any) -> str:
        """In a thread, for tests that run in a loop of their own."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: asyncio.run(self._record(*arguments))).result()

    async def _record(
        self, session_id: str | None, texts: tuple[str, ...], calls: tuple[ToolCallRecord, ...], workspace: str | None
    ) -> str:
        recording = self.process.create_recording_service(lambda event: None)
        if session_id is None:
            session_id = await recording.create_session("tiny", "ollama", workspace=workspace)
        else:
            await recording.open_session(session_id)
        for number, text in enumerate(texts):
            role = "assistant" if number % 2 else "user"
            await recording.record_message(session_id, Message(role=role, parts=(TextPart(text),), timestamp=AT))
        for call in calls:
            await recording.record_tool_call(session_id, call)
        await recording.close_session(session_id)
        return session_id

    def document(self, session_id: str) -> bytes:
        """The session as folding would write it."""
        with self.process.session_files.open_reader(session_id) as stream:
            return b"".join(stream.iter_document())

    def ids(self) -> set[str]:
        return set(self.process.session_files.places.list_ids())


def make_call(call_id: str, result: str, name: str = "read_file", **args: Any) -> ToolCallRecord:
    return ToolCallRecord(
        id=call_id,
        name=name,
        args=args,
        timestamp=AT,
        message_id=2,
        status="ok",
        result=RecordedResult(llm_content=result),
    )


def stop_shippers(root: Path) -> None:
    """End the processes that ship the sessions of the homes below a directory."""
    for lock in root.rglob("run/archive.lock"):
        if owner := read_owner(lock):
            with contextlib.suppress(ProcessLookupError):
                os.kill(owner["pid"], signal.SIGKILL)


@pytest.fixture
def shipping_root(tmp_path: Path) -> Iterator[Path]:
    """A directory for homes whose shippers are ended with the test."""
    yield tmp_path
    stop_shippers(tmp_path)


MakeMachine = Callable[..., ArchiveMachine]


@pytest.fixture
def machine(tmp_path: Path, archive_url: str) -> MakeMachine:
    """Makes a machine by its name, on a new and empty archive; settings may be given."""

    def make(name: str, **settings: Any) -> ArchiveMachine:
        return ArchiveMachine(tmp_path / name, **{"url": archive_url, **settings})

    return make

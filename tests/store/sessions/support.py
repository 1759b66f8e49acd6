"""What the tests of sessions share: a home with its services, messages to say, calls to make."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from ollm.config.settings import SessionSettings
from ollm.domain.events import Event
from ollm.domain.messages import JsonObject, Message, TextPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.chat_recording.library import SessionLibrary
from ollm.services.chat_recording.service import ChatRecordingService
from ollm.store.session_files.loading import LoadedSession
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from ollm.store.session_files.writer import SessionWriter
from ollm.store.session_index.index import SessionIndex

AT = "2026-01-27T10:00:00.000Z"
Answer = TypeVar("Answer")


class WatchedFiles(SessionFiles):
    """Files whose writers a test can leave as a crash would."""

    def __init__(self, places: SessionPlaces, index: SessionIndex) -> None:
        super().__init__(places, find_known=index.find_known)
        self.writers: list[SessionWriter] = []

    def create(self, head: JsonObject) -> SessionWriter:
        self.writers.append(super().create(head))
        return self.writers[-1]

    def open(self, session_id: str, **more: Any) -> tuple[SessionWriter, LoadedSession]:
        found = super().open(session_id, **more)
        self.writers.append(found[0])
        return found


class Home:
    """A directory as `~/.ollm` is laid out. Each call of `service` is another process, as far as files go."""

    def __init__(self, root: Path, **settings: int | bool) -> None:
        self.root = root
        self.sessions = root / "sessions"
        self.events: list[Event] = []
        self.settings = SessionSettings(**settings)
        self.places = SessionPlaces(directory=self.sessions, trash=root / "trash")
        self.files = WatchedFiles(self.places, self.index())

    def index(self) -> SessionIndex:
        return SessionIndex(self.root / "index.db", self.sessions)

    def library(self, **more) -> SessionLibrary:
        return SessionLibrary(self.files, self.index(), self.settings, **more)

    def service(self, **more) -> ChatRecordingService:
        clocked = {"clock": more["clock"]} if "clock" in more else {}
        return ChatRecordingService(
            self.files, self.settings, emit=self.events.append, library=self.library(**clocked), **more
        )

    def crash(self, session_id: str = "") -> None:
        """Leave a session, or every one, as a crash would."""
        for writer in self.files.writers:
            if not session_id or writer.session_id == session_id:
                writer.abandon()

    def document(self, session_id: str) -> Path:
        return self.sessions / f"{session_id}.json"

    def journal(self, session_id: str) -> Path:
        return self.sessions / f"{session_id}.journal"

    def texts(self, session_id: str) -> list[str]:
        return [message.text for message in self.files.read(session_id).session.messages]

    def recorded(self, *texts: str, **more: str) -> str:
        """A closed session in which these were said in turn."""

        async def record() -> str:
            service = self.service()
            session_id = await service.create_session("m", "ollama", **more)
            for text in texts:
                await service.record_message(session_id, said(text))
            await service.close_session(session_id)
            return session_id

        return asyncio.run(record())


def run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    return asyncio.run(work())


def said(text: str, role: str = "user") -> Message:
    return Message(role=role, parts=(TextPart(text=text),), timestamp=AT)


def call(call_id: str = "c1", *, result: str | None = None, **more) -> ToolCallRecord:
    done = {"status": "ok", "result": RecordedResult(llm_content=result)} if result is not None else {}
    return ToolCallRecord(
        **{"id": call_id, "name": "ls", "args": {"path": "."}, "timestamp": AT, "message_id": 1} | done | more
    )


def many(home: Home, texts: list[str]) -> str:
    """A closed session that says these, put on disk in one go."""
    session_id = home.recorded("start")
    path = home.document(session_id)
    head, rest = path.read_bytes().split(b"\n", 1)
    line = '{"role":"user","parts":[{"type":"text","text":"%s"}],"timestamp":"2026-01-27T10:00:00.000Z","id":%d}'
    lines = ",\n".join(line % (text, number) for number, text in enumerate(texts, start=1))
    path.write_bytes(head + b"\n" + lines.encode() + b"\n" + rest[rest.index(b'],"toolCalls"') :])
    return session_id

"""ChatRecordingService (S1, S9): every message is on disk before the call that records it returns.

A failed write never stops the conversation. It is logged and reported once. The data stays in memory and is written
with the next record or at the end of the turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ollm.config.settings import SessionSettings
from ollm.domain.clock import Clock, NewId, format_stamp, make_id, now
from ollm.domain.errors import NotFoundError, OllmError, StorageError
from ollm.domain.events import Event, MessageRecorded, Notice, SessionCreated, SessionSaved, ToolCallRecorded
from ollm.domain.lazy import compile_late
from ollm.domain.messages import Message, TextPart, ThinkingPart
from ollm.domain.session import ParentCall, Session, SessionMetadata, SessionSummary
from ollm.domain.tools import ToolCallRecord
from ollm.services.chat_recording.library import SessionLibrary, format_removed_notice
from ollm.services.chat_recording.long_work import LongWork
from ollm.services.token_counting import TokenCounter
from ollm.store.session_files.journal import clean_json
from ollm.store.session_files.places import SessionPlaces, parse_id
from ollm.store.session_files.store import MessagePage, SessionFiles
from ollm.store.session_files.waypoints import MIN_KNOWN_BYTES
from ollm.store.session_files.writer import TEXT_SECONDS, SessionWriter, make_unsaved_error

if TYPE_CHECKING:
    from ollm.services.chat_recording.fork import Fork
    from ollm.store.session_files.loading import LoadedSession

MAX_TITLE_CHARS = 80
_FENCED = compile_late(r"(?ms)^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)")


def make_title(message: Message) -> str:
    """Return the first line outside of code blocks, shortened, or else the first line."""
    text = _FENCED.sub("", message.text) if "\n" in message.text else message.text
    line = next(filter(str.strip, (*text.splitlines(), *message.text.splitlines())), "").strip()
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1].rstrip()}…"


log = logging.getLogger(__name__)


class GuardedWrites:
    """Tracks which open sessions cannot be saved at the moment."""

    def __init__(self, writers: Mapping[str, SessionWriter], emit: Callable[[Event], None]) -> None:
        self._writers = writers
        self._emit = emit
        self._told: set[str] = set()

    def attempt_write(self, session_id: str, write: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of `write`, or None if it failed. Unwritten data stays for the next attempt."""
        try:
            done = write(*arguments)
        except StorageError as error:
            self._report_failure(session_id, error)
            return None
        writer = self._writers.get(session_id)
        if writer and writer.reports:
            self._tell_reports(session_id, writer)
        if session_id in self._told and (writer is None or writer.is_saved):
            self._told.discard(session_id)
            self._emit(Notice(session_id=session_id, level="info", text="Saving works again."))
        return done

    def close(self, writer: SessionWriter) -> bool:
        """Close the session. Return True if its journal was folded. Data that is safe in the journal may stay there;
        other data is copied elsewhere, and `UnsavedError` names the copy."""
        try:
            folded = writer.close()
        except StorageError as error:
            if not writer.is_saved:
                raise self._make_unsaved_error(writer, error, rescue=True) from error
            log.warning("%s", error, extra={"operation": "close", "action": error.action})
            folded = False
        self._tell_reports(writer.session_id, writer)
        return folded

    def ensure_saved(self, writer: SessionWriter) -> None:
        try:
            writer.flush()
            writer.check_files()
        except StorageError as error:
            raise self._make_unsaved_error(writer, error, rescue=False) from error

    def _make_unsaved_error(self, writer: SessionWriter, cause: StorageError, *, rescue: bool) -> OllmError:
        error = make_unsaved_error(writer, cause, rescue=rescue)
        log.error("%s", error, extra={"operation": "close", "action": error.action})
        return error

    def _tell_reports(self, session_id: str, writer: SessionWriter) -> None:
        for text in writer.take_reports():
            log.warning("%s", text, extra={"operation": "record"})
            self._emit(Notice(session_id=session_id, level="warning", text=text))

    def _report_failure(self, session_id: str, error: OllmError) -> None:
        log.error("%s", error, extra={"operation": "record", "action": error.action})
        if session_id not in self._told:
            self._told.add(session_id)
            self._emit(Notice(session_id=session_id, level="error", text=str(error)))


Emit = Callable[[Event], None]
_TEXT_PARTS = (TextPart, ThinkingPart)
INDEX_INTERVAL = timedelta(seconds=60)


def ignore_event(event: Event) -> None:
    """Ignore the event."""


class ChatRecordingService:
    """Records sessions. A session is open from `create_session` or `open_session` until `close_session`.

    `count_tokens` counts tokens as the session's model does."""

    def __init__(
        self,
        files: SessionFiles,
        settings: SessionSettings | None = None,
        *,
        emit: Emit = ignore_event,
        library: SessionLibrary | None = None,
        clock: Clock = now,
        make_id: NewId = make_id,
        count_tokens: Callable[[str], int] | None = None,
    ) -> None:
        self._files = files
        self._settings = settings or SessionSettings()
        self._emit = emit
        self._library = library or SessionLibrary(files, settings=settings, clock=clock)
        self._clock = clock
        self._make_id = make_id
        self._count_tokens = count_tokens or TokenCounter().count_text
        self._writers: dict[str, SessionWriter] = {}
        self._attempts = GuardedWrites(self._writers, emit)
        self._noted: dict[str, datetime] = {}
        self._limit_due: set[str] = set()  # New sessions may exceed the limit.
        self._long = LongWork(files)
        self._waiting_text: dict[str, asyncio.TimerHandle] = {}
        self._first: dict[str, Message] = {}  # The title of a session from elsewhere comes from this message.

    @classmethod
    def in_directory(cls, directory: Path, settings: SessionSettings | None = None) -> ChatRecordingService:
        """Create a service for use as a library: sessions in one directory, index and trash beside it."""
        from ollm.store.session_index.index import SessionIndex

        index = SessionIndex(directory.parent / "index.db", directory)
        places = SessionPlaces(directory=directory, trash=directory.parent / "trash")
        files = SessionFiles(places, find_known=index.find_known)
        return cls(files, settings, library=SessionLibrary(files, index, settings))

    async def create_session(
        self,
        model: str,
        provider: str,
        *,
        workspace: str | None = None,
        origin: str | None = None,
        context_window: int | None = None,
        parent: ParentCall | None = None,
        session_id: str = "",
    ) -> str:
        """Start a session. Its file exists when this returns. The oldest sessions over the limit are removed when its
        first turn ends, so that no request waits for that."""
        session_id, at = session_id or self._make_id(), format_stamp(self._clock())
        metadata = SessionMetadata(
            workspace=workspace, origin=origin, context_window=context_window, parent=parent or msgspec.UNSET
        )
        head = {
            "sessionId": session_id,
            "startTime": at,
            "lastActivity": at,
            "model": model,
            "provider": provider,
            "metadata": msgspec.to_builtins(metadata),
        }
        writer = self._files.create(head)
        self._writers[session_id] = writer
        self._attempts.attempt_write(session_id, writer.flush)
        writer.deferred = not self._settings.auto_save
        self._emit(SessionCreated(session_id=session_id, model=model, provider=provider))
        if parent is None:
            self._limit_due.add(session_id)
        return session_id

    async def open_session(self, session_id: str, since: int = 0) -> LoadedSession:
        """Open a session to continue it. Repairs crash damage and reports unreadable parts in `damage`.

        For a long session that no other process has changed, messages up to number `since` are omitted (`skipped`).
        For a large one, only the end is returned.
        """
        session_id = parse_id(session_id)
        if session_id in self._writers:
            return self._files.read_open(self._writers[session_id])
        writer, loaded = await self._long.open_session(session_id, since)
        writer.deferred = not self._settings.auto_save
        self._writers[session_id] = writer
        first = next((message for message in loaded.session.messages if message.role == "user"), None)
        if first and not loaded.skipped and not writer.head["metadata"].get("title"):
            self._first[session_id] = first
        return loaded

    async def record_message(self, session_id: str, message: Message, calls: Sequence[ToolCallRecord] = ()) -> Message:
        """Record a message and return it with its number. It is on disk when this returns. The start of its `calls` is
        recorded with it."""
        writer = await self._get_free_writer(session_id)
        recorded = replace(message, id=writer.last_number + 1)
        started = [replace(call, message_id=recorded.id) for call in calls]
        self._attempts.attempt_write(session_id, self._write_with_calls, writer, recorded, started)
        self._emit(MessageRecorded(session_id=session_id, message_id=recorded.id, role=recorded.role))
        for call in started:
            self._emit(ToolCallRecorded(session_id=session_id, call_id=call.id, name=call.name, status=call.status))
        return recorded

    def _write_message(self, writer: SessionWriter, message: Message) -> None:
        tokens = _add_tokens(writer, 0)
        for part in message.parts:
            if isinstance(part, _TEXT_PARTS):
                tokens += self._count_tokens(part.text)
        writer.record_message(self._get_activity_time(writer), message, tokens)

    def _write_with_calls(self, writer: SessionWriter, message: Message, calls: Sequence[ToolCallRecord]) -> None:
        """Write the title if missing, the message and the start of its calls, with one sync."""
        with writer.batch_writes():
            self._set_title(writer, message)
            self._write_message(writer, message)
            for call in calls:
                writer.record_call(self._get_activity_time(writer), _to_json(call), 0)

    async def record_text(self, session_id: str, part: type[TextPart | ThinkingPart], text: str) -> None:
        """Save the next text of a partial answer, within a second. It outlives this process, as a message marked
        interrupted. The recorded answer replaces it."""
        writer = await self._get_free_writer(session_id)
        kind = "text" if part is TextPart else "thinking"
        self._attempts.attempt_write(
            session_id, writer.record_text, lambda: self._get_activity_time(writer), kind, text
        )
        if writer.has_new_text and session_id not in self._waiting_text:
            later = asyncio.get_running_loop().call_later(TEXT_SECONDS, self._write_text, session_id)
            self._waiting_text[session_id] = later

    def _write_text(self, session_id: str) -> None:
        """Write the newest text of an answer, if the model server sends no more of it."""
        self._waiting_text.pop(session_id, None)
        writer = self._writers.get(session_id)
        if writer and session_id not in self._long.folding:
            self._attempts.attempt_write(session_id, writer.write_text, self._get_activity_time(writer))

    async def record_tool_call(self, session_id: str, call: ToolCallRecord) -> None:
        """Record a call when it starts (result None) and when it ends. The same id replaces the record."""
        writer = await self._get_free_writer(session_id)
        at = self._get_activity_time(writer)
        said = call.result.llm_content if call.result else ""
        tokens = _add_tokens(writer, self._count_tokens(said)) if said else 0
        self._attempts.attempt_write(session_id, writer.record_call, at, _to_json(call), tokens)
        self._emit(ToolCallRecorded(session_id=session_id, call_id=call.id, name=call.name, status=call.status))

    async def update_metadata(self, session_id: str, changes: Mapping[str, Any]) -> None:
        """Set metadata fields (camelCase or snake_case names). `model` and `provider` change the session itself."""
        writer = await self._get_free_writer(session_id)
        named = {_to_camel_case(name): _to_json(value) for name, value in changes.items()}
        top = {name: named.pop(name) for name in list(named) if name in ("model", "provider")}
        at = self._get_activity_time(writer)
        self._attempts.attempt_write(session_id, writer.change_fields, at, top, named)

    async def save_session(self, session_id: str) -> None:
        """Fold everything recorded into the document, now."""
        writer = await self._get_free_writer(session_id)
        if self._attempts.attempt_write(session_id, await self._long.run(writer, writer.fold)):
            self._emit(SessionSaved(session_id=session_id))

    async def end_turn(self, session_id: str) -> None:
        """End a turn: write pending data, and fold the journal into the document if due."""
        writer = await self._get_free_writer(session_id)
        folded = self._attempts.attempt_write(session_id, await self._long.run(writer, writer.fold_when_due))
        if folded:
            self._emit(SessionSaved(session_id=session_id))
        if folded or self._clock() - self._noted.setdefault(session_id, self._clock()) > INDEX_INTERVAL:
            await self._update_index(writer)
        self._enforce_limit(session_id)

    async def fork_session(self, session_id: str, number: int | None = None) -> Fork:
        """Copy a session up to message `number`, or all of it, to a new closed session. The original stays as it is."""
        from ollm.services.chat_recording.fork import fork_session

        await self.ensure_saved(session_id)
        fork = fork_session(
            self._files, parse_id(session_id), number, self._make_id(), self._clock(), self._count_tokens
        )
        self._limit_due.add(fork.session_id)
        self._enforce_limit(fork.session_id)
        return fork

    async def keep_session(self, session_id: str) -> None:
        """Keep a new session even if it is closed without a message."""
        (await self._get_free_writer(session_id)).new = False

    async def close_session(self, session_id: str) -> None:
        """Fold and close a session. Only a new session without a message is removed. Closing a closed session does
        nothing. Raises `UnsavedError` if data in memory could not be written."""
        await self._long.wait_until_free(parse_id(session_id))
        writer = self._writers.pop(parse_id(session_id), None)
        if writer is None:
            return
        if writer.new and writer.is_empty:
            ours = writer.has_own_files
            writer.abandon()
            if ours:
                delete = partial(self._library.delete, with_tasks=False)  # The session has not started any tasks.
                self._attempts.attempt_write(session_id, delete, session_id)
            return
        self._enforce_limit(session_id)
        try:
            if self._attempts.close(writer):
                self._emit(SessionSaved(session_id=session_id))
            await self._update_index(writer)
        finally:
            writer.abandon()

    async def ensure_saved(self, session_id: str) -> None:
        """Write pending data. Raises `UnsavedError` if that fails; the data stays in memory."""
        writer = self._writers.get(session_id)
        if writer and not (writer.new and writer.is_empty):
            self._attempts.ensure_saved(writer)

    async def get_session(self, session_id: str) -> Session | None:
        """Return the complete session, or None. Unreadable parts are left out; `load` reports them."""
        try:
            return self.load(session_id).session
        except NotFoundError:
            return None

    def load(self, session_id: str, page: MessagePage | None = None) -> LoadedSession:
        """Load the session with a report of damage in its files. With `page`, load at least that part."""
        session_id = parse_id(session_id)
        writer = self._writers.get(session_id)
        return self._files.read_open(writer, page) if writer else self._files.read(session_id, page)

    def read_user_words(self, session_id: str) -> dict[int, str]:
        """Read the user's messages of an open session, in full, by number."""
        return self._files.read_user_words(self._require_writer(session_id))

    async def list_sessions(self) -> list[SessionSummary]:
        """List all sessions, last active first. A damaged file is reported and does not hide others."""
        return self._library.list_summaries()

    async def delete_session(self, session_id: str) -> None:
        """Erase a session everywhere. Raises `BusyError` while another process has it open."""
        session_id = parse_id(session_id)
        writer = self._writers.pop(session_id, None)
        if writer:
            writer.abandon()
        self._library.delete(session_id)

    async def delete_oldest_sessions(self, keep: int) -> list[str]:
        """Delete all but the `keep` last active sessions, never an open one. Returns the deleted ids."""
        return self._library.delete_all_but(keep)

    async def _get_free_writer(self, session_id: str) -> SessionWriter:
        if self._long.folding:
            await self._long.wait_until_free(session_id)
        return self._require_writer(session_id)

    def _require_writer(self, session_id: str) -> SessionWriter:
        writer = self._writers.get(session_id)
        if writer is None:
            raise NotFoundError(f"Session {session_id} is not open.", action="Resume it first.")
        return writer

    def _get_activity_time(self, writer: SessionWriter) -> str:
        """Return the current time, but never before the last activity, even if the clock was set back."""
        at = format_stamp(self._clock())
        last: str = writer.head.get("lastActivity") or ""
        return max(last, at)

    def _set_title(self, writer: SessionWriter, message: Message) -> None:
        if message.role == "user" and not writer.head["metadata"].get("title"):
            title = make_title(self._first.pop(writer.session_id, message)) or make_title(message)
            if title:
                writer.change_fields(self._get_activity_time(writer), {}, {"title": title})

    def _enforce_limit(self, session_id: str) -> None:
        if session_id not in self._limit_due:
            return
        self._limit_due.remove(session_id)
        try:
            gone = self._library.enforce_limit()
        except OllmError as error:
            log.warning("%s", error, extra={"operation": "limit", "action": error.action})
            return
        if gone:
            text = format_removed_notice(gone, self._settings.trash_days)
            self._emit(Notice(session_id=session_id, level="info", text=text))

    async def _update_index(self, writer: SessionWriter) -> None:
        """Update the index entry of a large session, but not while an answer is being recorded."""
        index, big = self._library.index, writer.document_size + writer.journal_size >= MIN_KNOWN_BYTES
        if index and big and writer.is_saved and not writer.has_partial:
            (await self._long.run(writer, partial(index.update_session, writer.session_id)))()
            self._noted[writer.session_id] = self._clock()


def _add_tokens(writer: SessionWriter, tokens: int) -> int:
    held: int = writer.head["metadata"].get("tokenCount") or 0
    return held + tokens


def _to_json(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value)
    except RecursionError:
        return clean_json({name: getattr(value, name) for name in value.__struct_fields__})


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)

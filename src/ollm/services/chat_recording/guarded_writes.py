"""Writes that may fail: logged, told once, and the conversation goes on (S10.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ollm.domain.errors import OllmError, StorageError
from ollm.domain.events import Event, Notice

if TYPE_CHECKING:
    from ollm.store.session_files import SessionWriter

log = logging.getLogger(__name__)


class GuardedWrites:
    """Knows which of the open sessions cannot be saved at the moment."""

    def __init__(self, writers: Mapping[str, SessionWriter], emit: Callable[[Event], None]) -> None:
        self._writers = writers
        self._emit = emit
        self._told: set[str] = set()

    def attempt_write(self, session_id: str, write: Callable[..., Any], *arguments: Any) -> Any:
        """What `write` gives; None when it failed. What it could not write is still there to be tried again."""
        try:
            done = write(*arguments)
        except StorageError as error:
            self._report_failure(session_id, error)
            return None
        writer = self._writers.get(session_id)
        if writer and writer.reports:
            self._tell_reports(session_id, writer)
        if session_id in self._told and self._is_saved(session_id):
            self._told.discard(session_id)
            self._emit(Notice(session_id=session_id, level="info", text="Saving works again."))
        return done

    def close(self, writer: SessionWriter, note: Callable[[], None]) -> bool:
        """Whether closing has folded something. What is safe in the journal may wait there for the next time; for the
        rest a copy is written elsewhere, and `UnsavedError` says where."""
        try:
            folded = writer.close(note)
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
        from ollm.store.session_files.rescue import make_unsaved_error

        error = make_unsaved_error(writer, cause, rescue=rescue)
        log.error("%s", error, extra={"operation": "close", "action": error.action})
        return error

    def _tell_reports(self, session_id: str, writer: SessionWriter) -> None:
        for text in writer.take_reports():
            log.warning("%s", text, extra={"operation": "record"})
            self._emit(Notice(session_id=session_id, level="warning", text=text))

    def _is_saved(self, session_id: str) -> bool:
        writer = self._writers.get(session_id)
        return writer is None or writer.is_saved

    def _report_failure(self, session_id: str, error: OllmError) -> None:
        log.error("%s", error, extra={"operation": "record", "action": error.action})
        if session_id not in self._told:
            self._told.add(session_id)
            self._emit(Notice(session_id=session_id, level="error", text=str(error)))

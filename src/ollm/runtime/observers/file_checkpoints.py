"""Takes the state of the workspace's files before the calls of a step that may change some, and after them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ollm.domain.errors import OllmError
from ollm.domain.events import Event, Notice
from ollm.domain.text import format_count
from ollm.runtime.base import ChangeWatch, TurnObserver, TurnReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ollm.domain.lazy import Lazy
    from ollm.runtime.session import OpenSession
    from ollm.services.file_checkpoints import CheckpointRecord, FileCheckpoints

SLOW_SECONDS = 3.0


class FileCheckpointObserver(TurnObserver, ChangeWatch):
    """A turn that changes nothing costs nothing. That none is taken here is said once."""

    def __init__(self, checkpoints: Lazy[FileCheckpoints], session: OpenSession, emit: Callable[[Event], None]) -> None:
        self._checkpoints = checkpoints
        self._session = session
        self._emit = emit
        self._missed = False  # the state before this turn is not known
        self._beginning: asyncio.Future[CheckpointRecord] | None = None
        self._ending: asyncio.Future[None] | None = None
        self._said: set[str] = set()

    async def before_change(self, names: Sequence[str] | None) -> None:
        """Whatever goes wrong here does not stop the call."""
        if self._missed or self._session.id is None:
            return
        await self._settle()
        loop = asyncio.get_running_loop()
        began, message_id = loop.time(), self._find_message_id()
        if not self._checkpoints.get().wanted:
            await self._note_missed(self._session.id, message_id)
            return
        try:
            begin = asyncio.to_thread(self._checkpoints.get().begin, self._session.id, message_id, "turn", names)
            self._beginning = asyncio.ensure_future(begin)
            record = await asyncio.shield(self._beginning)
        except (OllmError, OSError) as error:
            self._report(error)
            await self._note_missed(self._session.id, message_id)
            return
        if loop.time() - began > SLOW_SECONDS:
            saved = format_count(record.files, "file")
            text = f"Saved {saved} before the first change; later turns save only what changed."
            self._emit(Notice(level="info", text=text))

    async def after_changes(self) -> None:
        """The model goes on while the state is taken."""
        if (checkpoints := self._checkpoints.built) and checkpoints.begun:
            await self._settle()
            self._ending = asyncio.ensure_future(self._take_end(checkpoints))

    async def before_question(self) -> None:
        """A person is asked next: what changes until a call runs again is theirs, not the turn's."""
        await self._end()

    async def after_turn(self, report: TurnReport) -> None:
        self._missed = False
        await self._end()

    async def _end(self) -> None:
        await self._settle()
        if (checkpoints := self._checkpoints.built) and checkpoints.begun:
            self._ending = asyncio.ensure_future(self._take_end(checkpoints))
            await asyncio.shield(self._ending)

    async def _settle(self) -> None:
        """A turn that was cancelled meanwhile has its beginning and its end too."""
        if under_way := [one for one in (self._beginning, self._ending) if one and not one.done()]:
            await asyncio.wait(under_way)

    async def _take_end(self, checkpoints: FileCheckpoints) -> None:
        try:
            await asyncio.to_thread(checkpoints.end)
        except (OllmError, OSError) as error:
            self._report(error)

    def _find_message_id(self) -> int:
        return next((message.id for message in self._session.recorder.messages if message.role == "user"), 0)

    async def _note_missed(self, session_id: str, message_id: int) -> None:
        self._missed = True
        try:
            await asyncio.to_thread(self._checkpoints.get().note_missed, session_id, message_id)
        except (OllmError, OSError):
            return

    def _report(self, error: Exception) -> None:
        text = f"{error} /rewind cannot bring files back."
        if text not in self._said:
            self._said.add(text)
            self._emit(Notice(level="warning", text=text))

"""Reading and folding large sessions in threads, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ollm.store.session_files.store import SessionFiles
from ollm.store.session_files.writer import SessionWriter

if TYPE_CHECKING:
    from ollm.store.session_files.loading import LoadedSession

LONG_WORK_BYTES = 1 << 20  # Work on more bytes than this would block other sessions for too long.
Done = TypeVar("Done")


class LongWork:
    """Sessions that a thread works on. Records for them wait."""

    def __init__(self, files: SessionFiles) -> None:
        self._files = files
        self.folding: dict[str, asyncio.Event] = {}

    async def wait_until_free(self, session_id: str) -> None:
        while busy := self.folding.get(session_id):
            await busy.wait()

    async def open_session(self, session_id: str, since: int) -> tuple[SessionWriter, LoadedSession]:
        """Open a session as `SessionFiles.open` does."""
        if self._files.measure_bytes(session_id) < LONG_WORK_BYTES:
            return self._files.open(session_id, since=since)
        opened: list[SessionWriter] = []

        def work() -> tuple[SessionWriter, LoadedSession]:
            found = self._files.open(session_id, since=since)
            opened.append(found[0])
            return found

        try:
            return (await run_to_end(work))()
        except BaseException:
            for writer in opened:
                writer.abandon()
            raise

    async def run(self, writer: SessionWriter, work: Callable[[], Done]) -> Callable[[], Done]:
        """Return `work`, or a function that gives its result if it already ran in a thread."""
        if writer.journal_size + writer.document_size < LONG_WORK_BYTES:
            return work
        busy = self.folding[writer.session_id] = asyncio.Event()
        try:
            return await run_to_end(work)
        finally:
            del self.folding[writer.session_id]
            busy.set()


async def run_to_end(work: Callable[[], Done]) -> Callable[[], Done]:
    """Run long work in a thread and return a function that gives its result or raises its error. A cancelled caller
    still waits for the end, so that no file is left half changed."""

    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError:
        await asyncio.wait([running])
        running.exception()  # Nobody reads the error any more.
        raise
    return running.result

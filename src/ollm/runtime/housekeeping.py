"""What is done once in a while beside the conversation: old sessions go when there are too many (S9.4)."""

from __future__ import annotations

from collections.abc import Callable

from ollm.domain.events import Event, Notice
from ollm.runtime.observers import TurnReport
from ollm.services.chat_recording import SessionLibrary
from ollm.tools.web_fetch import PageCache


class Housekeeping:
    """A `TurnObserver` that looks once, after the first turn: the start stays quick."""

    def __init__(self, library: SessionLibrary, emit: Callable[[Event], None]) -> None:
        self._library = library
        self._emit = emit
        self._done = False

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """Nothing to do yet."""

    async def before_turn(self, text: str) -> None:
        """Nothing to do yet."""

    async def after_turn(self, report: TurnReport) -> None:
        if self._done:
            return
        self._done = True
        if gone := self._library.enforce_limit():
            text = f"{len(gone)} old session{'s' * (len(gone) > 1)} went to the trash (sessions.maxSessions)."
            self._emit(Notice(level="info", text=f"{text} `ollm sessions list --trash` shows them."))

    async def session_closed(self, session_id: str) -> None:
        """Nothing is left to do."""


class FreshPages:
    """A `TurnObserver`: web pages are kept for one turn and fetched anew in the next."""

    def __init__(self, pages: PageCache) -> None:
        self._pages = pages

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """Nothing was fetched yet."""

    async def before_turn(self, text: str) -> None:
        self._pages.forget()

    async def after_turn(self, report: TurnReport) -> None:
        """They stay until the next turn begins."""

    async def session_closed(self, session_id: str) -> None:
        """They go with the conversation."""

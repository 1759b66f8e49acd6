"""Tells whoever ships sessions to the team archive that there is something new, after the turn and never before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ollm.domain.events import Event, Notice
from ollm.runtime.turn_observer import TurnObserver, TurnReport


class SessionShipping(Protocol):
    """As `ArchiveProcess` of the app has it."""

    def wake(self) -> None: ...

    def take_trouble(self) -> str: ...

    def announce(self) -> str: ...


class ArchiveObserver(TurnObserver):
    """Says once what is sent, wakes the shipper after each turn and at the end, and passes on what it could not do."""

    def __init__(self, shipping: SessionShipping, emit: Callable[[Event], None]) -> None:
        self._shipping = shipping
        self._emit = emit

    async def after_turn(self, report: TurnReport) -> None:
        if text := self._shipping.announce():
            self._emit(Notice(session_id=report.session_id, level="info", text=f"Archive, {text}"))
        if text := self._shipping.take_trouble():
            self._emit(Notice(session_id=report.session_id, level="warning", text=f"Archive: {text}"))
        self._shipping.wake()

    async def session_closed(self, session_id: str) -> None:
        self._shipping.wake()

"""What is done beside the conversation, when turns begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ollm.runtime.turn_observer import TurnObserver, TurnReport

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ollm.domain.clock import Clock
    from ollm.domain.lazy import Lazy
    from ollm.tools.web_fetch import PageCache


class Movable(Protocol):
    """A workspace that may have been moved or copied since it was last used."""

    def detect_move(self) -> None: ...


class WorkspaceMoveObserver(TurnObserver):
    """Looks once, and only when the first turn is over: the model is asked first."""

    def __init__(self, workspace: Lazy[Movable]) -> None:
        self._workspace = workspace
        self._looked = False

    async def after_turn(self, report: TurnReport) -> None:
        if not self._looked:
            self._workspace.get().detect_move()
            self._looked = True


class LazyObserver(TurnObserver):
    """In place of one that has nothing to do before the first turn of a new session ends, and is built then: the start
    stays quick. `build` is told when the session was opened."""

    def __init__(self, build: Callable[[datetime], TurnObserver], clock: Clock) -> None:
        self._build = build
        self._clock = clock
        self._opened: tuple[str, datetime] | None = None
        self._observer: TurnObserver | None = None

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        self._opened = session_id, self._clock()
        if resumed:
            await self._build_observer(resumed=True)

    async def after_turn(self, report: TurnReport) -> None:
        if observer := self._observer or await self._build_observer():
            await observer.after_turn(report)

    async def context_changed(self) -> None:
        if observer := self._observer or await self._build_observer():
            await observer.context_changed()

    async def session_closed(self, session_id: str) -> None:
        if self._observer:
            await self._observer.session_closed(session_id)

    async def _build_observer(self, *, resumed: bool = False) -> TurnObserver | None:
        if self._opened is None:
            return None
        session_id, opened = self._opened
        self._observer = self._build(opened)
        await self._observer.session_opened(session_id, resumed=resumed)
        return self._observer


class LateObserver(TurnObserver):
    """In place of one that somebody else builds during a turn, and that hears of the turn's end then."""

    def __init__(self, observer: Lazy[TurnObserver]) -> None:
        self._observer = observer

    async def after_turn(self, report: TurnReport) -> None:
        if observer := self._observer.built:
            await observer.after_turn(report)


class PageCacheObserver(TurnObserver):
    """Web pages are kept for one turn and fetched anew in the next."""

    def __init__(self, pages: Lazy[PageCache]) -> None:
        self._pages = pages

    async def before_turn(self, text: str) -> None:
        if pages := self._pages.built:
            pages.forget()

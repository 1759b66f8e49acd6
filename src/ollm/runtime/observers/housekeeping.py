"""Observers of every conversation: title and session limits, model facts, file changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.errors import OllmError
from ollm.domain.events import Event, Notice
from ollm.domain.model_facts import ModelFacts
from ollm.runtime.base import TurnObserver, TurnReport
from ollm.runtime.parts import ConversationState
from ollm.runtime.prompt.prompt import Prompt
from ollm.runtime.prompt.token_meter import DOUBT_SHARES

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from ollm.domain.clock import Clock
    from ollm.domain.files import ChangeKind
    from ollm.domain.lazy import Lazy
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.services.message_search.embeddings import SessionEmbedder
    from ollm.tools.web_fetch import PageCache


class WorkspaceMoveObserver(TurnObserver):
    """Looks once, and only when the first turn is over: the model is asked first."""

    def __init__(self, workspace: Lazy[WorkspaceContext]) -> None:
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


MIN_TOKEN_FACTOR_CHANGE = 0.02  # a smaller difference in tokens is not worth a write

WriteFacts = Callable[[str, dict[str, Any]], object]


class ModelFactsObserver(TurnObserver):
    """`write` takes the key of the model and the fields that changed."""

    def __init__(
        self, state: ConversationState, prompt: Prompt, emit: Callable[[Event], None], write: WriteFacts
    ) -> None:
        self._state = state
        self._prompt = prompt
        self._emit = emit
        self._write = write
        self._known = state.model.facts

    async def before_turn(self, text: str) -> None:
        """Another model may have been chosen since."""
        if self._state.model.facts.key != self._known.key:
            self._known = self._state.model.facts

    async def after_turn(self, report: TurnReport) -> None:
        self._update_token_factor()
        if self._prompt.window_learnt and self._prompt.model.window < self._state.model.window:
            self._state.model.set_served_window(self._prompt.model.window)
        if news := self._state.model.pictures.take_news():
            self._emit(Notice(level="warning", text=f"{self._state.model.name}: {news}"))
        facts = self._state.model.facts
        if facts.key != self._known.key or not (changes := find_changed_fields(self._known, facts)):
            return
        if news := describe_changes(changes, self._state.model.advice):
            self._emit(Notice(level="info", text=f"{self._state.model.name}: {news}"))
        self._known = facts
        self._write(facts.key, changes)

    def _update_token_factor(self) -> None:
        known = self._state.model.facts
        factor, samples = self._prompt.token_calibration
        moved = abs(factor - known.token_factor) > MIN_TOKEN_FACTOR_CHANGE * known.token_factor
        surer = any(known.token_samples < needed <= samples for needed, _ in DOUBT_SHARES)
        if samples > known.token_samples and (moved or surer):
            self._state.model.set_token_factor(round(factor, 4), samples)


def find_changed_fields(before: ModelFacts, after: ModelFacts) -> dict[str, Any]:
    """The fields that are not what they were."""
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    return {name: value for name, value in new.items() if old[name] != value}


def describe_changes(changes: dict[str, Any], advice: str = "") -> str:
    """What was found out about the model for the first time, in one line; a call as everybody expects it is no news.
    `advice` says how a server that refused tools would take them."""
    forms = {
        "blocks": "it writes fenced commands and files, which ollm runs as tool calls",
        "text": "it writes tool calls as text, which ollm parses",
        "constrained": "its tool calls are constrained to the tools' schema",
    }
    read, write = changes.get("prefill_per_second"), changes.get("decode_per_second")
    news = [forms.get(changes.get("call_form", ""), "")]
    if read and write:
        news.append(f"prompt {read:.0f} tok/s, output {write:.0f} tok/s")
    if changes.get("binds_answers") is False:
        news.append("the server ignores response_format, so tool calls cannot be bound to a schema")
    line = "; ".join(filter(None, news))
    line = f"{line}. Run `ollm models probe` for more." if line else ""
    if changes.get("takes_tools") is False:
        line = f"the server takes no tools, so they are listed in the prompt. {advice} {line}"
    return " ".join(line.split())


class FileWatchObserver(TurnObserver):
    """Watches from the end of the first turn that looked for files until the conversation ends. A tree that the system
    cannot watch is not: looking at it again and again costs more than it saves."""

    def __init__(self, discovery: Lazy[FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = str(root)
        self._starting: asyncio.Task[None] | None = None

    async def after_turn(self, report: TurnReport) -> None:
        discovery = self._discovery.built
        if discovery and self._starting is None:
            self._starting = asyncio.create_task(asyncio.to_thread(self._watch, discovery), name="watch files")

    async def session_closed(self, session_id: str) -> None:
        """The watch itself ends with the service."""
        if self._starting:
            await self._starting

    def _watch(self, discovery: FileDiscoveryService) -> None:
        with contextlib.suppress(OllmError, OSError):
            watch = discovery.watch_changes(self._root, ignore_change)
            if discovery.get_watch_state(self._root) == "polling":
                watch.dispose()


def ignore_change(kind: ChangeKind, path: str) -> None:
    """The service itself notes that its list is old."""


class EmbeddingObserver(TurnObserver):
    """Embeds new messages between turns."""

    def __init__(self, embedder: SessionEmbedder, get_session_id: Callable[[], str | None]) -> None:
        self._embedder = embedder
        self._get_session_id = get_session_id

    async def before_turn(self, text: str) -> None:
        await self._embedder.stop()

    async def after_turn(self, report: TurnReport) -> None:
        await self._embedder.stop()
        if session_id := self._get_session_id():
            self._embedder.start(session_id)

    async def session_closed(self, session_id: str) -> None:
        await self._embedder.stop()

"""Asks extensions before every turn what the model should be told (S5.6)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ollm.domain.context import ContextEntry
from ollm.domain.events import Event, Notice
from ollm.extensions.loader import ContextSource
from ollm.runtime.turn_observer import TurnObserver
from ollm.services.context_manager import DEFAULT_PRIORITY, ContextManager
from ollm.tools.web.search_backends import run_in_thread

ANSWER_TIMEOUT_SECONDS = 5.0


class ExtensionObserver(TurnObserver):
    """What a source no longer says is taken out; the last word of one that fails is kept."""

    def __init__(
        self, sources: Sequence[ContextSource], entries: ContextManager, emit: Callable[[Event], None]
    ) -> None:
        self._sources = sources
        self._entries = entries
        self._emit = emit
        self._said: dict[str, set[str]] = {}
        self._told: set[str] = set()

    async def before_turn(self, text: str) -> None:
        answers = await asyncio.gather(*(self._ask_source(source) for source in self._sources))
        for source, answer in zip(self._sources, answers, strict=True):
            if answer is not None:
                self._store_answer(source, answer)

    async def _ask_source(self, source: ContextSource) -> list[Any] | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                found = await run_in_thread(source.ask)
                found = await found if inspect.isawaitable(found) else found
        except TimeoutError:
            self._report_failure(source, f"it timed out after {ANSWER_TIMEOUT_SECONDS:g} s")
            return None
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the turn goes on
            self._report_failure(source, f"{type(error).__name__}: {error}")
            return None
        if found is None:
            return []
        return [found] if isinstance(found, str | Mapping | ContextEntry) else list(found)

    def _report_failure(self, source: ContextSource, why: str) -> None:
        where = f"{source.extension}.{source.name}"
        if where not in self._told:
            self._told.add(where)
            self._emit(Notice(level="warning", text=f"The context {where} of an extension failed: {why}."))

    def _store_answer(self, source: ContextSource, answer: list[Any]) -> None:
        where = f"{source.extension}.{source.name}"
        keys = {self._add_entry(where, entry) for entry in answer}
        for key in self._said.get(where, set()) - keys:
            self._entries.remove_context(key)
        self._said[where] = keys

    def _add_entry(self, where: str, entry: Any) -> str:
        fields = self._read_fields(entry)
        named = str(fields.get("key") or "")
        key = f"{where}.{named}" if named else where
        self._entries.add_context(
            key,
            str(fields.get("content") or ""),
            priority=fields.get("priority", DEFAULT_PRIORITY),
            source="extension",
            ttl_seconds=fields.get("ttl"),
            volatile=fields.get("volatile") is True,
        )
        return key

    def _read_fields(self, entry: Any) -> Mapping[str, Any]:
        if isinstance(entry, ContextEntry):
            return {"key": entry.key, "content": entry.content, "priority": entry.priority, "volatile": entry.volatile}
        return entry if isinstance(entry, Mapping) else {"content": entry}

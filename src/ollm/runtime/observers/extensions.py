"""Observers for user additions: extensions, hooks, MCP servers and the team archive (S5.6)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.context import ContextEntry, EntrySource
from ollm.domain.events import ConfirmationRequested, Event, LoopDetected, Notice, TurnFinished
from ollm.extensions.hooks import Hooks
from ollm.extensions.loader import ContextSource
from ollm.extensions.mcp.servers import McpServers
from ollm.runtime.base import TurnObserver, TurnReport
from ollm.runtime.changes import update_tools
from ollm.services.context_manager import DEFAULT_PRIORITY, ContextManager
from ollm.system.threads import run_in_thread

if TYPE_CHECKING:
    from ollm.archive.process import ArchiveProcess
    from ollm.runtime.parts import ConversationParts

ANSWER_TIMEOUT_SECONDS = 5.0


def add_entry(entries: ContextManager, key: str, fields: Mapping[str, Any], source: EntrySource) -> None:
    """Add a context entry of a hook or an extension. An invalid one is skipped with a warning."""
    entries.add_context(
        key,
        str(fields.get("content") or ""),
        priority=fields.get("priority", DEFAULT_PRIORITY),
        source=source,
        ttl_seconds=fields.get("ttl"),
        volatile=fields.get("volatile") is True,
    )


class ExtensionObserver(TurnObserver):
    """Syncs context entries with extensions. Removes entries a source drops; a failing source keeps its last ones."""

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
        if isinstance(entry, ContextEntry):
            entry = {name: getattr(entry, name) for name in ("key", "content", "priority", "volatile")}
        fields = entry if isinstance(entry, Mapping) else {"content": entry}
        named = str(fields.get("key") or "")
        key = f"{where}.{named}" if named else where
        add_entry(self._entries, key, fields, "extension")
        return key


class ArchiveObserver(TurnObserver):
    """Announces once what is sent, wakes the shipper after each turn and at the end, and reports its failures."""

    def __init__(self, shipping: ArchiveProcess, emit: Callable[[Event], None]) -> None:
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


class HookObserver(TurnObserver):
    """Runs hooks for a conversation. `notify_hooks` listens to the event stream."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def session_opened(self, session_id: str) -> None:
        await self._hooks.run_event("session-start", {"resumed": False})

    async def session_resumed(self, session_id: str) -> None:
        await self._hooks.run_event("session-start", {"resumed": True})

    async def before_turn(self, text: str) -> None:
        await self._hooks.before_turn(text)

    async def after_turn(self, report: TurnReport) -> None:
        data = {
            "reason": report.reason,
            "answer": report.answer,
            "usage": msgspec.to_builtins(report.usage),
            "calls": [{"id": call.id, "name": call.name, "status": call.status} for call in report.calls],
        }
        await self._hooks.run_event("after-turn", data)

    async def session_closed(self, session_id: str) -> None:
        await self._hooks.run_event("session-end", {})
        await self._hooks.close()

    def notify_hooks(self, event: Event) -> None:
        """Notify hooks of events that matter to a user who is looking elsewhere."""
        if isinstance(event, ConfirmationRequested | LoopDetected | TurnFinished):
            self._hooks.notify({"notification": msgspec.to_builtins(event)})


MAX_INSTRUCTION_CHARACTERS = 1_000


class McpObserver(TurnObserver):
    """Queries MCP servers without known tools before the first request, and the others in parallel with it.

    Answers that arrive meanwhile are used from the next request on."""

    def __init__(self, servers: McpServers, conversation: ConversationParts) -> None:
        self._servers = servers
        self._conversation = conversation
        self._registered = {spec.name for spec in servers.list_specs()}

    async def before_turn(self, text: str) -> None:
        if await self._servers.before_turn():
            self._register_tools()
        self._add_instructions()

    async def before_request(self) -> None:
        if await self._servers.before_request():
            self._register_tools()

    def _add_instructions(self) -> None:
        """Add the servers' instructions, each within its share of the window."""
        longest = min(MAX_INSTRUCTION_CHARACTERS, self._conversation.state.model.window // 16)
        for name, text in self._servers.get_instructions().items():
            self._conversation.prompt.entries.add_context(
                f"mcp.{name}", f"The MCP server {name} says: {text[:longest]}", source="extension"
            )

    def _register_tools(self) -> None:
        registry, specs = self._conversation.registry.get(), self._servers.list_specs()
        for name in self._registered - {spec.name for spec in specs}:
            registry.unregister(name)
        for spec in specs:
            registry.register(spec)
        self._registered = {spec.name for spec in specs}
        update_tools(self._conversation)

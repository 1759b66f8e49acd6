"""Prepares the next compaction's summary while nobody asks anything: on the conversation's own prefix, so that a server
with one cache keeps it, and only where the server says that it is idle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from ollm.domain.errors import OllmError
from ollm.domain.messages import PromptMessage
from ollm.runtime.model.model import Model
from ollm.runtime.prompt.compaction import Compactor
from ollm.runtime.prompt.prompt import Prompt
from ollm.services import budget as rules

QUIET_SECONDS = 2.0  # after an answer, before anything is prepared
DUE_SHARE = 0.6  # of what starts a compaction: with less there is nothing to prepare yet

_log = logging.getLogger(__name__)


@runtime_checkable
class IdleReporter(Protocol):
    """A server that says whether it has work."""

    async def is_idle(self) -> bool: ...


class IdleParts(Protocol):
    """What of a conversation is needed here."""

    @property
    def prompt(self) -> Prompt: ...

    @property
    def compactor(self) -> Compactor: ...

    @property
    def model(self) -> Model: ...


class IdleSummary:
    """One request at a time, and one after each answer."""

    def __init__(self, parts: IdleParts) -> None:
        self._parts = parts
        self.is_busy_elsewhere: Callable[[], bool] = lambda: False  # whether another session of this process has a turn
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """An answer was given: prepare what the next compaction needs, if it is near."""
        server = self._parts.model.provider
        if isinstance(server, IdleReporter) and self._is_due():
            self._task = asyncio.create_task(self._prepare(server), name="idle summary")

    def cancel(self) -> None:
        """Somebody is about to speak."""
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """Make way for whatever comes next; what is already prepared stays."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def discard(self) -> None:
        """The conversation may be another one now."""
        await self.stop()
        self._parts.compactor.prepared = None

    def _is_due(self) -> bool:
        wanted, prompt = self._parts.compactor.settings, self._parts.prompt
        if not wanted.enabled or wanted.idle == "off" or wanted.strategy == "truncate":
            return False
        return prompt.message_tokens > DUE_SHARE * prompt.compute_budget().trigger

    async def _prepare(self, server: IdleReporter) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        with suppress(OllmError):
            if not self.is_busy_elsewhere() and await server.is_idle():
                await self._request_summary()

    async def _request_summary(self) -> None:
        from ollm.services.chat_compression.compression_state import PreparedSummary
        from ollm.services.chat_compression.summary import IDLE_ORDER, clean_answer

        prompt, model = self._parts.prompt, self._parts.model
        budget = prompt.compute_budget()
        longest = rules.compute_summary_cap(budget, self._parts.compactor.settings.summary_max_tokens)
        order = PromptMessage(role="user", content=IDLE_ORDER.format(tokens=longest))
        if prompt.used_tokens + prompt.counter.count_message(order) + longest > budget.window:
            return
        standing = prompt.get_active_context().messages
        covered = max((number for message in standing for number in message.sources), default=0)
        pieces = model.summarise_aside((*prompt.preview_request(), order), prompt.tools, longest)
        text = clean_answer("".join([piece async for piece in pieces]))
        if text:
            self._parts.compactor.prepared = PreparedSummary(text=text, last_number=covered)
            _log.info("A summary was prepared while idle.", extra={"operation": "compress"})

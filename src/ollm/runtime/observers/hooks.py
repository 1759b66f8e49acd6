"""Tells hooks of sessions and turns, as an observer like any other."""

from __future__ import annotations

import msgspec

from ollm.domain.events import AnyEvent, ConfirmationRequested, LoopDetected, TurnFinished
from ollm.extensions.hooks import Hooks
from ollm.runtime.turn_observer import TurnObserver, TurnReport


class HookObserver(TurnObserver):
    """`notify_hooks` listens to the event stream."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        await self._hooks.run_event("session-start", {"resumed": resumed})

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

    def notify_hooks(self, event: AnyEvent) -> None:
        """What a person who looks elsewhere would want to know."""
        if isinstance(event, ConfirmationRequested | LoopDetected | TurnFinished):
            self._hooks.notify({"notification": msgspec.to_builtins(event)})

"""Confirmations on the screen: what is asked, why, and the ways to answer; several wait in order."""

from __future__ import annotations

from collections import deque

from ollm.cli.screen.paint import Painter, clean
from ollm.domain.events import AnyEvent, ConfirmationRequested, ConfirmationResolved
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Scope

KEYS: dict[str, Scope] = {"y": "once", "s": "session", "a": "always"}


class Questions:
    """The questions that wait, oldest first. `refusing` means that the reason for a no is being typed."""

    def __init__(self) -> None:
        self._waiting: deque[ConfirmationRequested] = deque()
        self.refusing = False

    @property
    def current(self) -> ConfirmationRequested | None:
        return self._waiting[0] if self._waiting else None

    def hear(self, event: AnyEvent) -> None:
        if isinstance(event, ConfirmationRequested):
            self._waiting.append(event)
        elif isinstance(event, ConfirmationResolved):
            if self.current and self.current.correlation_id == event.correlation_id:
                self.refusing = False
            self._waiting = deque(asked for asked in self._waiting if asked.correlation_id != event.correlation_id)

    def answer(self, key: str) -> ConfirmationAnswer | None:
        """What a key says to the current question; None when it says nothing here."""
        if self.current is None or key not in KEYS:
            return None
        scope = KEYS[key]
        return ConfirmationAnswer(approved=True, scope=scope) if scope == "once" or self._wider() else None

    def choices(self) -> str:
        """The line under the question."""
        if self.refusing:
            return "Why not? Enter sends it to the model, empty is fine."
        grant = self.current.details.grant if self.current else None
        wider = f" · [s] this session · [a] always ({clean(grant)})" if self._wider() and grant else ""
        more = f" · {len(self._waiting) - 1} more" if len(self._waiting) > 1 else ""
        return f"[y] yes{wider} · [n] no{more}"

    def _wider(self) -> bool:
        details = self.current.details if self.current else None
        return bool(details and details.grant and not details.locked)


def painted(details: ConfirmationDetails, painter: Painter) -> str:
    """The question, printed above the input."""
    rule = f" (rule: {details.rule.text})" if details.rule else ""
    text = painter.aside(f"? {details.description}", "bold yellow")
    text += painter.aside(f"{details.risk} risk · {details.reason}{rule}", "dim")
    if details.command:
        text += painter.aside(f"$ {details.command}")
        for part in details.parts if len(details.parts) > 1 else ():
            text += painter.aside(f"  {part.decision}: {part.command} ({part.reason})", "dim")
    return text + painter.diff(details.diff) if details.diff else text

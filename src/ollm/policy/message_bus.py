"""Questions to the user and their answers, matched by correlation id (T8).

Every request is announced with `ConfirmationRequested` and ended with exactly one `ConfirmationResolved`. The first
answer wins, and each caller of `respond` gets back whether its answer was used. Listeners are called in the event loop,
in the order they subscribed, and must not raise or block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal
from uuid import uuid4

from ollm.domain.errors import ExitCode, OllmError
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails

BusEvent = ConfirmationRequested | ConfirmationResolved
Listener = Callable[[BusEvent], None]
Outcome = Literal["approved", "refused", "timeout", "cancelled"]


class ConfirmationTimeoutError(OllmError):
    """Timeout of a question. It does not count as a refusal."""

    exit_code = ExitCode.TIMED_OUT


class ConfirmationCancelledError(OllmError):
    """Withdrawal of a question before it was answered."""

    exit_code = ExitCode.INTERRUPTED


class PendingConfirmation(Data, frozen=True):
    correlation_id: str
    details: ConfirmationDetails


class MessageBus:
    """Questions of one conversation. Several may be pending at once; each is answered by its id."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[PendingConfirmation, asyncio.Future[ConfirmationAnswer]]] = {}
        self._listeners: list[Listener] = []
        self._closed = False

    async def request(self, details: ConfirmationDetails, *, timeout: float | None = None) -> ConfirmationAnswer:
        """Ask, and wait for the answer. Cancelling the waiting task withdraws the question.

        Raises ConfirmationTimeoutError or ConfirmationCancelledError, so that neither looks like a refusal."""
        if self._closed:
            raise ConfirmationCancelledError("The conversation is closed.")
        correlation_id = str(uuid4())
        future: asyncio.Future[ConfirmationAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = (PendingConfirmation(correlation_id=correlation_id, details=details), future)
        outcome: Outcome = "cancelled"
        answer: ConfirmationAnswer | None = None
        try:
            self._notify(ConfirmationRequested(correlation_id=correlation_id, details=details))
            answer = await self._wait_for_answer(future, details, timeout)
            outcome = "approved" if answer.approved else "refused"
            return answer
        except ConfirmationTimeoutError:
            outcome = "timeout"
            raise
        finally:
            self._waiting.pop(correlation_id, None)
            self._notify(ConfirmationResolved(correlation_id=correlation_id, outcome=outcome, answer=answer))

    async def _wait_for_answer(
        self, future: asyncio.Future[ConfirmationAnswer], details: ConfirmationDetails, timeout: float | None
    ) -> ConfirmationAnswer:
        done, _ = await asyncio.wait((future,), timeout=timeout)
        if not done:
            raise ConfirmationTimeoutError(f"No answer within {timeout:g} seconds whether {details.tool} may run.")
        if future.cancelled():
            raise ConfirmationCancelledError(f"The question whether {details.tool} may run was withdrawn.")
        return future.result()

    def respond(self, correlation_id: str, answer: ConfirmationAnswer) -> bool:
        """Answer a question. Return False if it is no longer pending: answered, timed out or cancelled."""
        _, future = self._waiting.pop(correlation_id, (None, None))
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True

    def cancel(self, correlation_id: str) -> bool:
        """Withdraw one question. Return False if it is no longer pending."""
        _, future = self._waiting.pop(correlation_id, (None, None))
        return future is not None and future.cancel()

    def cancel_all(self) -> int:
        return sum(self.cancel(correlation_id) for correlation_id in list(self._waiting))

    def close(self) -> None:
        self._closed = True
        self.cancel_all()

    @property
    def pending(self) -> tuple[PendingConfirmation, ...]:
        return tuple(entry for entry, _ in self._waiting.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Receive every question and outcome, and pending questions immediately. Call the result to unsubscribe."""
        self._listeners.append(listener)
        for entry in self.pending:
            listener(ConfirmationRequested(correlation_id=entry.correlation_id, details=entry.details))

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _notify(self, event: BusEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

"""Who answers when policy asks (T7.3): a front end over the message bus, or nobody, and then asking is a denial."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from ollm.domain.call_summary import describe_answer
from ollm.domain.errors import ToolFailure
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved
from ollm.domain.tools import AnsweredQuestion, ConfirmationAnswer, ConfirmationDetails
from ollm.policy.message_bus import ConfirmationCancelledError, ConfirmationTimeoutError, MessageBus


class Asker(Protocol):
    """Raises ToolFailure when there is no answer: `Denied` after a time-out, `Cancelled` when it was taken back."""

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer: ...


UNATTENDED_TIMEOUT_SECONDS = 600.0
BeforeQuestion = Callable[[], Awaitable[None]]


class BusAsker:
    """A front end answers. `timeout` None waits for as long as `attached` says that somebody listens, and ten minutes
    when nobody does. With `yes` only questions about protected files and paths outside are asked. `before` is awaited
    before each that is."""

    def __init__(
        self,
        bus: MessageBus,
        timeout: float | None = None,
        *,
        yes: bool = False,
        attached: Callable[[], bool] = lambda: True,
        before: BeforeQuestion | None = None,
    ) -> None:
        self._bus = bus
        self._timeout = timeout
        self._yes = yes
        self._attached = attached
        self._before = before

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        if self._yes and not details.locked:
            return ConfirmationAnswer(approved=True)
        if self._before:
            await self._before()
        timeout = self._timeout if self._timeout or self._attached() else UNATTENDED_TIMEOUT_SECONDS
        try:
            return await self._bus.request(details, timeout=timeout)
        except ConfirmationTimeoutError as error:
            raise ToolFailure("Denied", f"Not run: {error.message}") from error
        except ConfirmationCancelledError as error:
            raise ToolFailure("Cancelled", f"Not run: {error.message}") from error


class AnswerLog:
    """What people answered to the questions of each call that has not ended. It listens to the message bus: what flags
    answer is no answer."""

    def __init__(self) -> None:
        self._asked: dict[str, ConfirmationDetails] = {}
        self._answers: dict[str, list[AnsweredQuestion]] = {}

    def begin_call(self, call_id: str) -> None:
        self._answers[call_id] = []

    def end_call(self, call_id: str) -> tuple[AnsweredQuestion, ...]:
        """What was answered since it began."""
        return tuple(self._answers.pop(call_id, ()))

    def handle_event(self, event: ConfirmationRequested | ConfirmationResolved) -> None:
        if isinstance(event, ConfirmationRequested):
            self._asked[event.correlation_id] = event.details
            return
        details = self._asked.pop(event.correlation_id, None)
        if details is None or event.outcome == "cancelled" or not self._answers:
            return
        newest = next(reversed(self._answers))  # a server's own question names no call: it is the one that runs
        said = describe_answer(details, event.answer)
        call_id = details.call_id if details.call_id in self._answers else newest
        self._answers[call_id].append(AnsweredQuestion(question=details.description, answer=said))


class UnattendedAsker:
    """Nobody can be asked. With `yes` every question is answered, but for protected files and paths outside."""

    def __init__(self, *, yes: bool = False) -> None:
        self._yes = yes

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        if self._yes and not details.locked:
            return ConfirmationAnswer(approved=True)
        return ConfirmationAnswer(approved=False, reason=explain_refusal(details, yes=self._yes))


def explain_refusal(details: ConfirmationDetails, *, yes: bool) -> str:
    """Why nobody said yes, and what would."""
    why = details.reason.rstrip(".") or "policy asks before it runs"
    if details.locked:
        return f"{why}. This always needs your confirmation, and ollm cannot ask in non-interactive mode."
    grant = f", or grant it with --allow '{details.grant}'" if details.grant else ""
    way = "" if yes else f" Use --yes{grant}."
    return f"{why}, and ollm cannot ask in non-interactive mode.{way}"

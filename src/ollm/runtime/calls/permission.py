"""Decides whether a call may run (T7, T10.4): by policy, and by asking the user if policy requires it.

The user answers over the message bus. If no user is present, a question counts as a denial.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved
from ollm.domain.tools import (
    AnsweredQuestion,
    ConfirmationAnswer,
    ConfirmationDetails,
    FileChange,
    PolicyRequest,
    Verdict,
    describe_answer,
)
from ollm.policy.message_bus import ConfirmationCancelledError, ConfirmationTimeoutError, MessageBus
from ollm.system.paths import Boundary, join_path
from ollm.system.terminal_text import render_command
from ollm.tools.framework.base import Invocation, ToolContext, ToolSpec

MAX_CHANGE_CHARS = 400_000


class Asker(Protocol):
    """Asks the user. Raises ToolFailure without an answer: `Denied` after a timeout, `Cancelled` if withdrawn."""

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer: ...


BeforeQuestion = Callable[[], Awaitable[None]]


class UserAsker:
    """Asks a front end over `bus`, for at most `timeout` seconds. Without a bus each question counts as a denial. With
    `yes` only protected files and paths outside are a question. `before` is awaited before each question it asks."""

    def __init__(
        self,
        bus: MessageBus | None = None,
        timeout: float | None = None,
        *,
        yes: bool = False,
        before: BeforeQuestion | None = None,
    ) -> None:
        self._bus = bus
        self._timeout = timeout
        self._yes = yes
        self._before = before

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        if self._yes and not details.locked:
            return ConfirmationAnswer(approved=True)
        if self._bus is None:
            return ConfirmationAnswer(approved=False, reason=explain_refusal(details, yes=self._yes))
        if self._before:
            await self._before()
        try:
            return await self._bus.request(details, timeout=self._timeout)
        except ConfirmationTimeoutError as error:
            raise ToolFailure("Denied", f"Not run: {error.message}") from error
        except ConfirmationCancelledError as error:
            raise ToolFailure("Cancelled", f"Not run: {error.message}") from error


class AnswerLog:
    """A log of the user's answers to questions about each unfinished call. It listens to the message bus, so
    questions that flags answer are not included."""

    def __init__(self) -> None:
        self._asked: dict[str, ConfirmationDetails] = {}
        self._answers: dict[str, list[AnsweredQuestion]] = {}

    def begin_call(self, call_id: str) -> None:
        self._answers[call_id] = []

    def end_call(self, call_id: str) -> tuple[AnsweredQuestion, ...]:
        """Return the answers given since the call began."""
        return tuple(self._answers.pop(call_id, ()))

    def handle_event(self, event: ConfirmationRequested | ConfirmationResolved) -> None:
        if isinstance(event, ConfirmationRequested):
            self._asked[event.correlation_id] = event.details
            return
        details = self._asked.pop(event.correlation_id, None)
        if details is None or event.outcome == "cancelled" or not self._answers:
            return
        newest = next(reversed(self._answers))  # A server's question names no call.
        said = describe_answer(details, event.answer)
        call_id = details.call_id if details.call_id in self._answers else newest
        self._answers[call_id].append(AnsweredQuestion(question=details.description, answer=said))


def explain_refusal(details: ConfirmationDetails, *, yes: bool) -> str:
    """Explain why the call was not approved, and what would allow it."""
    why = details.reason.rstrip(".") or "policy asks before it runs"
    if details.locked:
        return f"{why}. This always needs your confirmation, and ollm cannot ask in non-interactive mode."
    grant = f", or grant it with --allow '{details.grant}'" if details.grant else ""
    way = "" if yes else f" Use --yes{grant}."
    return f"{why}, and ollm cannot ask in non-interactive mode.{way}"


def build_policy_request(spec: ToolSpec, invocation: Invocation, boundary: Boundary) -> PolicyRequest:
    """Build the request for policy. Raises ToolFailure for an invalid path rather than asking about it."""
    locations = tuple(invocation.tool.locations())
    for place in locations:
        if "://" not in place.target:
            join_path(place.target, boundary.workspace)
    return PolicyRequest(
        tool=spec.name,
        params=invocation.tool.list_parameters(),
        risk=spec.risk,
        locations=locations,
        reads_only=spec.reads_only,
        identity=spec.identity,
    )


async def build_confirmation(
    spec: ToolSpec, invocation: Invocation, context: ToolContext, verdict: Verdict
) -> ConfirmationDetails:
    """Build the question for the user, with hidden characters made visible."""
    details = invocation.tool.confirmation(verdict) or ConfirmationDetails(
        call_id="", tool=spec.name, description=invocation.tool.summary(), risk=verdict.risk, reason=verdict.reason
    )
    if context.editor is not None:
        from ollm.tools.files.file_change import load_buffers

        context = await load_buffers(context, invocation.tool.locations())
    changes = await preview_changes(invocation, context, verdict)
    length = sum(len(change.before or "") + len(change.after) for change in changes)
    return msgspec.structs.replace(
        details,
        description=render_command(details.description),
        locations=tuple(render_command(location) for location in details.locations),
        diff="".join(map(render_change, changes)),
        changes=changes if length <= MAX_CHANGE_CHARS else (),
    )


def render_change(change: FileChange) -> str:
    from ollm.tools.files.file_change import make_diff

    return make_diff(change.path, change.before or "", change.after)


async def preview_changes(invocation: Invocation, context: ToolContext, verdict: Verdict) -> tuple[FileChange, ...]:
    """List the changes the call would make. Raises ToolFailure for a call that would fail, so that it is not asked
    about, unless the reason would reveal a file that needs permission to read."""
    try:
        return await invocation.list_changes(context)
    except ToolFailure:
        if verdict.locked:
            return ()
        raise

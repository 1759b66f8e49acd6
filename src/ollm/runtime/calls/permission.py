"""Decides whether a call may run (T7, T10.4): policy is asked, and a person if policy says so.

The person answers over the message bus; without anybody a question is a denial.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved
from ollm.domain.tools import (
    AnsweredQuestion,
    ConfirmationAnswer,
    ConfirmationDetails,
    FileChange,
    GrantScope,
    PolicyRequest,
    Verdict,
    describe_answer,
)
from ollm.policy.message_bus import ConfirmationCancelledError, ConfirmationTimeoutError, MessageBus
from ollm.system.paths import Boundary
from ollm.system.terminal_text import render_command
from ollm.tools.framework.base import Invocation, ToolContext, ToolSpec

MAX_CHANGE_CHARS = 400_000


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


class Policy(Protocol):
    def evaluate(self, request: PolicyRequest) -> Verdict: ...


class Permit(msgspec.Struct, frozen=True):
    """What a call that may run may do. `unasked`: it only reads, and nobody was asked; `approved` are the paths
    that a person opened for it alone, and `outside` lets it alone leave the sandbox."""

    boundary: Boundary
    unasked: bool = False
    approved: tuple[str, ...] = ()
    outside: bool = False


class Permission(msgspec.Struct, frozen=True):
    """Who decides: policy first, then the person; `remember` gets what they granted for longer than one call."""

    policy: Policy
    asker: Asker
    remember: Callable[[str, GrantScope], object]

    async def authorize_call(
        self, spec: ToolSpec, invocation: Invocation, context: ToolContext, call_id: str, must_ask: str = ""
    ) -> Permit:
        """Where the call may go, with the paths that were approved for it alone. Raises ToolFailure when it may not
        run at all. `must_ask` is why a person is asked also where policy would allow it."""
        verdict = self.policy.evaluate(build_policy_request(spec, invocation, context.boundary))
        if must_ask and verdict.decision == "allow":
            verdict = msgspec.structs.replace(verdict, decision="ask", reason=must_ask, grant=None, locked=True)
        if verdict.decision == "deny":
            raise ToolFailure(verdict.error_type, f"Not run: {verdict.reason}")
        if verdict.decision == "allow":
            return Permit(context.boundary, unasked=verdict.reads)
        details = await build_confirmation(spec, invocation, context, verdict)
        answer = await self.asker.ask(msgspec.structs.replace(details, call_id=call_id))
        if not answer.approved:
            raise ToolFailure(verdict.error_type, f"Not run: {answer.reason or 'the user declined.'}")
        if answer.scope != "once" and verdict.grant and not verdict.locked:
            self.remember(verdict.prefix if answer.prefix and verdict.prefix else verdict.grant, answer.scope)
        boundary = context.boundary.approve_paths(map(Path, verdict.approve))
        return Permit(boundary, approved=verdict.approve, outside=verdict.outside)


def build_policy_request(spec: ToolSpec, invocation: Invocation, boundary: Boundary) -> PolicyRequest:
    """The call as policy sees it. A path that is none is a mistake, not a question: it is told here."""
    locations = tuple(invocation.locations())
    for place in locations:
        if "://" not in place.target:
            boundary.judge(place.target)
    return PolicyRequest(
        tool=spec.name,
        params=invocation.params,
        risk=spec.risk,
        locations=locations,
        reads_only=spec.reads_only,
        identity=spec.identity,
    )


async def build_confirmation(
    spec: ToolSpec, invocation: Invocation, context: ToolContext, verdict: Verdict
) -> ConfirmationDetails:
    """What the person is shown, with nothing hidden in it."""
    details = invocation.confirmation(verdict) or ConfirmationDetails(
        call_id="", tool=spec.name, description=invocation.summary(), risk=verdict.risk, reason=verdict.reason
    )
    if context.editor is not None:
        from ollm.tools.files.file_change import load_buffers

        context = await load_buffers(context, invocation.locations())
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
    """What the call would change. One that is going to fail is not asked about, unless the reason why it fails would
    reveal a file that may not be read unasked."""
    try:
        return await invocation.list_changes(context)
    except ToolFailure:
        if verdict.locked:
            return ()
        raise

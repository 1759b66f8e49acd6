"""Whether a call may run (T7, T10.4): policy is asked, and the person where policy says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import ConfirmationDetails, FileChange, GrantScope, PolicyRequest, Verdict
from ollm.runtime.calls.confirmation import Asker
from ollm.system.paths import Boundary
from ollm.system.terminal_text import render_command
from ollm.tools.framework.base import Invocation, ToolContext, ToolSpec

MAX_CHANGE_CHARS = 400_000


class Policy(Protocol):
    def evaluate(self, request: PolicyRequest) -> Verdict: ...


class Permit(msgspec.Struct, frozen=True):
    """What a call that may run may do. `unasked`: it only reads, and nobody was asked; `approved` are the paths
    that a person opened for it alone."""

    boundary: Boundary
    unasked: bool = False
    approved: tuple[str, ...] = ()


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
        return Permit(context.boundary.approve_paths(map(Path, verdict.approve)), approved=verdict.approve)


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
        from ollm.tools.files.buffers import load_buffers

        context = await load_buffers(context, invocation.locations())
    diff = details.diff or await preview_change(invocation, context, verdict)
    return msgspec.structs.replace(
        details,
        description=render_command(details.description),
        locations=tuple(render_command(location) for location in details.locations),
        diff=diff,
        changes=await list_small_changes(invocation, context) if diff else (),
    )


async def list_small_changes(invocation: Invocation, context: ToolContext) -> tuple[FileChange, ...]:
    """What the call would change as whole texts; nothing where they are too long to send along."""
    changes = await invocation.list_changes(context)
    length = sum(len(change.before or "") + len(change.after) for change in changes)
    return changes if length <= MAX_CHANGE_CHARS else ()


async def preview_change(invocation: Invocation, context: ToolContext, verdict: Verdict) -> str:
    """What the call would change. One that is going to fail is not asked about, unless the reason why it fails would
    reveal a file that may not be read unasked."""
    try:
        return await invocation.preview(context)
    except ToolFailure:
        if verdict.locked:
            return ""
        raise

"""Actions of a turn, derived from the recorded calls (W: episodic memory)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ollm.domain.session import CommandOutcome, Episode
from ollm.domain.tools import ToolCallRecord

MAX_COMMAND_CHARS = 300
MAX_TEXT_CHARS = 2_000


def make_episode(
    session_id: str,
    number: int,
    timestamp: int,
    request: str,
    answer: str,
    reason: str,
    calls: Sequence[ToolCallRecord],
    writing_tools: Collection[str],
) -> Episode:
    """One turn as a row of the workspace's memory. `writing_tools` change the file that their `path` names."""
    return Episode(
        session_id=session_id,
        number=number,
        timestamp=timestamp,
        request=request[:MAX_TEXT_CHARS],
        answer=answer[:MAX_TEXT_CHARS],
        reason=reason,
        files=list_changed_files(calls, writing_tools),
        commands=tuple(make_outcome(call) for call in calls if call.name == "shell" and "command" in call.args),
        decisions=tuple(str(call.args.get("text", "")) for call in calls if is_decision(call)),
        errors=tuple(f"{call.name}: {call.error.message}"[:MAX_COMMAND_CHARS] for call in calls if call.error),
    )


def list_changed_files(calls: Sequence[ToolCallRecord], writing_tools: Collection[str]) -> tuple[str, ...]:
    """Paths that were written, in the order of their first change."""
    paths = (str(call.args.get("path", "")) for call in calls if call.name in writing_tools and call.status == "ok")
    return tuple(dict.fromkeys(path for path in paths if path))


def is_decision(call: ToolCallRecord) -> bool:
    return call.name == "goal" and call.args.get("action") == "decision" and call.status == "ok"


def make_outcome(call: ToolCallRecord) -> CommandOutcome:
    code = call.result.exit_code if call.result else None
    said = f"exit {code}" if code else call.error.type if call.error else "ok" if call.status == "ok" else call.status
    return CommandOutcome(command=str(call.args["command"])[:MAX_COMMAND_CHARS], outcome=said)

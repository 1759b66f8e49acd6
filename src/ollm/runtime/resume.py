"""How a session is taken up again: what the model is told of it (W: summary-based resume)."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.messages import PromptMessage
from ollm.domain.workspace import ChatSession, PlanState
from ollm.services.message_records import from_records

OPENING = "This conversation is taken up again. Where it stood, written by the program:"
CLOSING = "Go on from here; look up older messages with recall when you need them."


def seeded(record: ChatSession) -> tuple[PromptMessage, ...]:
    """The recent messages, then one message of the engine's: summary, plan step, and to go on from here."""
    return (*from_records(record.recent_messages), engine_message(record.summary, record.plan))


def engine_message(summary: str, plan: PlanState) -> PromptMessage:
    lines = [OPENING, summary or "Nothing was noted."]
    if plan.current and not plan.current.done:
        lines.append(f"Current step: {plan.current.text}")
    if plan.paused:
        lines.append("The plan is paused: do not go on with it unless asked.")
    return PromptMessage(role="user", content="\n".join([*lines, CLOSING]))


def where_it_stood(record: ChatSession, last_lines: Sequence[str] = ()) -> str:
    """The same for the person who comes back."""
    return "\n".join(part for part in (record.summary, *last_lines) if part)

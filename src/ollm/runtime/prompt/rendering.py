"""Recorded messages as a model is sent them: calls and results looked up, thinking left out, failures named."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ollm.domain.messages import ImagePart, Message, PromptMessage, ToolCall, ToolResultPart
from ollm.domain.tools import RecordedResult, ToolCallRecord

NO_RESULT = "Error Interrupted: the call did not finish; nothing is known of its outcome."
INTERRUPTED = "[interrupted here]"


def render_message(message: Message, calls: Mapping[str, ToolCallRecord]) -> list[PromptMessage]:
    """None for an empty answer, one for each result of a tool message, otherwise one."""
    if message.role == "tool":
        found = [_render_result(message, part.id, calls) for part in message.parts if isinstance(part, ToolResultPart)]
        if message.text and found:
            found[-1] = msgspec.structs.replace(found[-1], content=f"{found[-1].content}\n\n{message.text}")
        return found
    if message.role == "assistant":
        return _render_answer(message, calls)
    images = tuple(part for part in message.parts if isinstance(part, ImagePart))
    return [PromptMessage(role=message.role, content=message.text, images=images, sources=(message.id,))]


def _render_answer(message: Message, calls: Mapping[str, ToolCallRecord]) -> list[PromptMessage]:
    asked = tuple(
        ToolCall(id=record.id, name=record.name, arguments=record.args)
        for record in (calls[found] for found in message.call_ids if found in calls)
    )
    text = message.text
    if message.interrupted and not asked:
        text = f"{text}\n{INTERRUPTED}".strip()
    if not text.strip() and not asked:
        return []
    return [PromptMessage(role="assistant", content=text, calls=asked, sources=(message.id,))]


def _render_result(message: Message, call_id: str, calls: Mapping[str, ToolCallRecord]) -> PromptMessage:
    record = calls.get(call_id)
    return PromptMessage(
        role="tool",
        content=format_result_text(record) if record else NO_RESULT,
        call_id=call_id,
        tool_name=record.name if record else None,
        images=record.result.images if record and record.result else (),
        sources=(message.id,),
        failed=record is None or has_failed(record),
    )


def has_failed(record: ToolCallRecord) -> bool:
    """Whether the call failed, or the command it ran did."""
    return record.error is not None or record.result is None or bool(record.result.exit_code)


def format_result_text(record: ToolCallRecord) -> str:
    """What the model reads: a failure starts with `Error TYPE:` or `Exit code: N`."""
    result = record.result or RecordedResult(llm_content="")
    said = result.llm_content
    if record.error is not None:
        if said.startswith("Error "):
            return said
        known = record.error.message in said
        return f"Error {record.error.type}: " + (said if known else f"{record.error.message}\n{said}".strip())
    if record.result is None:
        return NO_RESULT
    if result.exit_code and not said.startswith("Exit code:"):
        return f"Exit code: {result.exit_code}\n{said}"
    return said or "(no output)"

"""A workspace's memory of a session (W): its newest messages, its turns as episodes, and a summary of them.

Recent messages are bounded in four ways and in an order any server accepts: a call and its results stay together, the
window starts with a user message, and an interrupted call gets a result that reports it. Episodes come from the
recorded calls. The summary is written by the engine, not the model: the plan and unfinished work first, then the last
turn, then earlier ones, and a count of the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ollm.config.settings import ResumeSettings
from ollm.domain.messages import JsonObject, PromptMessage, Role, ToolCall, encode_calls, group_messages
from ollm.domain.session import CommandOutcome, Episode, PlanState
from ollm.domain.text import cut_middle, format_names, shorten_line
from ollm.domain.tools import ToolCallRecord

INTERRUPTED_TEXT = "[interrupted: this call has no result]"
MESSAGE_OVERHEAD_CHARS = 64
MAX_COMMAND_CHARS = 300
MAX_TEXT_CHARS = 2_000
MAX_REQUEST_CHARS = 300
MAX_LINE_CHARS = 160
MAX_SHORT_CHARS = 70
ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class RecentWindow:
    """A ring buffer of all messages. `collect_messages` returns the ones to keep."""

    def __init__(self, settings: ResumeSettings, messages: Iterable[PromptMessage] = ()) -> None:
        self._settings = settings
        self._ring: deque[PromptMessage] = deque(maxlen=max(settings.messages * 2, 8))
        self._request: PromptMessage | None = None
        for message in messages:
            self.add(message)

    def add(self, message: PromptMessage) -> None:
        if message.role == "user":
            self._request = message
        self._ring.append(message)

    def collect_messages(self) -> tuple[PromptMessage, ...]:
        """Collect the newest messages that fit, oldest first. If no user message is among them, the newest one is put
        first."""
        units = [shorten_unit(unit, self._settings) for unit in group_units(self._ring)]
        first = [shorten_unit([self._request], self._settings)[0]] if self._request else []
        available = self._settings.messages - len(first), self._settings.total_chars - count_json_chars(first)
        kept = select_newest(units, *available)
        start = next((i for i, unit in enumerate(kept) if unit[0].role == "user"), None)
        if start is not None:
            return tuple(message for unit in kept[start:] for message in unit)
        return (*first, *(message for unit in kept for message in unit)) if first else ()


def group_units(messages: Iterable[PromptMessage]) -> list[list[PromptMessage]]:
    """Group each answer with one result per call, an interrupted one if there is none. Stray results are left out."""
    units: list[list[PromptMessage]] = []
    for head, *results in group_messages(message for message in messages if message.role != "system"):
        if head.role != "tool":
            found = {result.call_id: result for result in results}
            units.append([head, *(found.get(call.id) or make_interrupted(call) for call in head.calls)])
    return units


def make_interrupted(call: ToolCall) -> PromptMessage:
    return PromptMessage(role="tool", content=INTERRUPTED_TEXT, call_id=call.id, tool_name=call.name, failed=True)


def shorten_unit(unit: Sequence[PromptMessage], settings: ResumeSettings) -> list[PromptMessage]:
    return [
        msgspec.structs.replace(
            message,
            content=cut_middle(
                message.content, settings.tool_output_chars if message.role == "tool" else settings.message_chars
            ),
            thinking="",
            thinking_details=(),
            images=(),
            written="",
            calls=tuple(shorten_call(call, settings.message_chars) for call in message.calls),
        )
        for message in unit
    ]


def shorten_call(call: ToolCall, limit: int) -> ToolCall:
    """Shorten the arguments of a call if they are too long."""
    encoded = msgspec.json.encode(call.arguments)
    if len(encoded) <= limit:
        return call
    share = max(16, limit // (2 * max(1, len(call.arguments))))
    short = {
        key: cut_middle(value, share) if isinstance(value, str) else value for key, value in call.arguments.items()
    }
    if len(msgspec.json.encode(short)) > limit:
        short = {"cut": cut_middle(encoded.decode(errors="replace"), limit // 2)}
    return msgspec.structs.replace(call, arguments=short)


def select_newest(units: Sequence[list[PromptMessage]], messages: int, characters: int) -> list[list[PromptMessage]]:
    """Select whole units from the end, as many as fit both limits."""
    kept: list[list[PromptMessage]] = []
    for unit in reversed(units):
        messages -= len(unit)
        characters -= count_json_chars(unit)
        if messages < 0 or characters < 0:
            break
        kept.append(unit)
    return kept[::-1]


def count_json_chars(messages: Sequence[PromptMessage]) -> int:
    return sum(len(msgspec.json.encode(message).decode()) + MESSAGE_OVERHEAD_CHARS for message in messages)


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
    """Make an episode from one turn. `writing_tools` are tools that change the file named by their `path`."""
    return Episode(
        session_id=session_id,
        number=number,
        timestamp=timestamp,
        request=request[:MAX_TEXT_CHARS],
        answer=answer[:MAX_TEXT_CHARS],
        reason=reason,
        files=list_changed_files(calls, writing_tools),
        commands=tuple(make_outcome(call) for call in calls if call.name == "shell" and "command" in call.args),
        decisions=tuple(
            str(call.args.get("text", ""))
            for call in calls
            if call.name == "goal" and call.args.get("action") == "decision" and call.status == "ok"
        ),
        errors=tuple(f"{call.name}: {call.error.message}"[:MAX_COMMAND_CHARS] for call in calls if call.error),
    )


def list_changed_files(calls: Sequence[ToolCallRecord], writing_tools: Collection[str]) -> tuple[str, ...]:
    """List the paths that were written, in the order of their first change."""
    paths = (str(call.args.get("path", "")) for call in calls if call.name in writing_tools and call.status == "ok")
    return tuple(dict.fromkeys(path for path in paths if path))


def make_outcome(call: ToolCallRecord) -> CommandOutcome:
    code = call.result.exit_code if call.result else None
    said = f"exit {code}" if code else call.error.type if call.error else "ok" if call.status == "ok" else call.status
    return CommandOutcome(command=str(call.args["command"])[:MAX_COMMAND_CHARS], outcome=said)


def render_rolling_summary(episodes: Sequence[Episode], plan: PlanState, limit: int) -> str:
    """Render at most `limit` characters."""
    if not episodes and not plan.steps:
        return ""
    head = [*render_plan(plan), *render_unfinished(episodes), *render_last_turn(episodes[-1:])]
    text = clip("\n".join(head), limit)
    return append_earlier_turns(text, episodes[:-1], limit)


def render_plan(plan: PlanState) -> list[str]:
    if not plan.steps:
        return []
    state = "paused" if plan.paused else "waiting for you" if plan.awaiting_continuation else "in progress"
    lines = [f"Plan: {plan.done_count} of {len(plan.steps)} steps done, {state}."]
    if plan.current_step and not plan.current_step.done:
        lines.append(f"Now: {clip(plan.current_step.text, MAX_LINE_CHARS)}")
    rest = [step.text for i, step in enumerate(plan.steps) if not step.done and i != plan.current_step_index]
    if rest:
        lines.append(f"Then: {format_names([clip(text, MAX_SHORT_CHARS) for text in rest], 5)}")
    return lines


def render_unfinished(episodes: Sequence[Episode]) -> list[str]:
    """Render open failures: commands whose last run failed, and a turn that stopped early."""
    last: dict[str, str] = {}
    for episode in episodes:
        for command in episode.commands:
            last.pop(command.command, None)
            if not command.ok:
                last[command.command] = command.outcome
    open_points = [f"`{clip(name, MAX_SHORT_CHARS)}` ended with {outcome}" for name, outcome in list(last.items())[-4:]]
    if episodes and episodes[-1].reason != "answered":
        open_points.append(f"the last turn ended early ({episodes[-1].reason})")
    return [f"Unfinished: {'; '.join(open_points)}."] if open_points else []


def render_last_turn(last: Sequence[Episode]) -> list[str]:
    lines: list[str] = []
    for episode in last:
        parts = {
            f"Last request (#{episode.number})": [shorten_line(episode.request, MAX_REQUEST_CHARS)],
            "Answer": [shorten_line(episode.answer, MAX_REQUEST_CHARS)],
            "Files changed": [format_names(episode.files, 8)],
            "Commands": [f"`{clip(c.command, MAX_SHORT_CHARS)}` → {c.outcome}" for c in episode.commands[-4:]],
            "Decided": [clip(text, MAX_LINE_CHARS) for text in episode.decisions[-4:]],
            "Errors": [shorten_line(text, MAX_LINE_CHARS) for text in episode.errors[-3:]],
        }
        lines += [f"{name}: {'; '.join(texts)}" for name, texts in parts.items() if any(texts)]
    return lines


def append_earlier_turns(text: str, earlier: Sequence[Episode], limit: int) -> str:
    """Add a line per earlier turn, oldest first. If not all fit, keep the newest and count the rest."""
    kept: list[str] = []
    left = limit - len(text) - len("\nEarlier:\n- (and 999999 requests before that)")
    for episode in reversed(earlier):
        line = render_earlier_turn(episode)
        if left < len(line) + 1:
            break
        left -= len(line) + 1
        kept.append(line)
    left = len(earlier) - len(kept)
    if not kept and not left:
        return text
    before = [f"- (and {left} requests before that)"] if left else []
    return clip("\n".join([text, "Earlier:", *before, *reversed(kept)]), limit)


def render_earlier_turn(episode: Episode) -> str:
    parts = [f"- #{episode.number} {shorten_line(episode.request, MAX_SHORT_CHARS)}"]
    if episode.files:
        parts.append(f"changed {format_names(episode.files, 3)}")
    if episode.decisions:
        parts.append(f"decided: {shorten_line(episode.decisions[-1], MAX_SHORT_CHARS)}")
    if bad := [command for command in episode.commands if not command.ok]:
        parts.append(f"`{clip(bad[-1].command, 40)}` → {bad[-1].outcome}")
    return "; ".join(parts)


def clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…" if limit > 0 else ""


def to_record(message: PromptMessage) -> dict[str, Any]:
    more = {
        "tool_calls": encode_calls(message.calls),
        "tool_call_id": message.call_id,
        "failed": message.failed,
        "sources": list(message.sources),
    }
    return {"role": message.role, "content": message.content} | {name: value for name, value in more.items() if value}


def from_records(records: Iterable[Mapping[str, Any]]) -> list[PromptMessage]:
    """Read the records. Records of another shape are skipped."""
    return [message for record in records if (message := from_record(record))]


def from_record(record: Mapping[str, Any]) -> PromptMessage | None:
    role, content = ROLES.get(str(record.get("role"))), record.get("content")
    if role is None or not isinstance(content, str | None):
        return None
    call_id = record.get("tool_call_id")
    return PromptMessage(
        role=role,
        content=content or "",
        calls=tuple(call for entry in record.get("tool_calls") or () if (call := read_call(entry))),
        call_id=call_id if isinstance(call_id, str) else None,
        failed=record.get("failed") is True,
        sources=tuple(number for number in record.get("sources") or () if isinstance(number, int)),
    )


def read_call(entry: Any) -> ToolCall | None:
    match entry:
        case {"id": str(call_id), "function": {**function}}:
            try:
                arguments = msgspec.json.decode(str(function.get("arguments")), type=JsonObject)
            except msgspec.DecodeError:
                arguments = {}
            return ToolCall(id=call_id, name=str(function.get("name", "")), arguments=arguments)
    return None

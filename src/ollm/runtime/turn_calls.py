"""Reads an answer as it streams, and runs its calls unless they loop.

Pieces are emitted as events, and the text so far is saved to disk at least every two seconds.

A model that writes blocks gets a guide, which turns its blocks into calls and tracks their changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.events import Event, PrefillProgress, TextDelta, ThinkingDelta
from ollm.domain.messages import (
    UNPARSED_KEY,
    AnyPart,
    JsonObject,
    TextPart,
    ThinkingField,
    ThinkingPart,
    ToolCall,
    ToolResultPart,
)
from ollm.domain.text import format_count, shorten_line
from ollm.domain.tools import ToolCallRecord
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    FinishPiece,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
    WrittenPiece,
)
from ollm.services.loop_detection import LoopPattern, format_advice
from ollm.system.terminal_text import make_printable
from ollm.tools.framework.tool_selection import unwrap_call

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts
    from ollm.runtime.small_models.guide import TurnGuide

REFUSED = "NotDone"  # A step with this error type was refused before it ran.
STEP_FAILED = "Not run, because {} before it was not done: {}"
STOPPED = ("Timeout", "IdleTimeout")  # A command with one of these errors ran and was stopped.
MAX_TOLD_STEPS = 6  # The limit holds for files and for commands separately.
MAX_COMMAND_CHARS = 60
MAX_REFUSED_STEPS = 6  # Refusals in a row do no harm, and each retry asks in another way.
MAX_REFUSED_IN_TURN = 12

RecordResults = Callable[[tuple[AnyPart, ...]], Awaitable[object]]
SaveText = Callable[[type[TextPart | ThinkingPart], str], Awaitable[None]]


class LoopStop(Exception):  # noqa: N818 - the end of a turn, not a fault
    def __init__(self, pattern: LoopPattern) -> None:
        super().__init__(pattern.details)
        self.pattern = pattern


class TurnCalls:
    """Runs the calls of one turn. `record` writes the message with the results of a step."""

    def __init__(self, parts: ConversationParts, record: RecordResults) -> None:
        self._parts = parts
        self._record = record
        self._guide: TurnGuide | None = None
        self._changed: dict[str, tuple[int, int]] = {}  # The added and removed lines by file.
        self._ran: list[str] = []
        self._command_failed = False
        self._typed = ""
        self._refusals: dict[str, str] = {}  # Calls listed here do not run; the text gives the reason.
        self._refused_in_row = 0

    async def prime_request(self, typed: str, attached: Sequence[str] = ()) -> str:
        """Return the files to send with the user's typed and attached texts to a small model, or ""."""
        self._typed, model = typed, self._parts.state.model
        if self._writes_blocks:
            self._guide = self._create_guide()
            return await self._guide.prime_request(attached)
        native = model.is_small and model.facts.call_form in ("native", "unknown")
        return await self._create_guide().prime_request(attached) if native else ""

    @property
    def _writes_blocks(self) -> bool:
        return self._parts.state.model.facts.call_form == "blocks" and bool(self._parts.prompt.tools)

    def _create_guide(self) -> TurnGuide:
        from ollm.runtime.small_models.guide import TurnGuide

        return TurnGuide(self._parts.project_files.get(), self._parts.state.model.window, self._typed)

    def describe_steps(self) -> str:
        """Describe the actual actions for the user: each changed file once, and each command."""
        if self._guide is None and not (self._changed or self._command_failed):
            return ""
        changed = [f"{make_printable(path)} (+{added} -{removed})" for path, (added, removed) in self._changed.items()]
        told = [f"Changed: {', '.join(_shorten_list(changed))}."] if changed else []
        told += [f"Ran: {'; '.join(_shorten_list(self._ran))}."] if self._ran else []
        undone = self._guide.describe_undone() if self._guide else ""
        return " ".join(filter(None, (*told, undone)))

    def explain_shown(self) -> str:
        """Explain to the model that its answer only showed blocks, once a turn. Return "" otherwise."""
        return self._guide.explain_shown() if self._guide else ""

    def _note_steps(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> None:
        """Record only successful steps, whatever the model claims."""
        for call, record in zip(calls, records, strict=False):
            result, path, command = record.result, call.arguments.get("path"), call.arguments.get("command")
            if call.name == "shell" and record.error and record.error.type in STOPPED:
                self._note_command(str(command), "stopped")
            if result is None or record.error is not None:
                continue
            if result.diff and isinstance(path, str):
                lines = result.diff.partition("\n@@")[2].splitlines()
                before = self._changed.get(path, (0, 0))
                added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
                self._changed[path] = before[0] + added, before[1] + removed
            if call.name == "shell" and isinstance(command, str) and result.exit_code is not None:
                self._note_command(command, f"exit code {result.exit_code}")
                self._command_failed |= bool(result.exit_code)

    def _note_command(self, command: str, end: str) -> None:
        self._ran.append(f"{make_printable(shorten_line(command, MAX_COMMAND_CHARS))} ({end})")

    def read_calls(self, answer: StreamedAnswer) -> list[ToolCall]:
        """Assign each call an id of ours. Arguments that are not an object are kept for dispatch to explain."""
        calls = []
        if self._guide is None and self._writes_blocks:
            self._guide = self._create_guide()  # The form became known during the turn.
        if self._guide:
            self._guide.begin_answer(answer.text, acts=bool(answer.calls))
        for piece in answer.calls:
            found, refusal = self._guide.resolve_call(piece) if self._guide else (piece, "")
            given = found.arguments if isinstance(found.arguments, dict) else {UNPARSED_KEY: found.arguments}
            name, arguments = unwrap_call(found.name, given)
            call = ToolCall(id=self._parts.session.make_call_id(), name=name, arguments=arguments, wire_id=piece.id)
            if refusal:
                self._refusals[call.id] = refusal
            calls.append(call)
        return calls

    async def run(self, calls: Sequence[ToolCall], message_id: int) -> None:
        """Run the calls unless they repeat a loop. Each gets a result either way."""
        found = self._check_calls_for_loop(calls)
        try:
            if found:
                await self._parts.dispatch.get().refuse(calls, message_id, "LoopStopped", f"Not run: {found.details}")
            elif self._guide:
                await self._run_steps(self._guide, calls, message_id)
            else:
                records = await self._parts.dispatch.get().run(calls, message_id)
                self._note_results(calls, records)
        finally:
            await self._record_results(calls)
        if found is None and self._guide and (circle := self._guide.find_circle()):
            found = self._parts.loops.record_loop(LoopPattern(type="repeated-cycle", details=circle, count=3))
        if found:
            raise LoopStop(found)

    async def _run_steps(self, guide: TurnGuide, calls: Sequence[ToolCall], message_id: int) -> None:
        """Run the calls in order. A command is not run if an earlier change failed."""
        guide.note_before()
        records: list[ToolCallRecord] = []
        for call in calls:
            refusal = self._refusals.get(call.id) or (explain_failure(records) if call.name == "shell" else "")
            if refusal:
                records += await self._parts.dispatch.get().refuse([call], message_id, REFUSED, refusal)
            else:
                records += await self._parts.dispatch.get().run([call], message_id)
        self._note_results(calls, records)
        guide.note_results(calls, records)

    async def _record_results(self, calls: Sequence[ToolCall]) -> None:
        parts: list[AnyPart] = [ToolResultPart(call.id) for call in calls]
        warning = self._parts.loops.check_for_warning()
        if warning and self._guide is None:  # A small model mistakes the advice for its next words.
            parts.append(TextPart(format_advice(warning)))
        await self._record(tuple(parts))

    def _check_calls_for_loop(self, calls: Sequence[ToolCall]) -> LoopPattern | None:
        all_refused = all(call.id in self._refusals for call in calls)
        self._refused_in_row = self._refused_in_row + 1 if all_refused else 0
        if self._refused_in_row >= MAX_REFUSED_STEPS or len(self._refusals) >= MAX_REFUSED_IN_TURN:
            reason = [*self._refusals.values()][-1].partition("\n")[0]
            details = f"steps are refused again and again, the last because: {reason}"
            found = LoopPattern(type="repeated-cycle", details=details, count=len(self._refusals))
            return self._parts.loops.record_loop(found)
        for call in calls:
            refused = {"refused": self._refused_in_row} if call.id in self._refusals else {}
            self._parts.loops.record_tool_call(call.name, {**call.arguments, **refused})
        return self._parts.loops.check_for_loop()

    def _note_results(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> None:
        """Record results for loop detection: the same call with another result is progress, not a loop."""
        self._note_steps(calls, records)
        for call, record in zip(calls, records, strict=True):
            if call.id in self._refusals:
                continue
            output = record.result.llm_content if record.result else ""
            self._parts.loops.record_tool_result(call.name, call.arguments, output)


def _shorten_list(told: list[str]) -> list[str]:
    return told if len(told) <= MAX_TOLD_STEPS else [*told[:MAX_TOLD_STEPS], f"{len(told) - MAX_TOLD_STEPS} more"]


def explain_failure(records: Sequence[ToolCallRecord]) -> str:
    """Describe the first step that failed and its reason, or return "" if none did."""
    for record in records:
        if record.error:
            step = record.args.get("path") or record.name
            return STEP_FAILED.format(step, record.error.message.partition("\n")[0])
    return ""


class StreamedAnswer:
    """The result of one request, readable at any time, even after the stream stopped early."""

    def __init__(self, emit: Callable[[Event], None], save: SaveText) -> None:
        self.calls: list[CallPiece] = []
        self.end = FinishPiece()
        self._emit = emit
        self._save = save
        self._written = ""
        self._field: ThinkingField = ""
        self._details: tuple[JsonObject, ...] = ()
        self._passages: list[tuple[type[TextPart | ThinkingPart], list[str]]] = []

    async def read(self, pieces: AsyncIterator[AnyPiece], check_text: Callable[[str, bool], None]) -> None:
        """Read the stream to its end, saving text before it is shown. `check_text` gets every piece of it and may end
        the stream by raising."""
        async for piece in pieces:
            match piece:
                case TextPiece(text=text):
                    self._append_text(TextPart, text)
                    if not self._written:
                        await self._save(TextPart, text)
                    self._emit(TextDelta(text=text))
                case ThinkingPiece(text=text):
                    self._field, self._details = self._field or piece.field, self._details or piece.details
                    if text:
                        self._append_text(ThinkingPart, text)
                        await self._save(ThinkingPart, text)
                        self._emit(ThinkingDelta(text=text))
                case WrittenPiece(text=text):
                    self._written += text
                    await self._save(TextPart, text)
                case CallPiece():
                    self.calls.append(piece)
                case ProgressPiece():
                    self._emit(PrefillProgress(**msgspec.structs.asdict(piece)))
                case FinishPiece():
                    self.end = piece
            if isinstance(piece, TextPiece | ThinkingPiece):
                check_text(piece.text, isinstance(piece, ThinkingPiece))

    @property
    def reused_share(self) -> float | None:
        """The share of the prompt that the server reports as reused, if it does."""
        used = self.end.usage
        return (
            min(1.0, used.reused_tokens / used.prompt_tokens) if self.end.counts_reuse and used.prompt_tokens else None
        )

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """Text and thoughts in the order they came."""
        found: list[AnyPart] = [ThinkingPart("", self._field, self._details)] if self._details else []
        for kind, texts in self._passages:
            found.append(ThinkingPart("".join(texts), self._field) if kind is ThinkingPart else kind("".join(texts)))
        return tuple(found)

    @property
    def partial_parts(self) -> tuple[AnyPart, ...]:
        """The parts of an interrupted answer, with the text of an unfinished call."""
        if not self._written:
            return self.parts
        return (*(part for part in self.parts if isinstance(part, ThinkingPart)), TextPart(self._written))

    @property
    def own_text(self) -> str:
        """The model's own text up to the end of its calls, or "" if calls are not parsed from text."""
        return self._written.removesuffix(self.end.cut) if self.calls else ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    def describe_missing(self, limit: int, *, calls: bool) -> str:
        """Describe an answer that is empty or cut off for the user. `limit` is the most tokens that fit."""
        if not self.parts and not calls:
            return "The model gave an empty answer. Rephrase, or switch with /model."
        is_cut, written = self.end.reason == "length", self.end.usage.completion_tokens
        if is_cut and self.end.limit:
            most = format_count(self.end.limit, "token")
            return f"The answer was stopped after {most}, the limit for one answer of this model."
        if is_cut and 0 < written < limit // 2:
            return f"The server cut the answer off after {format_count(written, 'token')}; /continue resumes it."
        if is_cut:
            return "The answer hit the end of the context window; /compact frees space."
        if not calls and not self.text.strip():
            return "The model only thought and gave no answer. Ask again, or switch with /model."
        return ""

    def _append_text(self, kind: type[TextPart | ThinkingPart], text: str) -> None:
        if not self._passages or self._passages[-1][0] is not kind:
            self._passages.append((kind, []))
        self._passages[-1][1].append(text)

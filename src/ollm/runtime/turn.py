"""The loop: from the user's message to the final answer.

Recording, compaction, policy, tools and loop detection are collaborators. This module defines their order.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

from ollm.domain.context import Usage
from ollm.domain.errors import (
    DeniedError,
    ModelTimeoutError,
    NoServerError,
    OllmError,
    PromptTooLongError,
    RequestRefusedError,
)
from ollm.domain.events import Event, Notice, TextDelta, ThinkingDelta, TurnFinished, TurnReason, TurnStarted
from ollm.domain.lazy import compile_late
from ollm.domain.messages import (
    AnyPart,
    Message,
    PromptMessage,
    Role,
    TextPart,
    ToolCall,
)
from ollm.runtime.base import TurnObserver
from ollm.runtime.changes import auto_switch_mode
from ollm.runtime.prompt.compaction import ContextFull
from ollm.runtime.turn_calls import LoopStop, StreamedAnswer, TurnCalls
from ollm.services.loop_detection import LoopPattern

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts

MAX_MENTIONED_AGENTS = 3
_AGENT_MENTION = compile_late(r"(?:^|(?<=[\s(]))@agent-([a-z0-9][a-z0-9_-]{0,63})", re.IGNORECASE)
MAX_OVERFLOW_RETRIES = 2  # The second is only for a server that does not report its limit.
PROMPT_CUT = "The server read only a part of the prompt. It is sent again, shorter; the answer above is to be doubted."


class Turn:
    """One run from message to answer. Ends with exactly one `TurnFinished`, even if cancelled."""

    def __init__(
        self,
        parts: ConversationParts,
        emit: Callable[[Event], None],
        observers: Sequence[TurnObserver],
    ) -> None:
        self._parts = parts
        self._session = parts.session
        self._emit = emit
        self._observers = observers
        self._calls = TurnCalls(parts, partial(self._record_message, "tool"))
        self._usage = Usage()
        self._retried_refusal = self._resent = False
        self._answers_later = False  # If set, the model's words are notes for a later answer.
        self._sent: tuple[PromptMessage, ...] = ()

    async def run(
        self,
        parts: tuple[AnyPart, ...],
        typed: str,
        attached: Sequence[str] = (),
        later: Sequence[tuple[AnyPart, ...]] = (),
    ) -> None:
        """Run the turn. `parts` is the whole message, `typed` the user's typed text, `attached` the attached texts.
        `later` are messages for after the answer, each to be answered too."""
        try:
            await self._add_user_message(parts, typed, attached)
            for left in range(len(later), -1, -1):
                self._parts.loops.reset()
                self._answers_later = left > 0
                while await self._run_step():
                    pass
                if left:
                    await self._record_message("user", later[-left])
        except asyncio.CancelledError:
            self._finish("cancelled", "")
            raise
        except LoopStop as loop:
            self._finish("loop", loop.pattern.details)
        except OllmError as error:
            self._finish(classify_error(error), str(error))
        else:
            self._finish("answered", "")

    async def _add_user_message(self, parts: tuple[AnyPart, ...], typed: str, attached: Sequence[str]) -> None:
        """Record the user's message before anything else happens. Raises DeniedError if an observer refuses it."""
        if self._parts.checks:
            self._parts.checks.begin_turn()
        message = await self._session.record_message("user", parts)
        self._emit(TurnStarted(message_id=message.id, text=message.text))
        for observer in self._observers:
            await observer.before_turn(message.text)
        if self._parts.state.auto_switch != "off":
            await auto_switch_mode(self._parts, typed)
        primed = await self._calls.prime_request(typed, attached)
        explored = await ask_agents(self._parts, typed) if "@agent-" in typed.lower() else ""
        self._parts.prompt.add_message(message, {}, "\n\n".join(filter(None, (explored, primed))))

    async def _run_step(self) -> bool:
        """Run one request and its calls. Return True if another request must follow."""
        self._parts.loops.record_turn()
        self._stop_if_loop(self._parts.loops.check_for_loop())
        for observer in self._observers:
            await observer.before_request()
        answer = await self._request_whole_prompt()
        calls = self._calls.read_calls(answer)
        message = await self._record_answer(answer, calls)
        self._report_usage(answer, calls)
        self._parts.loops.record_output(answer.text)
        if calls:
            await self._calls.run(calls, message.id)
        if calls or await self._tell_model(self._calls.explain_shown()):
            return True
        return await self._tell_model(await self._parts.checks.check_turn() if self._parts.checks else "")

    async def _tell_model(self, fact: str) -> bool:
        """Tell the model a fact, if there is one. Return True if there is, so that it answers to it."""
        if fact:
            await self._record_message("system", (TextPart(fact),))
        return bool(fact)

    async def _request_whole_prompt(self) -> StreamedAnswer:
        """Return an answer to the whole prompt. If the server provably cut it, send a shorter prompt once."""
        answer = await self._request_within_window()
        if not await self._observe_cut(answer) or self._resent:
            return answer
        self._resent = True
        self._emit(Notice(level="warning", text=PROMPT_CUT))
        if answer.partial_parts:
            await self._record_message("assistant", answer.partial_parts, interrupted=True)
        return await self._request_whole_prompt()

    async def _request_within_window(self) -> StreamedAnswer:
        """Free space and send the request. If the server counts more than we do, or serves less than it reported, use
        its numbers and send it again. Also retry a long request that was refused for an unknown reason."""
        for attempt in range(MAX_OVERFLOW_RETRIES):
            await self._make_room()
            try:
                return await self._request_answer()
            except PromptTooLongError as error:
                if attempt and error.window:
                    raise
                self._learn_from_overflow(error)
            except RequestRefusedError as error:
                if self._retried_refusal or not self._parts.prompt.is_suspiciously_long:
                    raise
                return await self._retry_shorter(error)
        await self._make_room()
        return await self._request_answer()

    async def _retry_shorter(self, error: RequestRefusedError) -> StreamedAnswer:
        """Retry a long request that was refused for an unknown reason: first as it is, then shorter.

        If only the shorter one is accepted, the length was the reason, and the window is known.
        """
        prompt, self._retried_refusal = self._parts.prompt, True
        with suppress(RequestRefusedError):
            return await self._request_answer()
        refused = prompt.used_tokens
        self._emit(Notice(level="warning", text=f"{error.message} The prompt was long; trying a shorter one."))
        self._parts.compactor.use_model(self._parts.state.model)
        await self._parts.compactor.compact(prompt, self._emit, self._parts.state.model.summarise)
        await self._make_room()
        answer = await self._request_answer()
        prompt.learn_window(refused, proved=False)
        return answer

    async def _make_room(self) -> None:
        parts = self._parts
        parts.compactor.use_model(parts.state.model)
        await parts.compactor.compact_if_needed(parts.prompt, self._emit, parts.state.model.summarise)

    def _learn_from_overflow(self, error: PromptTooLongError) -> None:
        self._parts.prompt.correct_sent_forms(self._parts.state.model.facts)
        self._parts.prompt.learn_from_rejection(error)
        if not error.only_answer_too_long:
            self._emit(Notice(level="warning", text=f"{error.message} Compacting to fit."))

    async def _request_answer(self) -> StreamedAnswer:
        """Stream one answer. Text from before an error or a cancel is recorded as interrupted."""
        emit = self._emit_note if self._answers_later else self._emit
        answer = StreamedAnswer(emit, self._session.record_text)
        whole, begun, state = False, self._parts.monotonic(), self._parts.state
        try:
            prompt = self._parts.prompt
            self._sent = prompt.build_request_messages()
            stream = state.model.stream(self._sent, prompt.tools, prompt.max_answer_tokens, state.answer_schema)
            async with aclosing(stream) as pieces:
                await answer.read(pieces, self._check_text_for_loop)
            whole = True
        finally:
            state.seconds += self._parts.monotonic() - begun
            if not whole and answer.partial_parts:
                await self._record_interrupted(answer)
        return answer

    def _emit_note(self, event: Event) -> None:
        self._emit(ThinkingDelta(text=event.text) if isinstance(event, TextDelta) else event)

    async def _record_interrupted(self, answer: StreamedAnswer) -> None:
        """Record the text so far. No server counts an answer that was cut off, so its tokens are our own estimate."""
        sent = self._parts.prompt.used_tokens
        await self._record_message("assistant", answer.partial_parts, interrupted=True)
        said = max(self._parts.prompt.used_tokens - sent, 0)
        self._usage = self._usage + Usage(prompt_tokens=sent, completion_tokens=said)

    def _check_text_for_loop(self, text: str, thinking: bool) -> None:
        self._stop_if_loop(self._parts.loops.record_text(text, "thinking" if thinking else "text"))

    def _stop_if_loop(self, found: LoopPattern | None) -> None:
        if found:
            raise LoopStop(found)

    async def _observe_cut(self, answer: StreamedAnswer) -> bool:
        """Count the usage. Return True if the window turned out to be smaller than assumed."""
        used, prompt = answer.end.usage, self._parts.prompt
        self._usage = self._usage + used
        prompt.correct_sent_forms(self._parts.state.model.counted)
        prompt.ledger.note_reuse(answer.reused_share)
        before = prompt.model.window
        if self._parts.state.answer_schema is not None and prompt.tools:
            return False  # This request had no tools, so its count cannot be compared.
        exact: int | None = None  # It is asked for only if the reported count is implausible.
        if prompt.meter.should_verify_count(used.prompt_tokens, before):
            exact = await self._parts.state.model.count_tokens(self._sent, prompt.tools)
        if cut := prompt.observe_usage(used, exact, said_so=answer.end.truncated):
            self._emit(cut)
        return prompt.model.window < before

    def _report_usage(self, answer: StreamedAnswer, calls: Sequence[ToolCall]) -> None:
        self._parts.prompt.set_forms(self._parts.state.model.facts)
        self._emit(self._parts.prompt.measure_usage())
        prompt = self._parts.prompt
        cut = answer.end.reason == "length"
        limit = min(prompt.max_answer_tokens, prompt.model.window - answer.end.usage.prompt_tokens) if cut else 0
        if missing := answer.describe_missing(limit, calls=bool(calls)):
            self._emit(Notice(level="warning", text=missing))

    async def _record_answer(self, answer: StreamedAnswer, calls: Sequence[ToolCall]) -> Message:
        """Record the answer with its calls, which have not run yet."""
        forms = {"cut": answer.end.cut, "written": answer.own_text, "origin": self._parts.state.model.origin}
        message = await self._session.record_answer(answer.parts, calls, **forms)
        self._parts.prompt.add_message(message, self._session.calls)
        return message

    async def _record_message(self, role: Role, parts: tuple[AnyPart, ...], *, interrupted: bool = False) -> None:
        message = await self._session.record_message(role, parts, interrupted=interrupted)
        self._parts.prompt.add_message(message, self._session.calls)

    def _finish(self, reason: TurnReason, message: str) -> None:
        if done := self._calls.describe_steps():
            self._emit(Notice(level="info", text=done))
        failing = self._parts.checks.failing if self._parts.checks else ""
        self._emit(TurnFinished(reason=reason, usage=self._usage, message=message, failing=failing))


async def ask_agents(parts: ConversationParts, typed: str) -> str:
    """Call the tool `task` for each agent that the user named with `@agent-NAME`, and return the reports. Failures are
    shown as those of any call, and the turn continues without that report."""
    if parts.tasks is None:
        return ""
    names = list(dict.fromkeys(name.lower() for name in _AGENT_MENTION.findall(typed)))
    for name in names[MAX_MENTIONED_AGENTS:]:
        told = f"@agent-{name} was not asked: a message has at most {MAX_MENTIONED_AGENTS} agents."
        parts.stream.emit(Notice(level="warning", text=told))
    prompt, names = _AGENT_MENTION.sub(r"\1", typed).strip(), names[:MAX_MENTIONED_AGENTS]
    asked = [{"prompt": prompt, "agent": name} for name in names]
    done = await parts.dispatch.get().run_unrecorded("task", *asked) if asked else ()
    return "\n\n".join(
        f"[Report of agent {name}:]\n{record.result.llm_content}"
        for name, record in zip(names, done, strict=True)
        if record.result and not record.error
    )


ERROR_REASONS: dict[type[OllmError], TurnReason] = {
    ContextFull: "context-full",
    PromptTooLongError: "context-full",
    NoServerError: "no-server",
    ModelTimeoutError: "timeout",
    DeniedError: "denied",
}


def classify_error(error: OllmError) -> TurnReason:
    return next((reason for kind, reason in ERROR_REASONS.items() if isinstance(error, kind)), "model-error")

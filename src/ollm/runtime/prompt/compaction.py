"""Compaction of a conversation's context: when it is due, and how it is done.

`Compactor` reads a context and its budget from the prompt and writes back a smaller context. The prompt does not
depend on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.clock import Clock, format_stamp, now
from ollm.domain.context import ActiveContext, Budget, Checkpoint, CompressionRecord, CompressionResult, ContextView
from ollm.domain.errors import OllmError, PromptTooLongError
from ollm.domain.events import (
    CheckpointAged,
    CheckpointCreated,
    Compressed,
    CompressionError,
    CompressionSkipped,
    Event,
    Notice,
    PrefillProgress,
)
from ollm.domain.messages import PromptMessage
from ollm.runtime.prompt.messages import shed_thinking
from ollm.services import budget as rules
from ollm.services.chat_compression import records as kept
from ollm.services.chat_compression.records import RecordCaps, age_checkpoints
from ollm.services.goals import GOALS_CHECKPOINT_ID, list_lasting_decisions, make_goals_checkpoint
from ollm.services.snapshots import OVERFLOW_SHARE
from ollm.services.token_counting import TokenCounter

if TYPE_CHECKING:
    from ollm.config.settings import CompressionSettings, Settings
    from ollm.domain.lazy import Lazy
    from ollm.domain.session import SnapshotTrigger
    from ollm.domain.tools import ToolSchema
    from ollm.runtime.model.model import Model
    from ollm.runtime.model.role_models import RoleModels
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.services.chat_compression.compression_state import CompressionOptions, PreparedSummary, Summarise
    from ollm.services.snapshots import SnapshotManager

Emit = Callable[[Event], None]
Speeds = tuple[float | None, float | None]
SummariseAside = Callable[["tuple[PromptMessage, ...]", "tuple[ToolSchema, ...]", int], AsyncIterator[str]]
RecordCompression = Callable[[CompressionRecord], Awaitable[None]]

_log = logging.getLogger(__name__)
MAX_COMPRESSION_TRIES = 2
RETRY_GROWTH_DIVISOR = 10
ESTIMATE_SLACK = 1.1
FREES_TOO_LITTLE = "it would free less than the tool takes that brings folded messages back"
CONTEXT_FULL_ACTIONS = (
    "Try /compact, a larger context window (/context size N), a new session (/new), or /context restore."
)


class ContextFull(OllmError):  # noqa: N818 - the reason a turn ends with, not a fault
    """The prompt does not fit the window and cannot be made smaller; the turn ends with `context-full`."""


PROGRESS_PIECES = 10


def _report_progress(summarise: Summarise, emit: Emit, counter: TokenCounter, speeds: Speeds) -> Summarise:
    """Emit progress events while a summary is written, first the time it takes, if that is known."""

    async def write(messages: tuple[PromptMessage, ...], most: int) -> AsyncIterator[str]:
        total, (read, wrote) = counter.count_messages(messages), speeds
        seconds = round(total / read + (most / wrote if wrote else 0), 1) if read else None
        emit(PrefillProgress(total=total, stage="compacting", seconds_left=seconds))
        written = 0
        async for text in summarise(messages, most):
            yield text
            written += 1
            if written % PROGRESS_PIECES == 0:
                emit(PrefillProgress(processed=min(written, most), total=most, stage="compacting"))

    return write


def make_caps(
    state: Budget, records: Sequence[Checkpoint], rest: int, request: int, counter: TokenCounter
) -> RecordCaps:
    """Compute the caps of these records beside `rest` tokens of messages, `request` of which are in progress."""
    lines = [line for old in records for line in old.requests]
    summaries = kept.count_tokens(records) - kept.count_lines(lines, counter.count_text)
    room = rules.compute_records_room(state, request)
    most = rules.compute_summaries_cap(state)
    words = rules.compute_words_cap(state, rest + min(summaries, most))
    return kept.RecordCaps(
        words=min(room * 3 // 4, words),
        shortened=min(room * 3 // 4, rules.compute_words_share(state)),
        summaries=min(room // 4, most),
    )


def _is_over(prompt: Prompt) -> bool:
    """Return True if the messages exceed their budget. Between the steps of a turn the limit is slightly higher."""
    budget, used = prompt.compute_budget(), prompt.message_tokens
    if not rules.needs_compression(budget, used):
        return False
    return used > rules.compute_working_trigger(budget) or not prompt.view_context().reads_results


def _is_due(prompt: Prompt) -> bool:
    return _is_over(prompt) and not prompt.sent_as_restored


def shed_old_thinking(prompt: Prompt, settings: Settings, emit: Emit) -> bool:
    """Leave older thinking out if the messages exceed their budget and that frees a quarter of it. Otherwise a
    compaction does it in the same step, so that the server reads the prompt again once."""
    if not _is_over(prompt):
        return False
    context, enough = prompt.get_active_context(), prompt.compute_budget().trigger // 2
    messages = shed_thinking(context.messages, prompt.message_tokens - enough, prompt.counter)
    too_little = settings.compression.enabled and prompt.counter.count_messages(messages) > enough * 3 // 2
    if messages == context.messages or too_little:
        return False
    prompt.replace_context(msgspec.structs.replace(context, messages=messages), "thinking")
    emit(Notice(level="info", text="Left older thinking out of the context to make room."))
    return True


def _update_records(view: ContextView, result: CompressionResult, counter: TokenCounter) -> ActiveContext:
    """Trim the records to their share and append the current goals as a new record."""
    kept = [old for old in result.checkpoints if old.id != GOALS_CHECKPOINT_ID]
    goals = make_goals_checkpoint(view.context.goals, counter)
    messages = shed_thinking(result.compressed_messages[1 + len(result.checkpoints) :], 0, counter)
    request, rest = map(counter.count_messages, (view.request_messages, messages))
    caps = make_caps(view.budget, kept, rest + sum(goal.tokens for goal in goals), request, counter)
    records = (*age_checkpoints(kept, caps, counter), *goals)
    return msgspec.structs.replace(view.context, messages=messages, checkpoints=records, folded=True)


class CompressionBreaker:
    """Stops compressions that free no space: trying again at every step would only cost the user time.

    Opens after two in a row that left the context over its trigger. Closes after one that freed space, on `reset`,
    and once enough new messages may be compacted."""

    def __init__(self) -> None:
        self._failures = self._used = 0
        self.said = False  # The user knows that it is open.

    @property
    def is_open(self) -> bool:
        return self._failures >= MAX_COMPRESSION_TRIES

    def record(self, *, made_room: bool, used: int) -> None:
        """Record a compression. `used` is the size of the context after it."""
        self._failures = 0 if made_room else self._failures + 1
        self._used, self.said = used, self.said and not made_room

    def allow_retry(self, used: int, worth: int) -> None:
        """Allow one more try if `worth` tokens were added since the last one."""
        if self.is_open and used >= self._used + worth:
            self._failures = MAX_COMPRESSION_TRIES - 1

    def reset(self) -> None:
        """Close the breaker: the user requested compression, or the window changed."""
        self._failures, self.said = 0, False


class Compactor:
    """Decides when to compact a context, and compacts it. `keep` records a success in the session."""

    def __init__(
        self,
        settings: Settings,
        counter: TokenCounter,
        snapshots: SnapshotManager | None = None,
        *,
        keep: RecordCompression,
        before: Callable[[], Awaitable[None]] | None = None,
        roles: Lazy[RoleModels] | None = None,
        clock: Clock = now,
    ) -> None:
        self._settings = settings
        self._counter = counter
        self._snapshots = snapshots
        self._keep = keep
        self._before = before
        self._roles = roles
        self._clock = clock
        self._breaker = CompressionBreaker()
        self._window = 0
        self._kept_revision = -1
        self._share = 0.0
        self.speeds: Speeds = (None, None)
        self._late_events: list[Event] = []  # Nobody listens during an idle compaction.
        self._aside: SummariseAside | None = None

    def use_model(self, model: Model) -> None:
        """Take the model that writes the next summaries. If its server does not hold the conversation, it is not asked
        on top of it."""
        self.speeds = model.facts.prefill_per_second, model.facts.decode_per_second
        holds_it = model.facts.reuses_prefix is not False and model.reading.is_answered
        self._aside = model.summarise_aside if holds_it else None

    @property
    def settings(self) -> CompressionSettings:
        return self._settings.compression

    async def compact_if_needed(self, prompt: Prompt, emit: Emit, summarise: Summarise | None = None) -> None:
        """Compact before a request if needed. Raises ContextFull if the prompt cannot be brought under its limit."""
        prompt.emit_notes(emit)
        late, self._late_events = self._late_events, []
        for event in late:
            emit(event)
        if prompt.model.window != self._window:
            self._window = prompt.model.window
            self._breaker.reset()
        near = await self._check_thresholds(prompt)
        if _is_due(prompt) and not shed_old_thinking(prompt, self._settings, emit):
            await self._compact_or_warn(prompt, emit, summarise)
        if near and _is_over(prompt):
            await self._warn_before_overflow(prompt, emit)
        used, limit = prompt.used_tokens, prompt.compute_budget().limit
        if used > limit:
            text = f"The conversation has {used:,} tokens; the limit is {limit:,}."
            raise ContextFull(text, action=CONTEXT_FULL_ACTIONS)

    async def compact_ahead(self, prompt: Prompt, summarise: Summarise, *, by_role: bool) -> bool:
        """Compact before it is needed, with a summary by the model, or `by_role` by that of the role. Its events come
        with the next request. Return True if the context became smaller."""
        options = self._build_options(prompt)
        prepared = None if by_role else await self._summarise_aside(prompt, options, self._late_events.append)
        if self._breaker.is_open or not (by_role or prepared):
            return False
        await self._take_snapshot(prompt, "compression")
        options = msgspec.structs.replace(options, prepared=prepared)
        smaller = await self._compact(prompt, self._late_events.append, options, summarise)
        self._breaker.record(made_room=smaller, used=prompt.used_tokens)
        return smaller

    async def compact(self, prompt: Prompt, emit: Emit, summarise: Summarise | None = None) -> bool:
        """Run `/compact`. Return True if the context became smaller."""
        prompt.emit_notes(emit)
        self._breaker.reset()
        await self._take_snapshot(prompt, "compact")
        usual = self._build_options(prompt)
        recent = min(usual.preserve_recent_tokens, prompt.message_tokens // 3)
        options = msgspec.structs.replace(usual, target_tokens=0, preserve_recent_tokens=recent)
        return await self._compact(prompt, emit, options, summarise, manual=True)

    def _build_options(self, prompt: Prompt) -> CompressionOptions:
        from ollm.services.chat_compression.compression_state import CompressionOptions

        view, wanted = prompt.view_context(), self.settings
        state, longest = view.budget, rules.compute_summary_cap(view.budget, wanted.summary_max_tokens)
        return CompressionOptions(
            strategy=wanted.strategy,
            preserve_recent_tokens=rules.compute_recent_tokens(state, wanted.preserve_recent),
            target_tokens=view.system_tokens + state.checkpoints + rules.compute_target_tokens(state),
            summary_max_tokens=longest,
            timeout_seconds=rules.compute_summary_seconds(wanted.timeout, state.limit - longest, longest, self.speeds),
            request_tokens=state.limit - longest,
            ledger_tokens=rules.compute_words_cap(state, 0),
            request=view.request,
            checkpoints=view.context.checkpoints,
            locked=tuple(decision.text for decision in list_lasting_decisions(view.context.goals)),
        )

    async def _take_snapshot(self, prompt: Prompt, trigger: SnapshotTrigger) -> None:
        """Take a snapshot, unless this state of the context already has one."""
        if self._snapshots is None or self._kept_revision == prompt.revision:
            return
        state = await asyncio.to_thread(prompt.capture_state)  # It reads all the user's messages from disk.
        if await self._snapshots.create_snapshot(state, trigger):
            self._kept_revision = prompt.revision

    async def _check_thresholds(self, prompt: Prompt) -> bool:
        """Take the snapshot at the threshold, and run the registered callbacks. Return True if the context has just
        passed 95 % of its limit."""
        if self._snapshots is None:
            return False
        used, limit = prompt.used_tokens, prompt.compute_budget().limit
        passed = used >= self._settings.snapshots.auto_threshold * limit
        if passed and prompt.snapshot_armed:
            compacts = _is_due(prompt) and self._settings.compression.enabled and not self._breaker.is_open
            if not compacts:  # A compaction takes its own snapshot.
                await self._take_snapshot(prompt, "threshold")
        prompt.snapshot_armed = not passed
        if self._snapshots.thresholds:
            await self._snapshots.check_thresholds(used, limit)
        before, self._share = self._share, used / limit
        return before < OVERFLOW_SHARE <= self._share

    async def _warn_before_overflow(self, prompt: Prompt, emit: Emit) -> None:
        """Take a snapshot of a context that is nearly full after compaction, and show the user what to do."""
        await self._take_snapshot(prompt, "threshold")
        used = f"{prompt.used_tokens:,} of {prompt.compute_budget().limit:,} tokens"
        emit(Notice(level="warning", text=f"The context is nearly full ({used}). {CONTEXT_FULL_ACTIONS}"))

    async def _compact_or_warn(self, prompt: Prompt, emit: Emit, summarise: Summarise | None) -> None:
        if not self._settings.compression.enabled:
            return
        limit = prompt.compute_budget().limit
        self._breaker.allow_retry(prompt.used_tokens, limit // RETRY_GROWTH_DIVISOR)
        if self._breaker.is_open and prompt.used_tokens <= limit:
            if not self._breaker.said:
                self._breaker.said = True
                emit(CompressionSkipped(reason="the last compactions freed no space"))
                emit(Notice(level="warning", text=f"Compaction frees no more space. {CONTEXT_FULL_ACTIONS}"))
            return
        await self._take_snapshot(prompt, "compression")
        if not self._breaker.is_open:
            options = self._build_options(prompt)
            await self._compact(prompt, emit, options, summarise)
        if prompt.used_tokens > prompt.compute_budget().limit:
            await self._compact_hard(prompt, emit)
        made_room = not rules.needs_compression(prompt.compute_budget(), prompt.message_tokens)
        self._breaker.record(made_room=made_room, used=prompt.used_tokens)

    async def _compact_hard(self, prompt: Prompt, emit: Emit) -> None:
        """Compact a context that is still over the limit: keep only the last recent group, and use no model."""
        from ollm.runtime.prompt.hard_compaction import shrink_to_limit

        usual = self._build_options(prompt)
        options = msgspec.structs.replace(usual, strategy="truncate", target_tokens=0, preserve_recent_tokens=0)
        counted = await self._compact(prompt, emit, options, None)
        before = prompt.used_tokens
        if shrink_to_limit(prompt, self._counter) and not counted:
            shrunk = CompressionResult((), (), before, prompt.used_tokens, strategy="truncate")
            await self._count_compression(shrunk, "auto", (before, prompt.used_tokens), emit)

    async def _compact(
        self,
        prompt: Prompt,
        emit: Emit,
        options: CompressionOptions,
        summarise: Summarise | None,
        *,
        manual: bool = False,
    ) -> bool:
        """Run one compaction. Return True if the context is smaller. A failure does not end the turn (S10.3)."""
        from ollm.services.chat_compression.service import ChatCompressionService

        if self._before:
            await self._before()
        before, view = prompt.used_tokens, prompt.view_context(with_recall=manual)
        if summarise and self._roles and "summary" in (roles := self._roles.get()):
            summarise, options = roles.summarise, await self._fit_to_role(roles, options)
        elif summarise and self._aside and options.prepared is None and options.strategy != "truncate":
            options = msgspec.structs.replace(options, prepared=await self._summarise_aside(prompt, options, emit))
        write = _report_progress(summarise, emit, self._counter, self.speeds) if summarise else None
        try:
            service = ChatCompressionService(self._counter, write, clock=self._clock)
            result = await service.compress((view.system, *view.context.messages), options)
        except OllmError as error:
            _log.warning("Compression failed: %s", error, extra={"operation": "compress"})
            emit(CompressionError(message=str(error)))
            return False
        freed = result.original_token_count - result.compressed_token_count
        useless = manual and freed <= view.recall_tokens * ESTIMATE_SLACK
        if skipped := result.skipped or (FREES_TOO_LITTLE if useless else ""):
            emit(CompressionSkipped(reason=skipped))
            return False
        self._put_result(prompt, view, result, emit)
        await self._count_compression(result, "manual" if manual else "auto", (before, prompt.used_tokens), emit)
        return True

    async def _summarise_aside(self, prompt: Prompt, options: CompressionOptions, emit: Emit) -> PreparedSummary | None:
        """Let the model summarize the conversation as its next answer, which its server has to read nothing for. Return
        None without a usable answer: then a request of its own carries the messages."""
        if (aside := self._aside) is None:
            return None
        from ollm.services.chat_compression.compression_state import PreparedSummary
        from ollm.services.chat_compression.summary import IDLE_ORDER, clean_answer, format_record

        longest = options.summary_max_tokens
        order = PromptMessage(role="user", content=IDLE_ORDER.format(tokens=longest))
        messages, covered = prompt.preview_read()
        tokens = prompt.used_tokens + prompt.counter.count_message(order) + longest
        if not covered or tokens > prompt.compute_budget().window:
            return None

        def ask(messages: tuple[PromptMessage, ...], most: int) -> AsyncIterator[str]:
            return aside(messages, prompt.tools, most)

        write = _report_progress(ask, emit, self._counter, (None, None))
        text = ""
        try:
            async with asyncio.timeout(options.timeout_seconds):
                text = clean_answer("".join([piece async for piece in write((*messages, order), longest)]))
        except PromptTooLongError as error:
            prompt.learn_from_rejection(error)
        except (OllmError, TimeoutError) as error:
            _log.info("No summary on top of the conversation: %s", error)
        return PreparedSummary(text=text, last_number=covered, record=format_record(messages[1:])) if text else None

    async def _fit_to_role(self, roles: RoleModels, options: CompressionOptions) -> CompressionOptions:
        """Fit the request for a summary to the window and speed of the model that writes it."""
        if (model := await roles.find("summary")) is None:
            return options
        self.speeds = model.facts.prefill_per_second, model.facts.decode_per_second
        longest = min(options.summary_max_tokens, rules.compute_limit(model.window) // 4)
        room = min(options.request_tokens or model.window, rules.compute_limit(model.window) - longest)
        seconds = rules.compute_summary_seconds(self.settings.timeout, room, longest, self.speeds)
        return msgspec.structs.replace(
            options, request_tokens=room, summary_max_tokens=longest, timeout_seconds=seconds
        )

    def _put_result(self, prompt: Prompt, view: ContextView, result: CompressionResult, emit: Emit) -> None:
        context = _update_records(view, result, self._counter)
        prompt.replace_context(context, "compression")
        if made := result.created:
            emit(CheckpointCreated(checkpoint_id=made.id, message_ids=made.message_ids, tokens=made.tokens))
        for old in context.checkpoints:
            if old.age != "detailed" and old not in view.context.checkpoints:
                emit(CheckpointAged(checkpoint_id=old.id, age=old.age, tokens=old.tokens))
        if result.fallback:
            told = f"The model's summary was unusable ({result.fallback}); using an automatic summary."
            emit(CompressionError(message=told))

    async def _count_compression(
        self, result: CompressionResult, trigger: str, counts: tuple[int, int], emit: Emit
    ) -> None:
        """Emit an event for the compression and record it in the session."""
        emit(Compressed(strategy=result.strategy, original_token_count=counts[0], compressed_token_count=counts[1]))
        record = CompressionRecord(
            timestamp=format_stamp(self._clock()),
            trigger=trigger,
            strategy=result.strategy,
            original_token_count=counts[0],
            compressed_token_count=counts[1],
            message_ids=result.message_ids,
            checkpoint=result.created,
        )
        await self._keep(record)

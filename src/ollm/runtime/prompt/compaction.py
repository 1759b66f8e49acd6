"""Making room in a context: count, snapshot, compress; and what happens when that is not enough."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from ollm.domain.clock import Clock, format_stamp, now
from ollm.domain.context import Budget, Checkpoint, CompressionRecord, CompressionResult
from ollm.domain.errors import OllmError
from ollm.domain.events import (
    CheckpointAged,
    CheckpointCreated,
    Compressed,
    CompressionError,
    CompressionSkipped,
    Event,
    Notice,
)
from ollm.services import budget as rules
from ollm.services.chat_compression.breaker import CompressionBreaker

if TYPE_CHECKING:
    from ollm.config.settings import Settings
    from ollm.domain.messages import PromptMessage
    from ollm.domain.snapshot import SnapshotTrigger
    from ollm.services.chat_compression import CompressionOptions, Summarise
    from ollm.services.snapshots import ContextState, SnapshotManager
    from ollm.services.token_counting import TokenCounter

    CompressionPlan = tuple[CompressionOptions, Summarise | None, str]  # and the trigger

Emit = Callable[[Event], None]
RecordCompression = Callable[[CompressionRecord], Awaitable[None]]

_log = logging.getLogger(__name__)
RETRY_GROWTH_DIVISOR = 10  # that part of the limit must have come since a compression in vain
CONTEXT_FULL_ACTIONS = (
    "Ways out: /compact, a larger window (/context size N), a new session (/new), or going back (/context restore)."
)


class ContextFull(OllmError):  # noqa: N818 - the reason a turn ends with, not a fault
    """The prompt does not fit the window and cannot be made smaller; the turn ends with `context-full`."""


class Compressible(Protocol):
    """The context room is made in."""

    revision: int  # goes up with every change

    @property
    def used_tokens(self) -> int: ...

    @property
    def message_tokens(self) -> int: ...

    @property
    def recently_compressed(self) -> bool: ...

    def compute_budget(self) -> Budget: ...

    def capture_state(self) -> ContextState: ...

    def build_compression_options(self, *, hard: bool = False) -> CompressionOptions: ...

    def get_compressible_messages(self) -> tuple[PromptMessage, ...]: ...

    def apply_compression(self, messages: Sequence[PromptMessage], checkpoints: Sequence[Checkpoint]) -> None: ...

    def shrink_last_step(self) -> None: ...


async def _discard_record(_record: CompressionRecord) -> None:
    """For contexts that no session stands behind."""


async def _skip_announcement() -> None:
    """Nobody wants to know beforehand."""


class Compactor:
    """Decides when a context is compressed, and sees it through. `keep` writes a success into the session."""

    def __init__(
        self,
        settings: Settings,
        counter: TokenCounter,
        snapshots: SnapshotManager | None = None,
        *,
        keep: RecordCompression = _discard_record,
        before: Callable[[], Awaitable[None]] = _skip_announcement,
        clock: Clock = now,
    ) -> None:
        self._settings = settings.compression
        self._snapshot_settings = settings.snapshots
        self._counter = counter
        self._snapshots = snapshots
        self._keep = keep
        self._before = before
        self._clock = clock
        self._breaker = CompressionBreaker()
        self.armed = True  # passing the threshold takes a snapshot
        self._kept_revision = -1
        self._told_open = False

    def reset(self) -> None:
        """Something was decided that makes another try worth it."""
        self._breaker.reset()
        self._told_open = False

    async def compact_if_needed(self, prompt: Compressible, emit: Emit, summarise: Summarise | None) -> None:
        await self._check_thresholds(prompt)
        if rules.needs_compression(prompt.compute_budget(), prompt.message_tokens):
            await self._compress_or_warn(prompt, emit, summarise)
        if prompt.used_tokens > prompt.compute_budget().limit:
            raise ContextFull(
                f"The conversation takes {prompt.used_tokens} tokens and may take {prompt.compute_budget().limit}.",
                action=CONTEXT_FULL_ACTIONS,
            )

    async def compact(self, prompt: Compressible, emit: Emit, summarise: Summarise | None) -> bool:
        self.reset()
        await self.take_snapshot(prompt, "compact")
        usual = prompt.build_compression_options()
        recent = min(usual.preserve_recent_tokens, prompt.message_tokens // 3)
        options = msgspec.structs.replace(usual, target_tokens=0, preserve_recent_tokens=recent)
        return await self._compress(prompt, emit, (options, summarise, "manual"))

    async def take_snapshot(self, prompt: Compressible, trigger: SnapshotTrigger) -> None:
        """One for each state of the context, unless a person asks."""
        if self._snapshots is None or self._kept_revision == prompt.revision:
            return
        if await self._snapshots.create_snapshot(prompt.capture_state(), trigger):
            self._kept_revision = prompt.revision

    async def _check_thresholds(self, prompt: Compressible) -> None:
        """The snapshot at the threshold, and the callbacks of others."""
        if self._snapshots is None:
            return
        limit = prompt.compute_budget().limit
        passed = prompt.used_tokens >= self._snapshot_settings.auto_threshold * limit
        if passed and self.armed:
            await self.take_snapshot(prompt, "threshold")
        self.armed = not passed
        await self._snapshots.check_thresholds(prompt.used_tokens, limit)

    async def _compress_or_warn(self, prompt: Compressible, emit: Emit, summarise: Summarise | None) -> None:
        if not self._settings.enabled:
            return
        limit = prompt.compute_budget().limit
        self._breaker.allow_retry(prompt.used_tokens, limit // RETRY_GROWTH_DIVISOR)
        if self._breaker.open and prompt.used_tokens <= limit:
            self._warn_breaker_open(emit)
            return
        await self.take_snapshot(prompt, "compression")
        if not self._breaker.open:
            await self._compress(prompt, emit, (prompt.build_compression_options(), summarise, "auto"))
        if prompt.used_tokens > prompt.compute_budget().limit:
            await self._truncate_hard(prompt, emit)
        made_room = not rules.needs_compression(prompt.compute_budget(), prompt.message_tokens)
        self._breaker.record(made_room=made_room, used=prompt.used_tokens)
        self._told_open = self._told_open and not made_room

    def _warn_breaker_open(self, emit: Emit) -> None:
        if not self._told_open:
            self._told_open = True
            emit(CompressionSkipped(reason="the last compressions made no room"))
            emit(Notice(level="warning", text=f"Compression makes no room any more. {CONTEXT_FULL_ACTIONS}"))

    async def _truncate_hard(self, prompt: Compressible, emit: Emit) -> None:
        """Over the limit still: nothing recent is spared but the last group, and no model is asked."""
        options = msgspec.structs.replace(
            prompt.build_compression_options(hard=True), strategy="truncate", target_tokens=0
        )
        await self._compress(prompt, emit, (options, None, "auto"))
        if prompt.used_tokens > prompt.compute_budget().limit:
            prompt.shrink_last_step()

    async def _compress(self, prompt: Compressible, emit: Emit, how: CompressionPlan) -> bool:
        """One compression from beginning to end; whether the context is smaller. A failure ends nothing (S10.3)."""
        from ollm.services.chat_compression import ChatCompressionService

        options, summarise, trigger = how
        await self._before()
        before = prompt.used_tokens
        service = ChatCompressionService(self._counter, summarise, clock=self._clock)
        try:
            result = await service.compress(prompt.get_compressible_messages(), options)
        except OllmError as error:
            _log.warning("Compression failed: %s", error, extra={"operation": "compress"})
            emit(CompressionError(message=str(error)))
            return False
        if result.skipped:
            emit(CompressionSkipped(reason=result.skipped))
            return False
        self._apply_result(prompt, result, emit)
        for note in result.notes:
            emit(Notice(level="info", text=note))
        if result.fallback:
            emit(CompressionError(message=f"The model's summary was not used ({result.fallback}); a digest stands in."))
        emit(
            Compressed(strategy=result.strategy, original_token_count=before, compressed_token_count=prompt.used_tokens)
        )
        await self._keep(self._build_record(result, trigger, (before, prompt.used_tokens)))
        return True

    def _apply_result(self, prompt: Compressible, result: CompressionResult, emit: Emit) -> None:
        from ollm.services.checkpoints import CheckpointManager

        manager = CheckpointManager(self._counter, prompt.build_compression_options().summary_max_tokens)
        aged = manager.age(
            result.checkpoints,
            rules.compute_checkpoints_cap(prompt.compute_budget(), pressed=prompt.recently_compressed),
        )
        spoken = result.compressed_messages[1 + len(result.checkpoints) :]
        prompt.apply_compression(spoken, aged.checkpoints)
        if result.created:
            made = result.created
            emit(CheckpointCreated(checkpoint_id=made.id, message_ids=made.message_ids, tokens=made.tokens))
        for old in aged.changed:
            emit(CheckpointAged(checkpoint_id=old.id, age=old.age, tokens=old.tokens))

    def _build_record(self, result: CompressionResult, trigger: str, counts: tuple[int, int]) -> CompressionRecord:
        return CompressionRecord(
            timestamp=format_stamp(self._clock()),
            trigger=trigger,
            strategy=result.strategy,
            original_token_count=counts[0],
            compressed_token_count=counts[1],
            message_ids=result.message_ids,
            checkpoint=result.created,
        )

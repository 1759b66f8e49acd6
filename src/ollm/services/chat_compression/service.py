"""`ChatCompressionService`: removes messages from the context and writes their replacement (S3, D164)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from ollm.domain.clock import Clock, format_stamp, make_id, now
from ollm.domain.context import Checkpoint, CompressionResult, RequestLine
from ollm.domain.messages import Group, PromptMessage, group_messages
from ollm.services.chat_compression import summary
from ollm.services.chat_compression.compression_state import (
    CompressionOptions,
    CompressionState,
    Summarise,
)
from ollm.services.chat_compression.folding import (
    find_facts,
    find_missing,
    list_numbers,
    merge_folded_lines,
    write_digest,
)
from ollm.services.chat_compression.records import pick_newest_facts
from ollm.services.token_counting import TokenCounter

MAX_ATTEMPTS = 2
MIN_SUMMARY_TOKENS = 120  # A model is not asked to summarize less than this.
MAX_SUMMARY_PERCENT = 75  # A larger summary, facts included, saves too little.
NO_ROOM = "nothing in the context can be compacted"

_log = logging.getLogger(__name__)


class ChatCompressionService:
    """Compresses one context at a time. If `summarise` is missing or fails, the engine writes a digest instead."""

    def __init__(
        self,
        counter: TokenCounter | None = None,
        summarise: Summarise | None = None,
        *,
        clock: Clock = now,
    ) -> None:
        self._counter = counter or TokenCounter()
        self._summarise = summarise
        self._clock = clock

    def should_compress(self, messages: Sequence[PromptMessage], token_limit: int, threshold: float) -> bool:
        """Return True if the messages exceed `threshold` of the limit (S3.7)."""
        return self._counter.count_messages(messages) > threshold * token_limit

    async def compress(
        self, messages: Sequence[PromptMessage], options: CompressionOptions | None = None
    ) -> CompressionResult:
        """Compress the context. If that saves nothing, return it unchanged with the reason in `skipped`. A leading
        system message is the system prompt and stays unchanged. Earlier checkpoints are passed in the options."""
        options = options or CompressionOptions()
        work = CompressionState(messages, options, self._counter)
        before = work.total
        work.settle_user_messages()
        outcome = await self._reduce_context(work, options)
        if work.total >= before:
            return _make_unchanged_result(messages, options, before)
        return CompressionResult(
            compressed_messages=work.build_messages(),
            checkpoints=tuple(work.checkpoints),
            original_token_count=before,
            compressed_token_count=work.total,
            strategy=options.strategy,
            created=outcome[0],
            message_ids=work.list_gone_numbers(),
            fallback=outcome[1],
        )

    async def summarize(self, messages: Sequence[PromptMessage], target_tokens: int) -> list[PromptMessage]:
        """Summarise all old messages in one checkpoint."""
        options = CompressionOptions(
            strategy="summarize", target_tokens=target_tokens, preserve_recent_tokens=target_tokens // 2
        )
        return list((await self.compress(messages, options)).compressed_messages)

    def truncate(self, messages: Sequence[PromptMessage], target_tokens: int) -> list[PromptMessage]:
        """Replace the oldest messages, including the user's, with a line of their numbers until the rest fits. Uses no
        model. The system prompt and the last message with its calls stay unchanged."""
        start = 1 if messages and messages[0].role == "system" else 0
        groups = group_messages(messages[start:])
        shorter = list(messages)
        for count in range(1, len(groups)):
            if self._counter.count_messages(shorter) <= target_tokens:
                break
            gone, rest = ([m for group in part for m in group] for part in (groups[:count], groups[count:]))
            shorter = [*messages[:start], merge_folded_lines(gone), *rest]
        return (
            shorter if self._counter.count_messages(shorter) < self._counter.count_messages(messages) else [*messages]
        )

    async def hybrid(self, messages: Sequence[PromptMessage], options: CompressionOptions) -> list[PromptMessage]:
        """Fold old tool output first, then summarise as many of the oldest messages as needed."""
        result = await self.compress(messages, msgspec.structs.replace(options, strategy="hybrid"))
        return list(result.compressed_messages)

    async def _reduce_context(
        self, work: CompressionState, options: CompressionOptions
    ) -> tuple[Checkpoint | None, str]:
        if options.strategy == "truncate":
            work.truncate()
            return self._record_requests_only(work), ""
        if options.strategy == "hybrid":
            work.fold_results()
            if work.total <= work.target:
                return None, ""
        everything = options.strategy == "summarize"
        chosen = work.select_oldest(None if everything else options.summary_max_tokens)
        if sum(map(work.count_group, chosen)) < MIN_SUMMARY_TOKENS:
            work.truncate()
            return self._record_requests_only(work), ""
        earlier = work.list_mergeable() if everything else ()
        checkpoint, fallback = await self._make_checkpoint(work, chosen, earlier, options)
        work.replace_groups([*chosen, *work.list_past_requests()], earlier, checkpoint)
        return checkpoint, fallback

    def _record_requests_only(self, work: CompressionState) -> Checkpoint | None:
        """Record past requests alone, if folding the rest made no record and more room is needed."""
        asked = work.list_past_requests()
        if not asked or work.total <= work.target:
            return None
        record = self._record("", list_numbers([group[0] for group in asked]), work.request_lines(asked))
        work.replace_groups(asked, (), record)
        return record

    def _record(
        self, text: str, ids: Sequence[int], asked: tuple[RequestLine, ...], *, engine_written: bool = True
    ) -> Checkpoint:
        record = Checkpoint(
            id=make_id(),
            text=text,
            message_ids=tuple(sorted(set(ids))),
            timestamp=format_stamp(self._clock()),
            tokens=0,
            engine_written=engine_written,
            requests=asked,
        )
        return msgspec.structs.replace(record, tokens=self._counter.count_message(record.message))

    async def _make_checkpoint(
        self,
        work: CompressionState,
        chosen: Sequence[Group],
        earlier: tuple[Checkpoint, ...],
        options: CompressionOptions,
    ) -> tuple[Checkpoint, str]:
        originals, past = work.get_originals(chosen), work.list_past_requests()
        replaced = sum(map(work.count_group, chosen)) + sum(old.tokens for old in earlier)
        longest = max(40, min(options.summary_max_tokens, replaced // 2))
        asked = work.request_lines(past)
        told = work.add_user_messages(originals)
        text, fallback = await self._get_summary(told, earlier, options, (longest, replaced))
        engine_written = not text
        if engine_written:
            text = write_digest(originals, longest, self._counter.count_text)
        text = self._add_facts(text, work, originals, (longest, replaced), asked)
        gone = [message for group in (*chosen, *past) for message in group]
        ids = (*list_numbers(gone), *(number for old in earlier for number in old.message_ids))
        requests = (*(line for old in earlier for line in old.requests), *asked)
        return self._record(text, ids, requests, engine_written=engine_written), fallback

    async def _get_summary(
        self,
        groups: Sequence[Group],
        earlier: Sequence[Checkpoint],
        options: CompressionOptions,
        sizes: tuple[int, int],
    ) -> tuple[str, str]:
        """Return the model's summary, prepared or requested now, or "" and the reason."""
        longest, replaced = sizes
        asked = summary.build_request(groups, earlier, (longest, options.request_tokens), self._counter)
        last = max(list_numbers([message for group in groups for message in group]), default=0)
        ready, attempts = options.prepared, MAX_ATTEMPTS
        if ready is not None and last <= ready.last_number:
            text = summary.cut_lines(ready.text, longest, self._counter.count_text)
            if not summary.find_fault(text, ready.record, replaced, self._counter.count_text):
                return text, ""
            attempts -= 1
        if self._summarise is None:
            return "", "no model available"
        return await self._request_summary(self._summarise, asked, sizes, options.timeout_seconds, attempts)

    async def _request_summary(
        self,
        summarise: Summarise,
        asked: tuple[PromptMessage, ...],
        sizes: tuple[int, int],
        timeout: float | None,
        attempts: int,
    ) -> tuple[str, str]:
        """Request a summary from the model. Returns "" and the reason on failure. Does not retry after a timeout."""
        longest, replaced = sizes
        reason = ""
        for _ in range(attempts):
            try:
                async with asyncio.timeout(timeout):
                    answer = "".join([piece async for piece in summarise(asked, longest)])
            except TimeoutError:
                return "", f"it took longer than {timeout:g} seconds"
            except Exception as error:  # noqa: BLE001 - whatever a model's port throws, the turn is not lost
                _log.warning("Summarising failed: %s", error)
                reason = str(error)
                continue
            text = summary.clean_answer(answer)
            reason = summary.find_fault(text, asked[-1].content, replaced, self._counter.count_text)
            if not reason:
                return text, ""
            _log.info("A summary was refused: %s", reason)
            asked = summary.build_retry(asked, reason)
        return "", reason

    def _add_facts(
        self,
        text: str,
        work: CompressionState,
        groups: Sequence[Group],
        sizes: tuple[int, int],
        asked: Sequence[RequestLine],
    ) -> str:
        """Append protected facts missing from the summary and the requests beside it, as long as the result is shorter
        than the messages it replaces."""
        longest, replaced = sizes
        results = [message for group in groups for message in group if message.failed]
        wanted = find_facts(
            [*work.list_user_words(groups), *work.locked, *(message.content for message in results[-1:])]
        )
        left = min(longest, replaced * MAX_SUMMARY_PERCENT // 100 - self._counter.count_text(text))
        lost = find_missing("\n".join((text, *(line.text for line in asked))), wanted)
        facts = pick_newest_facts(lost, left, self._counter)
        return f"{text}\n{facts}" if facts else text


def _make_unchanged_result(
    messages: Sequence[PromptMessage], options: CompressionOptions, count: int
) -> CompressionResult:
    system = 1 if messages and messages[0].role == "system" else 0
    standing = [old.message for old in options.checkpoints]
    return CompressionResult(
        compressed_messages=(*messages[:system], *standing, *messages[system:]),
        checkpoints=options.checkpoints,
        original_token_count=count,
        compressed_token_count=count,
        strategy=options.strategy,
        skipped=NO_ROOM,
    )

"""What a compression is told, and the port through which it reaches a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from ollm.domain.context import Checkpoint, Strategy
from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data

Summarise = Callable[[tuple[PromptMessage, ...], int], AsyncIterator[str]]
"""Streams the model's answer to these messages, at most so many tokens. Errors and cancellation pass through."""


class PreparedSummary(Data, frozen=True):
    """A summary that was written before it was needed, of all messages up to a number."""

    text: str
    last_number: int


class CompressionOptions(Data, frozen=True):
    """D's options, and what our strategies need besides.

    `target_tokens` counts everything handed in; unset it is half of that. `request_tokens` is the most a summary
    request may take. With `ledger_tokens` old user messages go into the record as its requests, verbatim while all fit
    into that; unset they stay where they are. `request` is the message being worked on, which stays whatever happens.
    `locked` are decisions whose facts every summary must carry. `prepared` is used where it covers what goes.
    """

    strategy: Strategy = "hybrid"
    preserve_recent_tokens: int = 4096
    target_tokens: int | None = None
    summary_max_tokens: int = 1024
    timeout_seconds: float | None = None
    request_tokens: int | None = None
    ledger_tokens: int | None = None
    request: int | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    locked: tuple[str, ...] = ()
    prepared: PreparedSummary | None = None

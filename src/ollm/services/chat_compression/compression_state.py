"""The state of one compression: removable old groups, the protected recent window, and checkpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from ollm.domain.context import Checkpoint, RequestLine, Strategy
from ollm.domain.messages import Group, PromptMessage, group_messages
from ollm.domain.struct import Data
from ollm.services.chat_compression import folding
from ollm.services.chat_compression.folding import (
    USER_LINE_ID,
    list_numbers,
    remove_aside,
    shorten_message,
)
from ollm.services.chat_compression.records import fold_lines
from ollm.services.token_counting import TokenCounter

MIN_SAVING_TOKENS = 12

Cost = Callable[[PromptMessage], int]

Summarise = Callable[[tuple[PromptMessage, ...], int], AsyncIterator[str]]
"""Streams the model's answer to these messages, at most so many tokens. Errors and cancellation pass through."""


class PreparedSummary(Data, frozen=True):
    """A summary of all messages up to a number, not judged yet, and the record it was written from."""

    text: str
    last_number: int
    record: str


class CompressionOptions(Data, frozen=True):
    """Options of a compression: those of D, and additions for our strategies.

    `target_tokens` counts the whole input and defaults to half of it. `request_tokens` is the limit of a summary
    request. With `ledger_tokens`, old user messages move into the record as its requests, verbatim while all fit into
    that number; otherwise they stay in place. `request` is the current message, which is never removed. `locked` holds
    decisions whose facts every summary must carry. `prepared` is used if it covers the removed messages.
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


class CompressionState:
    """Mutable state of one compression, discarded afterwards."""

    def __init__(self, messages: Sequence[PromptMessage], options: CompressionOptions, counter: TokenCounter) -> None:
        self._counter = counter
        self._options = options
        start = 1 if messages and messages[0].role == "system" else 0
        self._system = tuple(messages[:start])
        groups = group_messages(messages[start:])
        kept, target = options.preserve_recent_tokens, options.target_tokens
        if options.strategy == "truncate" and target:  # The command `/compact` has no target size.
            kept = min(kept, target)
        border = find_recent_start(groups, counter.count_message, kept)
        self._before = groups[:border]
        self.old: list[Group] = list(self._before)
        self.recent: list[Group] = groups[border:]
        self._original: dict[int, Group] = {}  # Keys are identities, because calls hold plain JSON and have no hash.
        self.checkpoints = list(options.checkpoints)
        self.locked = options.locked
        self.total = self._count_tokens()
        self.target = self.total // 2 if options.target_tokens is None else options.target_tokens

    def _count_tokens(self) -> int:
        messages = sum(map(self.count_group, [*self.old, *self.recent]))
        return self._counter.count_messages(self._system) + sum(old.tokens for old in self.checkpoints) + messages

    def count_group(self, group: Group) -> int:
        return self._counter.count_messages(group)

    def build_messages(self) -> tuple[PromptMessage, ...]:
        standing = [message for group in (*self.old, *self.recent) for message in group]
        return (*self._system, *(checkpoint.message for checkpoint in self.checkpoints), *standing)

    def list_gone_numbers(self) -> tuple[int, ...]:
        """List the numbers of messages that are no longer in the context themselves."""
        standing = [m for group in (*self.old, *self.recent) for m in group if not folding.is_folded_line(m)]
        before = list_numbers([m for group in self._before for m in group if not folding.is_folded_line(m)])
        return tuple(sorted(set(before) - set(list_numbers(standing))))

    def settle_user_messages(self) -> None:
        """Remove short-lived additions from old user messages."""
        self.old = [(remove_aside(group[0]),) if self.is_past_request(group) else group for group in self.old]
        self.total = self._count_tokens()

    def is_past_request(self, group: Group) -> bool:
        """Return True for a user message that is not the current request."""
        return is_user_group(group) and (self._options.request is None or self._options.request not in group[0].sources)

    def list_past_requests(self) -> list[Group]:
        """List the requests for the record. Empty if user messages stay in place."""
        return [g for g in self.old if self.is_past_request(g)] if self._options.ledger_tokens is not None else []

    def request_lines(self, asked: Sequence[Group]) -> tuple[RequestLine, ...]:
        """Convert past requests to the lines of a record."""
        said = [group[0] for group in asked if group[0].sources]
        lines = [RequestLine(number=message.sources[0], text=message.content.strip()) for message in said]
        return fold_lines(lines, self._options.ledger_tokens or 0, self._counter.count_text)

    def fold_results(self) -> None:
        """Cut old tool output to a few lines."""
        for place, group in enumerate(self.old):
            folded = tuple(map(self._fold_message, group))
            saved = self.count_group(group) - self.count_group(folded)
            if saved >= MIN_SAVING_TOKENS:
                self._original[id(folded)] = group
                self.old[place] = folded
                self.total -= saved

    def _fold_message(self, message: PromptMessage) -> PromptMessage:
        if message.role == "tool":
            return folding.fold_result(message, self._counter.count_text)
        return folding.fold_calls(message, folding.FOLDED_RESULT_TOKENS, self._counter.count_text)

    def select_oldest(self, allowance: int | None) -> list[Group]:
        """Select the oldest groups to remove to reach the target with a summary of that size. Select all if there is no
        allowance, or if past requests move into the record."""
        if self._options.ledger_tokens is not None:
            return [group for group in self.old if not is_user_group(group)]
        chosen: list[Group] = []
        left = self.total
        for group in self.old:
            if allowance is not None and left + min(allowance, (self.total - left) // 2) <= self.target:
                break
            if not is_user_group(group):
                chosen.append(group)
                left -= self.count_group(group)
        return chosen

    def list_mergeable(self) -> tuple[Checkpoint, ...]:
        return tuple(old for old in self.checkpoints if old.id != USER_LINE_ID and old.message_ids)

    def get_originals(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups as they were before their output was folded."""
        return [self._original.get(id(group), group) for group in groups]

    def add_user_messages(self, groups: Sequence[Group]) -> list[Group]:
        """Add the shortened user messages among these groups, in order, as the source of a summary."""
        last = max(list_numbers([m for group in groups for m in group]), default=0)
        first = min(list_numbers([m for group in groups for m in group]), default=0)
        asked = [
            (shorten_message(group[0], 80, self._counter.count_text),)
            for group in self.old
            if is_user_group(group) and group[0].sources and first - 1 <= group[0].sources[0] <= last
        ]
        return sorted([*asked, *groups], key=lambda group: min(group[0].sources, default=0))

    def list_user_words(self, groups: Sequence[Group]) -> list[str]:
        """List the user messages up to the last of these groups that no earlier checkpoint covers."""
        last = max(list_numbers([m for group in groups for m in group]), default=0)
        covered = max((n for old in self.list_mergeable() for n in old.message_ids), default=0)
        said = [message for group in self._before for message in group if message.role == "user"]
        return [m.content for m in map(remove_aside, said) if not m.sources or covered < m.sources[0] <= last]

    def replace_groups(self, chosen: Sequence[Group], earlier: Sequence[Checkpoint], checkpoint: Checkpoint) -> None:
        going = {id(group) for group in chosen}
        self.old = [group for group in self.old if id(group) not in going]
        self.checkpoints = [old for old in self.checkpoints if old not in earlier]
        self.checkpoints.append(checkpoint)
        self.total = self._count_tokens()

    def truncate(self) -> None:
        """Replace each run of old messages with one line, oldest first, until the target is reached."""
        lines: list[Group] = []
        for group in self.old:
            if is_user_group(group) or self.total <= self.target:
                lines.append(group)
                continue
            before: Group = lines.pop() if lines and folding.is_folded_line(lines[-1][0]) else ()
            line: Group = (folding.make_folded_line([*before, *group]),)
            saved = self.count_group(before) + self.count_group(group) - self.count_group(line)
            lines.extend([line] if saved > 0 else filter(None, (before, group)))
            self.total -= max(0, saved)
        self.old = lines
        self.total = self._count_tokens()


def find_recent_start(groups: Sequence[Group], cost: Cost, preserve: int) -> int:
    """Find the index of the first group of the recent window.

    The window holds every group with a message that lies completely within the newest `preserve` tokens, and always
    the last group.
    """
    left = preserve
    for place in range(len(groups) - 1, -1, -1):
        for message in reversed(groups[place]):
            left -= cost(message)
            if left < 0:
                inside = message is not groups[place][-1]
                return place if inside or place == len(groups) - 1 else place + 1
    return 0


def is_user_group(group: Group) -> bool:
    return group[0].role == "user"

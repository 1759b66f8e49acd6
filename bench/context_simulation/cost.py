"""The price of a conversation in tokens: what its server must read, and what it writes for summaries, over what is new.

The server is thought to keep the last few prompts with their answers, as llama.cpp does by default, and to read only
what comes after the longest beginning that a new prompt shares with one of them. An answer that comes back unchanged
is not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.context_simulation.server import Heard
from bench.context_simulation.tokenizer import Tokenizer

KEPT_PROMPTS = 4


@dataclass
class Cost:
    """Sums over all turns. `new` is the least that any client must let the server read: instructions and tools once,
    each message of the user, each result as it was first sent."""

    turns: int = 0
    new: int = 0
    read: int = 0
    summary_read: int = 0
    summary_written: int = 0

    @property
    def read_again(self) -> float:
        """Everything that was read or written for summaries, over what is new. 1.0 is the least possible."""
        return (self.read + self.summary_read + self.summary_written) / max(1, self.new)

    def lines(self) -> list[tuple[str, str]]:
        turns = max(1, self.turns)
        return [
            ("read again, × what is new", f"{self.read_again:.2f}"),
            ("  new tokens a turn", f"{self.new / turns:.0f}"),
            ("  read for answers a turn", f"{self.read / turns:.0f}"),
            ("  read for summaries a turn", f"{self.summary_read / turns:.0f}"),
            ("  written for summaries a turn", f"{self.summary_written / turns:.0f}"),
        ]


def measure_cost(heard: Sequence[Heard], texts: Mapping[int, str], tokenizer: Tokenizer) -> Cost:
    """Price the accepted requests. `texts` are the user's messages by turn."""
    cost, kept = Cost(turns=len(texts)), deque[list[str]](maxlen=KEPT_PROMPTS)
    turn = 0
    for one in heard:
        if one.status != 200:
            continue
        known = max((count_common(old, one.pieces, tokenizer) for old in kept), default=0)
        read = max(0, one.prompt_tokens - known)
        if one.summary:
            cost.summary_read += read
            cost.summary_written += tokenizer.count(one.answer)
        else:
            cost.read += read
            cost.new += _count_new(one, turn, texts, tokenizer)
            turn = one.turn
        kept.append([*one.pieces, one.answer])
    return cost


def count_common(old: Sequence[str], new: Sequence[str], tokenizer: Tokenizer) -> int:
    """Count the tokens at the beginning that two prompts share."""
    same = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            return same + tokenizer.count(_find_common_start(before, after))
        same += tokenizer.count(before)
    return same


def _find_common_start(old: str, new: str) -> str:
    same = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        same += 1
    return old[:same]


def _count_new(one: Heard, last_turn: int, texts: Mapping[int, str], tokenizer: Tokenizer) -> int:
    if last_turn == 0:
        return one.prompt_tokens
    if one.turn != last_turn:
        return tokenizer.count(f"<|im_start|>user\n{texts[one.turn]}<|im_end|>\n<|im_start|>assistant\n")
    count = 0
    for message in reversed(one.body["messages"]):
        if message["role"] != "tool":
            break
        count += 1
    return sum(map(tokenizer.count, one.pieces[len(one.pieces) - count :]))

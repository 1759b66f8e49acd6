"""Records of old messages (H: checkpoints): added one after the other, and rewritten as one when they take too much.

Until then none is touched, so that what a server has read of them stays. Shortening needs no model: content stays
before headings, the first lines of a section before its last, facts before all; what goes is in the archive under
the numbers a record cites.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ollm.domain.context import Checkpoint, RequestLine
from ollm.services.request_ledger import count_lines, fold_ledger
from ollm.services.token_counting import TokenCounter

MIN_CHECKPOINT_TOKENS = 40  # tokens a checkpoint is never cut below
MERGED_SHARE = 0.50  # of the cap, when the records are rewritten: room for the next ones
FACTS_SHARE = 0.5  # of a shortened summary that its facts may take
PINNED_IDS = ("user-messages", "goals")  # written by the engine, never shortened
FACTS = "Facts: "


class AgingResult(msgspec.Struct, frozen=True):
    """The checkpoints as they are now, and those that became shorter."""

    checkpoints: tuple[Checkpoint, ...]
    changed: tuple[Checkpoint, ...] = ()


class CheckpointManager:
    """Keeps records within their share of the window; pure but for counting."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def age(self, checkpoints: Sequence[Checkpoint], cap: int, ledger_cap: int | None = None) -> AgingResult:
        """As they are while they take at most `cap` tokens and the requests in them `ledger_cap`; else all as one."""
        pinned = [old for old in checkpoints if old.id in PINNED_IDS]
        rest = [old for old in checkpoints if old.id not in PINNED_IDS]
        asked = [line for old in rest for line in old.requests]
        over = ledger_cap is not None and count_lines(asked, self._counter.count_text) > ledger_cap
        if not rest or (not over and count_tokens((*pinned, *rest)) <= cap):
            return AgingResult(tuple(checkpoints))
        merged = self._merge(rest, int(cap * MERGED_SHARE) - count_tokens(pinned), ledger_cap)
        return AgingResult((*pinned, merged), (merged,))

    def _merge(self, records: Sequence[Checkpoint], tokens: int, ledger_cap: int | None) -> Checkpoint:
        asked = tuple(line for old in records for line in old.requests)
        if ledger_cap is not None:
            asked = fold_ledger(asked, ledger_cap, self._counter.count_text)
        merged = msgspec.structs.replace(
            records[-1],
            text="",
            requests=asked,
            message_ids=tuple(sorted({number for old in records for number in old.message_ids})),
            engine_written=all(old.engine_written for old in records),
            age="compact",
        )
        merged = self._fit_requests(merged, tokens)
        left = tokens - self._counter.count_message(merged.message)
        whole = merge_summaries([old.text for old in records])
        text = shorten_summary(whole, max(MIN_CHECKPOINT_TOKENS // 2, left), self._counter)
        age = "medium" if len(text) * 2 > len(whole) else "compact"
        return self._count_record(msgspec.structs.replace(merged, text=text, age=age))

    def _fit_requests(self, record: Checkpoint, tokens: int) -> Checkpoint:
        """Fewer of the oldest requests, while they alone would fill the record."""
        while record.requests and self._counter.count_message(record.message) > max(
            MIN_CHECKPOINT_TOKENS, tokens * 4 // 5
        ):
            fewer: tuple[RequestLine, ...] = record.requests[max(1, len(record.requests) // 12) :]
            record = msgspec.structs.replace(record, requests=fewer)
        return record

    def _count_record(self, record: Checkpoint) -> Checkpoint:
        return msgspec.structs.replace(record, tokens=self._counter.count_message(record.message))


def merge_summaries(texts: Sequence[str]) -> str:
    """Several summaries as one: what is newer first under each heading, the facts of all together."""
    sections: dict[str, dict[str, None]] = {}
    facts: dict[str, None] = {}
    for text in reversed(texts):
        for heading, lines, told in _read_sections(text):
            sections.setdefault(heading, {}).update(dict.fromkeys(lines))
            facts = {**dict.fromkeys(told), **facts}
    found = ["\n".join(filter(None, (heading, *lines))) for heading, lines in sections.items() if lines]
    return "\n".join((*found, *([FACTS + "; ".join(facts)] if facts else ())))


def shorten_summary(text: str, tokens: int, counter: TokenCounter) -> str:
    """A summary within so many tokens: its facts, then the first line of every section, then the second of each."""
    if counter.count_text(text) <= tokens:
        return text
    sections = [(heading, lines) for heading, lines, _ in _read_sections(text) if lines]
    facts = _pick_newest_facts([fact for _, _, told in _read_sections(text) for fact in told], tokens, counter)
    left = tokens - (counter.count_text(facts) + 1 if facts else 0)
    kept: list[list[str]] = [[] for _ in sections]
    for depth in range(max((len(lines) for _, lines in sections), default=0)):
        for place, (heading, lines) in enumerate(sections):
            if depth < len(lines) and depth == len(kept[place]):
                cost = (
                    counter.count_text(lines[depth])
                    + 1
                    + (counter.count_text(heading) + 1 if heading and not depth else 0)
                )
                if cost <= left:
                    kept[place].append(lines[depth])
                    left -= cost
    found = ["\n".join(filter(None, (sections[at][0], *lines))) for at, lines in enumerate(kept) if lines]
    if not found and not facts and sections:
        return _clip_line(sections[0][1][0], tokens, counter)
    return "\n".join((*found, *([facts] if facts else ())))


def _read_sections(text: str) -> list[tuple[str, list[str], list[str]]]:
    """Headings with the lines under them, and the facts listed in each."""
    sections: list[tuple[str, list[str], list[str]]] = [("", [], [])]
    for line in filter(str.strip, text.splitlines()):
        if line.startswith(FACTS):
            sections[-1][2].extend(filter(None, line.removeprefix(FACTS).split("; ")))
        elif line.rstrip().endswith(":") and not line.startswith(("-", "*", " ")):
            sections.append((line.rstrip(), [], []))
        else:
            sections[-1][1].append(line)
    return sections


def _pick_newest_facts(facts: Sequence[str], tokens: int, counter: TokenCounter) -> str:
    left = int(tokens * FACTS_SHARE) - counter.count_text(FACTS)
    kept: list[str] = []
    for fact in reversed(facts):
        left -= counter.count_text(fact) + 1
        if left < 0:
            break
        kept.append(fact)
    return FACTS + "; ".join(reversed(kept)) if kept else ""


def _clip_line(line: str, tokens: int, counter: TokenCounter) -> str:
    while counter.count_text(line) > tokens and len(line) > 8:
        line = line[: int(len(line) * 0.8)]
    return line


def count_tokens(checkpoints: Iterable[Checkpoint]) -> int:
    """What these take together."""
    return sum(old.tokens for old in checkpoints)

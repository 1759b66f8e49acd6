"""The request ledger: what the user asked, oldest first, in place of messages that left the context.

A request stays verbatim while all of them fit; after that the oldest become numbered lines made without a model, and
the very oldest a range of numbers. Lines are only added until the ledger is over its share; then it is rewritten,
well under it, so that what a server has read stays for many turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ollm.domain.context import RequestLine
from ollm.services.protected_facts import find_facts, strip_markers

TextCost = Callable[[str], int]

LINE_TOKENS = (40, 34, 28)  # a line of the newest third of the ledger, and of each older one
NEW_LINE_TOKENS = 64  # a line that is added while there is room, once the oldest are shortened
MIN_LINE_TOKENS = 12
MIN_CLIPPED_CHARS = 8
KEPT_SHARE = 0.55  # of the cap, when the ledger is rewritten
MAX_PASTED_LINES = 3  # more lines of pasted text than these are counted, not shown
MAX_SCANNED_CHARS = 20_000

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TELLING = re.compile(
    r"\b(?:remember|note|important|must|never|always|decided?|agreed|keep in mind|fact|todo|do not|don't|by the way)\b",
    re.IGNORECASE,
)
_PASTED = re.compile(r"\s{2,}\S|\s*(?:at |File \"|[|+\-]{3}|\d+[:|] )|[{}()\[\];<>]")


def shorten_request(text: str, tokens: int, cost: TextCost) -> str:
    """A request in at most so many tokens: whole, or the sentences that tell most, in their order."""
    plain = " ".join(text.split())
    if cost(plain) <= tokens:
        return plain
    sentences = _split_sentences(text)
    ranked = sorted(range(len(sentences)), key=lambda place: _rank(sentences, place))
    chosen: dict[int, str] = {}
    left = tokens
    for place in ranked:
        available = left - (1 if chosen else 0)
        said = sentences[place] if cost(sentences[place]) <= available else _clip(sentences[place], available, cost)
        if not said:
            continue
        chosen[place] = said
        left = available - cost(said)
        if left < MIN_LINE_TOKENS // 2:
            break
    return " ".join(chosen[place] for place in sorted(chosen)) or plain[: max(1, tokens)]


def _split_sentences(text: str) -> list[str]:
    """Sentences of what was written; blocks of pasted lines are counted."""
    prose = _FENCE.sub(_replace_fence, strip_markers(text[:MAX_SCANNED_CHARS]))
    lines: list[str] = []
    pasted: list[str] = []
    for line in [*prose.splitlines(), ""]:
        if line.strip() and _PASTED.match(line):
            pasted.append(line)
            continue
        if pasted:
            lines += pasted if len(pasted) <= MAX_PASTED_LINES else [*pasted[:1], f"[{len(pasted) - 1} more lines]"]
            pasted = []
        lines.append(line)
    found = [" ".join(part.split()) for line in lines for part in _SENTENCE.split(line)]
    return [part for part in found if part] or [" ".join(text.split())]


def _replace_fence(block: re.Match[str]) -> str:
    return f" [{block.group().count(chr(10))} lines of code] "


def _rank(sentences: Sequence[str], place: int) -> tuple[float, int]:
    """Sentences with names, numbers and places first, then the first one, then those that ask to be remembered."""
    sentence = sentences[place]
    facts = len(find_facts([sentence]))
    telling = bool(_TELLING.search(sentence))
    weight = min(facts, 4) * 2.0 + (2.5 if telling and facts else 1.5 if telling else 0) + (1.0 if place == 0 else 0)
    return -weight, place


def _clip(sentence: str, tokens: int, cost: TextCost) -> str:
    """The beginning of a sentence, or its end where that names more."""
    if tokens < MIN_LINE_TOKENS:
        return ""
    size = len(sentence)
    while cost(sentence[:size]) > tokens - 1 and size > MIN_CLIPPED_CHARS:
        size = int(size * 0.85)
    head, tail = sentence[:size], sentence[len(sentence) - size :]
    if cost(tail) <= tokens - 1 and len(find_facts([tail])) > len(find_facts([head])):
        return f"…{tail.partition(' ')[2] or tail}"
    lost = [fact for fact in find_facts([sentence]) if fact not in head]
    if lost and not find_facts([head]):
        start = max(0, sentence.find(lost[0]) - size // 2)
        return f"…{sentence[start : start + size].strip()}…"
    return f"{head.rstrip()}…"


def make_lines(
    ledger: Sequence[RequestLine], new: Iterable[tuple[int, str]], cap: int, cost: TextCost
) -> tuple[RequestLine, ...]:
    """The lines of what was asked since: verbatim while all requests fit into the cap, else as long as new ones are,
    so that one long text does not take the place of many others."""
    added = [RequestLine(number=number, text=text.strip()) for number, text in new]
    if all(line.whole for line in ledger) and count_lines((*ledger, *added), cost) <= cap:
        return tuple(added)
    longer = _shorten_lines(added, (NEW_LINE_TOKENS,), cost)
    if count_lines((*ledger, *longer), cost) <= cap:
        return tuple(longer)
    return tuple(_shorten_lines(added, LINE_TOKENS[:1], cost))


def fold_ledger(ledger: Sequence[RequestLine], cap: int, cost: TextCost) -> tuple[RequestLine, ...]:
    """The ledger rewritten within its share: the newest longest, the very oldest left to their numbers."""
    available = int(cap * KEPT_SHARE)
    for sizes in (LINE_TOKENS, LINE_TOKENS[1:], LINE_TOKENS[-1:]):
        lines = _shorten_lines(ledger, sizes, cost)
        if count_lines(lines, cost) <= available:
            return tuple(lines)
    while lines and count_lines(lines, cost) > available:
        lines = lines[max(1, len(lines) // 16) :]
    return tuple(lines)


def _shorten_lines(lines: Sequence[RequestLine], sizes: Sequence[int], cost: TextCost) -> list[RequestLine]:
    """Each within the size of its age: equal shares, the newest have the first size."""
    found: list[RequestLine] = []
    for place, line in enumerate(lines):
        size = sizes[(len(lines) - 1 - place) * len(sizes) // len(lines)]
        text = shorten_request(line.text, size, cost)
        found.append(line if text == line.text else RequestLine(number=line.number, text=text, whole=False))
    return found


def count_lines(lines: Sequence[RequestLine], cost: TextCost) -> int:
    """What the ledger takes in a prompt, numbers included."""
    return sum(cost(line.text) + 3 for line in lines)

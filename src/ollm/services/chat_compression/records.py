"""Records of old messages (H: checkpoints): the user's words, and a summary of the work done.

There is one record. The user's words come first and are only appended to, so that the server's prompt cache holds.
They stay verbatim while they fit; then the oldest are shortened first, each once and for good. If that is not enough,
the least informative lines of the older half are dropped and only their numbers remain. A cut goes down to the share of
the window that the words always keep: the server reads everything after it again, so it is deep and rare. The summary
after them is merged with every new one. It is shortened without a model: it keeps its facts, then the first lines of
each section. The archive has everything under the numbers a record cites.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ollm.domain.context import Checkpoint, RequestLine
from ollm.domain.lazy import compile_late
from ollm.services.chat_compression.folding import TextCost, find_facts, strip_markers
from ollm.services.token_counting import TokenCounter

MIN_CHECKPOINT_TOKENS = 40  # No checkpoint is shortened to fewer tokens.
FACTS_SHARE = 0.5  # Facts may take this share of a shortened summary.
PINNED_IDS = ("user-messages", "goals")  # The engine writes these records, and they are never shortened.
FACTS = "Facts: "
LINE_TOKENS = 20  # The least length of a shortened message.
MIN_LINE_TOKENS = 12
MIN_CLIPPED_CHARS = 8
MAX_PASTED_LINES = 3  # A longer paste is shown as a number of lines.
MAX_SCANNED_CHARS = 20_000
RATED_WORDS_OFFSET = 3  # The offset keeps a sentence of one rare word from coming first.

_SENTENCE = compile_late(r"(?<=[.!?…])\s+|(?<=[。！？；])|\n+")
_FENCE = compile_late(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = compile_late(r"\w+")
_PASTED = compile_late(r"\s{2,}\S|\s*(?:at |File \"|[|+\-]{3}|\d+[:|] )|[{}()\[\];<>]")


class WordRarity:
    """Rates text by information: words that occur in few of these texts, and names, numbers and paths. It works in any
    language, since common words are found by counting."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Counter[str] = Counter()
        for text in texts:
            self._texts.update(set(_split_words(text)))

    def rate_word(self, word: str) -> float:
        return sum(1 / max(1, self._texts[part]) for part in set(_split_words(word))) + 2 * len(find_facts([word]))

    def rate_sentence(self, sentence: str) -> float:
        """Rate a sentence by its words, relative to its length."""
        words = sentence.split()
        return sum(map(self.rate_word, set(words))) / (len(words) + RATED_WORDS_OFFSET)


def _split_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def shorten_request(text: str, tokens: int, cost: TextCost, rarity: WordRarity) -> str:
    """Shorten a request to at most so many tokens: unchanged, or its most informative sentences in their order. A
    sentence is clipped to make room for the next if that rates at least half as high."""
    plain = " ".join(text.split())
    if cost(plain) <= tokens:
        return plain
    sentences = _split_sentences(text)
    rated = [rarity.rate_sentence(sentence) for sentence in sentences]
    chosen: dict[int, str] = {}
    left = tokens
    order = sorted(range(len(sentences)), key=lambda place: -rated[place])
    for rank, place in enumerate(order):
        available = left - (1 if chosen else 0)
        said = sentences[place]
        alike = [next_one for next_one in order[rank + 1 : rank + 2] if rated[next_one] >= rated[place] / 2]
        allowed = available - sum(cost(sentences[next_one]) + 1 for next_one in alike)
        allowed = allowed if allowed >= MIN_LINE_TOKENS else available
        if cost(said) > allowed:
            said = _clip(said, allowed, cost, rarity)
        if not said:
            continue
        chosen[place] = said
        left = available - cost(said)
        if left < MIN_LINE_TOKENS // 2:
            break
    return " ".join(chosen[place] for place in sorted(chosen)) or plain[: max(1, tokens)]


def _split_sentences(text: str) -> list[str]:
    """Split prose into sentences. Long blocks of pasted lines are replaced with their line count."""
    prose = _FENCE.sub(
        lambda block: f" [{block[0].count(chr(10))} lines of code] ", strip_markers(text[:MAX_SCANNED_CHARS])
    )
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


def _clip(sentence: str, tokens: int, cost: TextCost, rarity: WordRarity) -> str:
    """Clip a sentence to its most informative run of words, or to its beginning if it has no blanks."""
    if tokens < MIN_LINE_TOKENS:
        return ""
    words = sentence.split()
    costs = [cost(f" {word}") for word in words]
    rated = list(map(rarity.rate_word, words))
    best, start, used, worth = (0.0, 0, 0), 0, 0, 0.0
    for end, word_cost in enumerate(costs, 1):
        used, worth = used + word_cost, worth + rated[end - 1]
        while used > tokens - 2:
            used, worth, start = used - costs[start], worth - rated[start], start + 1
        if worth > best[0]:
            best = (worth, start, end)
    _, start, end = best
    if start == end:
        return _clip_characters(sentence, tokens, cost)
    return f"{'…' * (start > 0)}{' '.join(words[start:end])}{'…' * (end < len(words))}"


def _clip_characters(text: str, tokens: int, cost: TextCost) -> str:
    size = len(text)
    while cost(text[:size]) > tokens - 1 and size > MIN_CLIPPED_CHARS:
        size = int(size * 0.85)
    return f"{text[:size].rstrip()}…"


def fold_lines(lines: Sequence[RequestLine], tokens: int, cost: TextCost) -> tuple[RequestLine, ...]:
    """Fit lines into so many tokens: shorten the oldest first, none more than needed. If that is not enough, drop the
    least informative of the older half; only their numbers remain."""
    folded = list(lines)
    total = count_lines(folded, cost)
    rarity = WordRarity(line.text for line in lines)
    for place, line in enumerate(folded):
        if total <= tokens:
            return tuple(folded)
        folded[place] = _shorten_line(line, max(LINE_TOKENS, cost(line.text) - (total - tokens)), cost, rarity)
        total += cost(folded[place].text) - cost(line.text)
    while folded and total > tokens:
        older = folded[: len(folded) // 2 + 1]
        dropped = min(older, key=lambda line: rarity.rate_sentence(line.text))
        total -= count_lines([dropped], cost)
        folded.remove(dropped)
    return tuple(folded)


def _shorten_line(line: RequestLine, tokens: int, cost: TextCost, rarity: WordRarity) -> RequestLine:
    text = shorten_request(line.text, tokens, cost, rarity)
    return line if text == line.text else RequestLine(number=line.number, text=text, whole=False)


def count_lines(lines: Sequence[RequestLine], cost: TextCost) -> int:
    """Count the tokens of these lines in a prompt, including their numbers."""
    return sum(cost(line.text) + 3 for line in lines)


class RecordCaps(msgspec.Struct, frozen=True):
    """Token caps of records: the user's words, the size they are shortened to beyond that cap, and summaries."""

    words: int
    shortened: int
    summaries: int


def age_checkpoints(
    checkpoints: Sequence[Checkpoint], caps: RecordCaps, counter: TokenCounter
) -> tuple[Checkpoint, ...]:
    """Merge all but pinned records into one, within the caps."""
    pinned = [old for old in checkpoints if old.id in PINNED_IDS]
    rest = [old for old in checkpoints if old.id not in PINNED_IDS]
    lines: Sequence[RequestLine] = [line for old in rest for line in old.requests]
    fits = count_lines(lines, counter.count_text) <= caps.words
    if not rest or (fits and len(rest) == 1 and counter.count_text(rest[0].text) <= caps.summaries):
        return tuple(checkpoints)
    if not fits:
        lines = fold_lines(lines, caps.shortened, counter.count_text)
    whole = merge_summaries([old.text for old in rest])
    text = shorten_summary(whole, max(MIN_CHECKPOINT_TOKENS // 2, caps.summaries - count_tokens(pinned)), counter)
    merged = msgspec.structs.replace(
        rest[-1],
        text=text,
        requests=tuple(lines),
        message_ids=tuple(sorted({number for old in rest for number in old.message_ids})),
        engine_written=all(old.engine_written for old in rest),
        age="medium" if len(text) * 2 > len(whole) else "compact",
    )
    return *pinned, msgspec.structs.replace(merged, tokens=counter.count_message(merged.message))


def merge_summaries(texts: Sequence[str]) -> str:
    """Merge several summaries: newer lines first under each heading, all facts together."""
    sections: dict[str, dict[str, None]] = {}
    facts: dict[str, None] = {}
    for text in reversed(texts):
        for heading, lines, told in _read_sections(text):
            sections.setdefault(heading, {}).update(dict.fromkeys(lines))
            facts = {**dict.fromkeys(told), **facts}
    found = ["\n".join(filter(None, (heading, *lines))) for heading, lines in sections.items() if lines]
    return "\n".join((*found, *([FACTS + "; ".join(facts)] if facts else ())))


def shorten_summary(text: str, tokens: int, counter: TokenCounter) -> str:
    """Shorten a summary to so many tokens: its facts, then the first line of every section, then the second."""
    if counter.count_text(text) <= tokens:
        return text
    sections = [(heading, lines) for heading, lines, _ in _read_sections(text) if lines]
    told = [fact for _, _, facts in _read_sections(text) for fact in facts]
    facts = pick_newest_facts(told, int(tokens * FACTS_SHARE) - counter.count_text(FACTS), counter)
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
        return _clip_characters(sections[0][1][0], tokens, counter.count_text)
    return "\n".join((*found, *([facts] if facts else ())))


def _read_sections(text: str) -> list[tuple[str, list[str], list[str]]]:
    sections: list[tuple[str, list[str], list[str]]] = [("", [], [])]
    for line in filter(str.strip, text.splitlines()):
        if line.startswith(FACTS):
            sections[-1][2].extend(filter(None, line.removeprefix(FACTS).split("; ")))
        elif line.rstrip().endswith(":") and not line.startswith(("-", "*", " ")):
            sections.append((line.rstrip(), [], []))
        else:
            sections[-1][1].append(line)
    return sections


def pick_newest_facts(facts: Sequence[str], left: int, counter: TokenCounter) -> str:
    """Render the newest facts that fit into so many tokens, or return ""."""
    kept: list[str] = []
    for fact in reversed(facts):
        left -= counter.count_text(fact) + 1
        if left < 0:
            break
        kept.append(fact)
    return FACTS + "; ".join(reversed(kept)) if kept else ""


def count_tokens(checkpoints: Iterable[Checkpoint]) -> int:
    return sum(old.tokens for old in checkpoints)

"""The parts of a long file that matter for a request: definitions, blocks and constants that it is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ollm.providers.text_calls.definitions import Definition, find_definitions
from ollm.providers.text_calls.line_edits import find_block_end

MAX_EXCERPT_LINES = 60
MAX_DEFINITION_LINES = 45
FIRST_HITS = 2  # of a word that stands on more lines than `MAX_HITS`
MAX_HITS = 8  # lines a word may stand on and still say where to look
CONTEXT_LINES = 3
MAX_NEAR = 3  # definitions that share a word with the request; more of them say nothing
MIN_PART_CHARS = 4  # of a part of a constant's name that speaks for it
_WORD = re.compile(r"#?[A-Za-z_][\w-]*[\w]|#\w{3,8}|\d+\.\d[\d.]*\d|\d{3,}")
_PART = re.compile(r"[A-Z]?[a-z\d]+|[A-Z\d]+")
_CONSTANT = re.compile(r"^([A-Z][A-Z\d_]+)\s*(?::[^=]+)?=")
_OPENS = re.compile(r"[{\[(:]\s*$")
STOP_WORDS = frozenset(
    (  # noqa: SIM905
        "the and that with from into this then file files line lines function class method value name run "
        "python which what when where there them they should have has does not are for its all every each add "
        "set change write print prints text folder script module section test tests test_ number numbers "
        "constant parameter returns return called make import fails find bug fix use using how many out was "
        "were will would end new old only other"
    ).split()
)
Span = tuple[int, int]


def find_words(text: str) -> list[str]:
    """Words that may name something in a file, in their order."""
    found = (word for word in _WORD.findall(text) if len(word) > 2 and word.lower() not in STOP_WORDS)
    return list(dict.fromkeys(found))


def show_excerpt(name: str, text: str, request: str, words: Sequence[str]) -> str:
    """The parts of a long file that matter here, and how long it is."""
    lines = text.splitlines()
    spans = choose_spans(lines, request, words)
    shown: list[str] = []
    last = 0
    for start, end in fit_spans(spans):
        shown += ["..."] if start > last and shown else []
        shown += lines[start:end]
        last = end
    if not shown:
        shown = [*lines[:3], "...", *lines[-20:]] if find_definitions(lines) else lines[:3]
    body = "\n".join(line[:240] for line in shown)
    return f"{name} is long ({len(lines)} lines). {'Parts of it' if spans else 'It begins'}:\n```\n{body}\n```"


def choose_spans(lines: list[str], request: str, words: Sequence[str]) -> list[Span]:
    """First the definitions that are named, then what holds words that are rare in the file; the likeliest first."""
    definitions, asked = find_definitions(lines), find_words(request)
    named = [found for wanted in (asked, words) for found in definitions if found.name in wanted]
    named = named or [found for found in definitions if _is_spoken_of(found.name, request)]
    spans = [(found.start, min(found.end, found.start + MAX_DEFINITION_LINES)) for found in named]
    for word in asked if not spans else filter(is_identifier, asked):
        hits = [number for number, line in enumerate(lines) if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line)]
        if len(hits) > MAX_HITS:
            spans += [(hit, hit + 1) for hit in hits[:FIRST_HITS] if is_identifier(word)]
            continue
        for hit in hits:
            if not any(start <= hit < end for start, end in spans):
                spans.append(_find_around(hit, lines, definitions))
    said = {word.lower().removesuffix("s") for word in asked}
    if sum(end - start for start, end in merge_spans(spans)) <= MAX_EXCERPT_LINES / 2:
        near = [found for found in definitions if said & _list_parts(found.name)]
        near = near if len(near) <= MAX_NEAR else []
        spans += [(found.start, found.end) for found in near if found.end - found.start <= MAX_DEFINITION_LINES]
    return list(dict.fromkeys([*_find_constants(lines, spans, said), *spans]))


def _is_spoken_of(name: str, request: str) -> bool:
    """Whether the parts of a name stand in the request as words: `give_back` of `give back a book`."""
    parts = [part.lower() for part in _PART.findall(name)]
    return len(parts) > 1 and re.search(rf"\b{' '.join(map(re.escape, parts))}\b", request.lower()) is not None


def _find_around(hit: int, lines: list[str], definitions: list[Definition]) -> Span:
    """The function that holds a line, the block that it opens, or the lines next to it."""
    inside = [found for found in definitions if found.start <= hit < found.end]
    inner = max(inside, key=lambda found: found.start, default=None)
    if inner and inner.end - inner.start <= MAX_DEFINITION_LINES:
        return inner.start, inner.end
    if _OPENS.search(lines[hit]) and (end := find_block_end(hit, lines)) - hit <= MAX_DEFINITION_LINES:
        return hit, end
    return max(0, hit - CONTEXT_LINES), min(len(lines), hit + CONTEXT_LINES + 1)


def _list_parts(name: str) -> set[str]:
    return {part.lower().removesuffix("s") for part in _PART.findall(name) if len(part) >= MIN_PART_CHARS}


def _find_constants(lines: list[str], spans: list[Span], said: set[str]) -> list[Span]:
    """Lines that set what the shown parts use, or what the request names by a part of it."""
    used = {word for start, end in spans for line in lines[start:end] for word in _WORD.findall(line)}
    found = []
    for number, line in enumerate(lines):
        if constant := _CONSTANT.match(line):
            found += [(number, number + 1)] if constant[1] in used or _list_parts(constant[1]) & said else []
    return found


def fit_spans(spans: Iterable[Span]) -> list[Span]:
    """As many as there is room for, in the order of the file."""
    kept: list[Span] = []
    for span in spans:
        more = merge_spans([*kept, span])
        if sum(end - start for start, end in more) <= MAX_EXCERPT_LINES:
            kept = more
    return kept


def is_identifier(word: str) -> bool:
    return bool(re.search(r"[_\d#]|[a-z][A-Z]|^[A-Z]{3}", word)) and not word.endswith(("Error", "Exception"))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged

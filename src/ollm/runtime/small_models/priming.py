"""Chooses the files that go with a request to a small model: their names, and the relevant text.

These are the files that the user names, otherwise those with the rarest tokens of the request. Of a long file only the
matching definitions and lines are shown. Tokens are compared verbatim, in any language, and only in text the user
typed. Pure: names and texts in, text out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ollm.domain.messages import put_in_fence
from ollm.domain.struct import Data
from ollm.runtime.small_models.placement import (
    MAX_DEFINITION_LINES,
    Definition,
    find_block_end,
    find_definitions,
    list_defined_names,
)

MAX_NAMES = 40
MAX_WHOLE_LINES = 50
MAX_WHOLE_CHARS = 3_200
MAX_SEARCHED_FILES = 400
MAX_SEARCHED_CHARS = 60_000  # A longer file is searched only if it is named.
MAX_FOUND_FILES = 3  # Tokens that lead to more files say nothing.
MAX_LINE_CHARS = 240
MAX_EXCERPT_LINES = 60
MAX_HITS = 8  # A token on more lines does not say where to look.
NEAR_HIT = 0.25  # Another token's places are shown too from this share of the best token's worth.
CONTEXT_LINES = 3
MIN_TOKEN_CHARS = 3
LONG_WORD_CHARS = 8  # A plain word of this length says as much as an identifier.
NEAR_SHARE = 0.6  # Another file is shown too from this share of the best file's score.
DEFINED_SCORE = 3.0  # A file that defines a token or has its name scores this; others score at most 1.
PROSE_SHARE = 0.5  # A page of prose scores less, because it holds common words too.
PROSE = (".md", ".rst", ".txt", ".markdown")  # They come first: a small model changes the last text it sees.
_TOKEN = re.compile(r"[^\W\d](?:[\w-]*\w)?|\d+\.\d[\d.]*\d|\d{3,}")
_ASCII_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*[A-Za-z0-9_]")  # Some scripts have no blanks around names.
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]{2,80})'|\"([^\"\n]{2,80})\"|`([^`\n]{2,80})`|[“„«]([^”“»\n]{2,80})[”“»])")
_IDENTIFIER = re.compile(r"[_\d]|[a-z][A-Z]|^[A-Z]{3}")
_OPENS = re.compile(r"[{\[(:]\s*$")

Span = tuple[int, int]
ReadText = Callable[[str], str | None]


class Primed(Data, frozen=True):
    """The texts for a request. `text` follows the request; `whole` are the files the model has seen in full."""

    text: str = ""
    whole: tuple[str, ...] = ()


def prime_request(
    typed: str, names: Sequence[str], read: ReadText, max_chars: int, attached: Collection[str] = ()
) -> Primed:
    """Return names and texts for the user's text, `max_chars` at most. Files `attached` in full are not repeated."""
    names = [name for name in names if "\n" not in name]  # A name of several lines could pass for a file's text.
    if not names:
        return Primed()
    named = find_named(typed, names)
    tokens = find_tokens(typed)
    texts = _read_searched(named, names, read)
    defined = {name: list_defined_names(text) for name, text in texts.items()}
    chosen = [name for name in named or find_by_tokens(tokens, texts, defined) if name in texts]
    listed = list(dict.fromkeys([*chosen, *named, *names]))[:MAX_NAMES]
    more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    parts = [f"Files here: {', '.join(sorted(listed))}{more}"]
    known = {text.rstrip() for text in attached}
    whole = [name for name in chosen if texts[name].rstrip() in known]
    chosen = [name for name in chosen if name not in whole]
    left = max_chars - len(parts[0])
    for name, rendered in _render_files(tokens, chosen, texts):
        part = rendered if len(rendered) <= left else _render_excerpt(name, texts[name], tokens, ())
        if len(part) <= left:
            whole += [name] if part.startswith(_render_whole(name, texts[name])) else []
            parts.append(part)
            left -= len(part)
    return Primed(text="\n\n".join(parts), whole=tuple(whole))


def find_named(typed: str, names: Iterable[str]) -> list[str]:
    """Find the files whose path or last name the text contains, in the order of the text."""
    places = {name: min(_find_place(name, typed), _find_place(posixpath.basename(name), typed)) for name in names}
    return sorted((name for name, place in places.items() if place < len(typed)), key=lambda name: places[name])


def _find_place(name: str, typed: str) -> int:
    if name not in typed:
        return len(typed)
    found = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", typed, re.ASCII)
    return found.start() if found else len(typed)


def find_tokens(typed: str) -> list[str]:
    """Return the unique words, names, numbers and quoted texts that may occur in a file."""
    quoted = ("".join(pair) for pair in _QUOTED.findall(typed))
    words = (word for pattern in (_TOKEN, _ASCII_NAME) for word in pattern.findall(typed))
    return list(dict.fromkeys(token for token in (*quoted, *words) if len(token) >= MIN_TOKEN_CHARS))


def is_identifier(token: str) -> bool:
    return _IDENTIFIER.search(token) is not None


def _weigh(token: str) -> float:
    """Weigh a token by its form: full weight for an identifier, little for a short plain word."""
    if is_identifier(token) or " " in token:
        return 1.0
    return min(1.0, max(0, len(token) - 2) / (LONG_WORD_CHARS - 2))


def _read_searched(named: Sequence[str], names: Sequence[str], read: ReadText) -> dict[str, str]:
    wanted = list(dict.fromkeys((*named, *names)))[:MAX_SEARCHED_FILES]
    texts = {name: text for name in wanted if (text := read(name))}
    return {name: text for name, text in texts.items() if name in named or len(text) <= MAX_SEARCHED_CHARS}


def find_by_tokens(tokens: Sequence[str], texts: Mapping[str, str], defined: Mapping[str, set[str]]) -> list[str]:
    """Find the files that match the tokens, the likeliest last. Return [] if too many are alike."""
    scores = dict.fromkeys(texts, 0.0)
    folded = {name: text.casefold() for name, text in texts.items()}
    for token in tokens:
        for name, score in _score_token(token, folded, defined).items():
            scores[name] += score * (PROSE_SHARE if name.endswith(PROSE) else 1.0)
    best = max(scores.values(), default=0.0)
    near = sorted(
        (name for name, score in scores.items() if best and score >= NEAR_SHARE * best), key=lambda name: scores[name]
    )
    return near if len(near) <= MAX_FOUND_FILES else []


def _score_token(token: str, folded: Mapping[str, str], defined: Mapping[str, set[str]]) -> dict[str, float]:
    """Score each file for one token: higher if fewer files contain it, highest if the file defines it."""
    plain = token.casefold()
    holding = [name for name, text in folded.items() if _holds(plain, text)]
    rare = 0 < len(holding) <= max(2, len(folded) // 3)
    scores = dict.fromkeys(holding, _weigh(token) / len(holding)) if rare else {}
    defining = [name for name, names in defined.items() if token in names]
    called = [
        name
        for name in folded
        if len(plain) > MIN_TOKEN_CHARS and posixpath.splitext(posixpath.basename(name))[0].casefold() == plain
    ]
    for found in (defining, called):
        for name in found:
            scores[name] = scores.get(name, 0.0) + DEFINED_SCORE / len(found)
    return scores


def _holds(token: str, text: str) -> bool:
    return token in text and re.search(rf"(?<!\w){re.escape(token)}(?!\w)", text) is not None


def _render_files(tokens: Sequence[str], chosen: Sequence[str], texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Render each chosen file: in full if short, otherwise the parts that tokens or short files mention."""
    short = [name for name in chosen if is_short(texts[name])]
    mentioned = {word for name in short for word in _TOKEN.findall(texts[name])}
    rendered = []
    for name in (*short, *(name for name in chosen if name not in short)):
        text = texts[name]
        part = _render_whole(name, text) if name in short else _render_excerpt(name, text, tokens, mentioned)
        rendered.append((name, part))
    return rendered


def is_short(text: str) -> bool:
    return len(text) <= MAX_WHOLE_CHARS and text.count("\n") <= MAX_WHOLE_LINES


def _render_whole(name: str, text: str) -> str:
    return f"{name}:\n{put_in_fence(text.rstrip())}"


def _render_excerpt(name: str, text: str, tokens: Sequence[str], mentioned: Iterable[str]) -> str:
    """Render the matching parts of a long file and its length. If none match, show the heads of its definitions."""
    lines = text.splitlines()
    definitions = find_definitions(lines)
    spans = _fit_spans(_choose_spans(lines, definitions, tokens, set(mentioned)))
    told, shown = "Parts of it", list[str]()
    for number, (start, end) in enumerate(spans):
        shown += ["...", *lines[start:end]] if number else lines[start:end]
    if not spans:
        told, shown = (
            "Its definitions",
            [
                lines[next(n for n in range(found.start, found.end) if not lines[n].lstrip().startswith("@"))]
                for found in definitions[:MAX_EXCERPT_LINES]
            ],
        )
    if not shown:
        told, shown = "It begins", lines[:3]
    body = "\n".join(line[:MAX_LINE_CHARS] for line in shown)
    return f"{name} is long ({len(lines)} lines). {told}:\n{put_in_fence(body)}"


def _choose_spans(
    lines: list[str], definitions: Sequence[Definition], tokens: Sequence[str], mentioned: set[str]
) -> list[Span]:
    """Choose the named definitions, then parts with tokens that are rare in the file, the likeliest first."""
    wanted = set(tokens)
    named = [found for found in definitions if found.name in wanted]
    named += [found for found in definitions if found.name in mentioned and found not in named]
    large = [found for found in named if found.end - found.start > MAX_DEFINITION_LINES]
    spans = [_find_opening(found, definitions) if found in large else (found.start, found.end) for found in named]
    folded = [line.casefold() for line in lines]
    searched = [token for token in tokens if len(named) == len(large) or is_identifier(token)]
    hits = {token: [n for n, line in enumerate(folded) if _holds(token.casefold(), line)] for token in searched}
    rare = {token: places for token, places in hits.items() if 0 < len(places) <= MAX_HITS}
    if not spans and not rare:  # A frequent identifier is shown in its first places.
        rare = {token: hits[token][:2] for token in searched if hits[token] and is_identifier(token)}
    worth = {token: _weigh(token) / len(hits[token]) for token in rare}
    best = max(worth.values(), default=0.0)
    for token in sorted((token for token in rare if worth[token] >= NEAR_HIT * best), key=lambda token: -worth[token]):
        for hit in rare[token]:
            if not any(start <= hit < end for start, end in spans):
                spans.append(_find_around(hit, lines, definitions))
    return list(dict.fromkeys(spans))


def _find_opening(definition: Definition, definitions: Sequence[Definition]) -> Span:
    """Find the beginning of a long definition: for a class, up to the end of its first method."""
    inside = (found.end for found in definitions if definition.start < found.start < definition.end)
    return definition.start, min(next(inside, definition.end), definition.start + MAX_DEFINITION_LINES)


def _find_around(hit: int, lines: list[str], definitions: Sequence[Definition]) -> Span:
    """Find the function around a line, the block that the line opens, or the lines next to it."""
    inside = [found for found in definitions if found.start <= hit < found.end]
    inner = max(inside, key=lambda found: found.start, default=None)
    if inner and inner.end - inner.start <= MAX_DEFINITION_LINES:
        return inner.start, inner.end
    if _OPENS.search(lines[hit]) and (end := find_block_end(lines, hit)) - hit <= MAX_DEFINITION_LINES:
        return hit, end
    return max(0, hit - CONTEXT_LINES), min(len(lines), hit + CONTEXT_LINES + 1)


def _fit_spans(spans: Iterable[Span]) -> list[Span]:
    """Return as many spans as fit, merged and in file order."""
    kept: list[Span] = []
    for span in spans:
        merged: list[Span] = []
        for start, end in sorted([*kept, span]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        if sum(end - start for start, end in merged) <= MAX_EXCERPT_LINES:
            kept = merged
    return kept

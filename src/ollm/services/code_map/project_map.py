"""A map of a project's code within a budget of tokens: its files by weight, with what others use of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ollm.domain.struct import Data
from ollm.services.code_map.definition import CodeDefinition
from ollm.services.code_map.facts import FileFacts
from ollm.services.code_map.ranking import LISTED_KINDS, QueryScores, score_definitions

MAX_MAP_SIGNATURE_CHARS = 100
MAX_FILE_DEFINITIONS = 12
MAX_DESCRIBED_FILES = 10  # of a map for a question; the others are named only
MAX_MATCHES = 3

CountTokens = Callable[[str], int]


class _MapFile:
    """A file on the map, and its definitions by weight."""

    def __init__(self, facts: FileFacts, weights: Sequence[float], weight: float, prefix: str) -> None:
        self.path = f"{prefix}{facts.path}"
        self.weight = weight
        self.best = sorted(
            ((amount, found) for amount, found in zip(weights, facts.definitions, strict=True) if amount > 0),
            key=lambda pair: (-pair[0], pair[1].line),
        )[:MAX_FILE_DEFINITIONS]


class RankedFile(Data, frozen=True):
    """A file that has to do with some words, and the definitions in it that do most."""

    path: str
    score: float
    definitions: tuple[CodeDefinition, ...]


def rank_files(files: Sequence[FileFacts], words: str) -> list[RankedFile]:
    """Rank files and their definitions by what they have to do with these words, best first."""
    scores = QueryScores(files, words)

    def choose_definitions(facts: FileFacts) -> tuple[CodeDefinition, ...]:
        named = [found for found in facts.definitions if found.kind not in LISTED_KINDS]
        rated = [(score, found) for found in named if (score := scores.score_definition(found)) > 0]
        best = sorted(rated, key=lambda pair: (-pair[0], pair[1].depth, pair[1].line))
        return tuple(found for _, found in best[:MAX_MATCHES])

    rated = [(score, facts) for number, facts in enumerate(files) if (score := scores.score_file(number)) > 0]
    return [
        RankedFile(path=facts.path, score=score, definitions=choose_definitions(facts))
        for score, facts in sorted(rated, key=lambda pair: (-pair[0], pair[1].path))
    ]


def render_code_map(
    files: Sequence[FileFacts], max_tokens: int, count: CountTokens, query: str = "", prefix: str = ""
) -> str:
    """At most so many tokens. Without a question: the definitions most used by other files. With one: the files that
    have most to do with it. The same files give the same text. `prefix` is what is before each path."""
    if query.strip():
        return _render_for_query(files, max_tokens, count, query, prefix)
    weights = score_definitions(files)
    if not any(map(any, weights)):  # a project in which no file uses another
        weights = [
            [float(found.depth == 0 and found.kind not in LISTED_KINDS) for found in facts.definitions]
            for facts in files
        ]
    ranked = [_MapFile(facts, weights[number], sum(weights[number]), prefix) for number, facts in enumerate(files)]
    ranked.sort(key=lambda found: (-found.weight, found.path))
    return _render_definitions([found for found in ranked if found.best], max_tokens, count)


def _render_definitions(ranked: Sequence[_MapFile], max_tokens: int, count: CountTokens) -> str:
    """The heaviest definitions of all files, as many as fit, each below its file."""
    pairs = sorted(
        ((amount, place, found) for place, file in enumerate(ranked) for amount, found in file.best),
        key=lambda pair: (-pair[0], pair[1], pair[2].line),
    )
    left, shown = max_tokens, dict[int, list[CodeDefinition]]()
    for _, place, found in pairs:
        price = count(f"{_render_line(found)}\n") + (0 if place in shown else count(f"{ranked[place].path}\n"))
        if price > left:
            if left < max_tokens // 20:
                break
            continue
        left -= price
        shown.setdefault(place, []).append(found)
    lines = [line for place in sorted(shown) for line in _render_file(ranked[place].path, shown[place])]
    return _cut_to_budget(lines, max_tokens, count)


def _render_for_query(files: Sequence[FileFacts], max_tokens: int, count: CountTokens, query: str, prefix: str) -> str:
    related = rank_files(files, query)
    lines, left = list[str](), max_tokens
    for ranked in related[:MAX_DESCRIBED_FILES]:
        entry = _render_file(f"{prefix}{ranked.path}", ranked.definitions)
        price = count("\n".join(entry) + "\n")
        if price > left:
            break
        lines += entry
        left -= price
    names = _list_names([f"{prefix}{ranked.path}" for ranked in related[MAX_DESCRIBED_FILES:]], left, count)
    return _cut_to_budget([*lines, *names], max_tokens, count)


def _list_names(paths: Sequence[str], max_tokens: int, count: CountTokens) -> list[str]:
    """As many of the first paths as fit, those of a directory on one line: `src/shop/: cart.py mail.py`."""
    folders: dict[str, list[str]] = {}
    left = max_tokens
    for path in paths:
        folder, _, name = path.rpartition("/")
        left -= count(f" {_clean_name(name)}") + (0 if folder in folders else count(f"{_clean_name(folder)}/:\n"))
        if left < 0:
            break
        folders.setdefault(folder, []).append(_clean_name(name))
    return [f"{_clean_name(folder) or '.'}/: {' '.join(names)}" for folder, names in folders.items()]


def _render_file(path: str, definitions: Sequence[CodeDefinition]) -> list[str]:
    ordered = sorted(definitions, key=lambda found: found.line)
    return [_clean_name(path), *map(_render_line, ordered)]


def _render_line(found: CodeDefinition) -> str:
    signature = found.signature.strip()
    if found.scope and not signature.startswith("func ("):
        signature = f"{found.scope}: {signature}"
    if len(signature) > MAX_MAP_SIGNATURE_CHARS:
        signature = f"{signature[: MAX_MAP_SIGNATURE_CHARS - 1]}…"
    return f"  {found.line} {_clean_name(signature)}"


def _cut_to_budget(lines: list[str], max_tokens: int, count: CountTokens) -> str:
    text = "\n".join(lines)
    while lines and count(text) > max_tokens:
        lines = lines[: len(lines) * 9 // 10]
        text = "\n".join(lines)
    return text


def _clean_name(name: str) -> str:
    """Whoever named a file shall not break lines or hide words in a prompt."""
    return name if name.isprintable() else "".join(letter if letter.isprintable() else "\ufffd" for letter in name)

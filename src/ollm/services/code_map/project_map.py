"""A map of a project's code within a budget of tokens: its files by weight, with what others use of them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from ollm.domain.struct import Data
from ollm.services.code_map.definition import CodeDefinition, CountTokens
from ollm.services.code_map.facts import FileFacts
from ollm.services.code_map.ranking import QueryScores, defines_itself, score_definitions

MAX_MAP_SIGNATURE_CHARS = 100
MAX_FILE_DEFINITIONS = 12
MAX_DESCRIBED_FILES = 10  # of a map for a question; the others are named only
MAX_MATCHES = 3
_get_order = itemgetter(0, 1, 2)  # weight, file, line


class RankedFile(Data, frozen=True):
    """A file that has to do with some words, and the definitions in it that do most."""

    path: str
    score: float
    definitions: tuple[CodeDefinition, ...]


def rank_files(files: Sequence[FileFacts], words: str) -> list[RankedFile]:
    """Rank files and their definitions by what they have to do with these words, best first."""
    scores = QueryScores(files, words)

    def choose_definitions(facts: FileFacts) -> tuple[CodeDefinition, ...]:
        named = filter(defines_itself, facts.definitions)
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
            [float(found.depth == 0 and defines_itself(found)) for found in facts.definitions] for facts in files
        ]
    order = sorted(range(len(files)), key=lambda number: (-sum(weights[number]), files[number].path))
    return _render_definitions([(files[number], weights[number]) for number in order], max_tokens, count, prefix)


def _render_definitions(
    ranked: Sequence[tuple[FileFacts, Sequence[float]]], max_tokens: int, count: CountTokens, prefix: str
) -> str:
    """The heaviest definitions of all files, as many as fit, each below its file."""
    heaviest = []
    for place, (facts, weights) in enumerate(ranked):
        used = [(-weight, place, found.line, found) for weight, found in zip(weights, facts.definitions, strict=True)]
        heaviest += sorted((entry for entry in used if entry[0] < 0), key=_get_order)[:MAX_FILE_DEFINITIONS]
    left, shown = max_tokens, dict[int, list[CodeDefinition]]()
    for _, place, _, found in sorted(heaviest, key=_get_order):
        path = "" if place in shown else f"{prefix}{ranked[place][0].path}\n"
        price = count(f"{_render_line(found)}\n") + (count(path) if path else 0)
        if price <= left:
            left -= price
            shown.setdefault(place, []).append(found)
        elif left < max_tokens // 20:
            break
    lines = [line for place in sorted(shown) for line in _render_file(f"{prefix}{ranked[place][0].path}", shown[place])]
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

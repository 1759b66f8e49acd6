"""Text helpers: suggestions for mistyped names, counts with their noun, short ids, front matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from ollm.domain.lazy import compile_late

MIN_SIMILARITY = 0.6  # It is the share of letters in place.
MIN_PARTIAL_SCORE = 85  # It is for a name of which only a part was typed.
MAX_TYPED_CHARACTERS = 100
VARIABLE_PATTERN = compile_late(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Replace `${NAME}` and `${NAME:-otherwise}` with the variable's value. Unknown variables stay unchanged."""
    return VARIABLE_PATTERN.sub(lambda found: variables.get(found[1], found[0] if found[2] is None else found[2]), text)


def suggest_names(typed: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return the known names closest to the typed one, best first. Case, `-` and `_` make no difference."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import OSA

    wanted = fold_name(typed[:MAX_TYPED_CHARACTERS])
    ranked: list[tuple[float, bool, str]] = []
    for name in dict.fromkeys(known):
        folded = fold_name(name)
        similarity = OSA.normalized_similarity(wanted, folded)
        if similarity >= MIN_SIMILARITY or (len(wanted) > 2 and fuzz.WRatio(wanted, folded) >= MIN_PARTIAL_SCORE):
            ranked.append((-similarity, sorted(wanted) != sorted(folded), name))
    return [name for _, _, name in sorted(ranked)[:most]]


def format_suggestion(typed: str, known: Iterable[str], otherwise: str = "", lead: str = "") -> str:
    """Return `did you mean NAME?` after `lead`, or `otherwise` if no name is close."""
    near = suggest_names(typed, known)
    return f"{lead}did you mean {near[0]}?" if near else otherwise


def fold_name(name: str) -> str:
    """Fold names that differ only in case, `-` and `_`."""
    return name.casefold().replace("-", "").replace("_", "")


def shorten_line(text: str, most: int) -> str:
    """Put a text on one line of at most `most` characters."""
    line = " ".join(text[: 20 * most].split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def cut_middle(text: str, most: int) -> str:
    """Cut a text to `most` characters: the head, the omitted amount, and half as much of the tail."""
    if len(text) <= most:
        return text
    mark = f"\n[… {len(text) - most:,} characters omitted …]\n"
    tail = (most - len(mark)) // 3
    return text[: most - len(mark) - tail] + mark + text[len(text) - tail :] if tail >= 0 else text[:most]


def fold_lines(lines: Sequence[str], head: int, tail: int, hint: str) -> list[str]:
    """Return the first and last lines, and between them a line that counts the others, if they are several."""
    left = len(lines) - head - tail
    return [*lines[:head], f"… {left:,} more lines{hint}", *lines[head + left :]] if left > 1 else list(lines)


def format_names(names: Sequence[str], most: int) -> str:
    """List the first names, and count the others: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Format a count such as `1 file` or `1,204 files`. `plural` is for nouns that do not just add an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


MIN_SHORT_ID_CHARS = 8


def format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """Map each id to a short prefix that no other id starts with."""
    ordered = sorted(set(ids))
    short = {}
    for place, found in enumerate(ordered):
        others = tuple(ordered[max(place - 1, 0) : place] + ordered[place + 1 : place + 2])
        prefixes = (found[:size] for size in range(MIN_SHORT_ID_CHARS, len(found)))
        short[found] = next((one for one in prefixes if not any(map(str.startswith, others, repeat(one)))), found)
    return short


_BLOCK_MARKS = ("", ">", "|", ">-", "|-")


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of the front matter and the text without it. Indented lines or list items below a key without
    a value become its value."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        return {}, text
    fields: dict[str, str] = {}
    key = ""
    for line in filter(None, map(_drop_comment, lines[1 : ends[1]])):
        if line.startswith((" ", "\t", "- ")):
            if key:
                fields[key] = f"{fields[key]} {line.strip()}".strip()
        else:
            key, mark, value = (part.strip() for part in line.partition(":"))
            if mark:
                fields[key] = value.strip("\"'")
            key = key if mark and value in _BLOCK_MARKS else ""
            if key:
                fields[key] = ""
    return fields, "".join(lines[ends[1] + 1 :]).lstrip("\n")


def _drop_comment(line: str) -> str:
    """Remove the comment from a YAML line. Indented and quoted text may contain a `#`."""
    text = line.lstrip()
    if text.startswith("#"):
        return ""
    is_value = text is line or text.startswith("- ")
    return line.partition(" #")[0] if is_value and not {'"', "'"} & set(line) else line

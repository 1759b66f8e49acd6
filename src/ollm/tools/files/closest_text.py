"""What a target that was not found may have meant: the most similar lines, with the difference pointed out (T3.6)."""

from __future__ import annotations

MAX_SEARCHED_LINES = 50_000
MAX_SHOWN_LINES = 12
SHORT_FILE_CHARS = 1_000  # characters of a file that is shown whole


def find_closest_text(text: str, target: str) -> str:
    """A sentence with the closest lines, or that nothing comes near."""
    from rapidfuzz import fuzz, process

    standing = text.split("\n")[:MAX_SEARCHED_LINES]
    wanted = target.strip("\n").split("\n")
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    near = process.extract(wanted[anchor][:500], standing, scorer=fuzz.ratio, limit=5, score_cutoff=50)
    if not near or not wanted[anchor].strip():
        whole = f"It says:\n{text}" if 0 < len(text) <= SHORT_FILE_CHARS else "Read the file again."
        return f"No similar text. {whole}"
    starts = {max(index - anchor, 0) for _line, _score, index in near}
    block = "\n".join(wanted)[:20_000]
    first = max(
        starts, key=lambda start: (fuzz.ratio("\n".join(standing[start : start + len(wanted)])[:20_000], block), -start)
    )
    found = standing[first : first + len(wanted)]
    shown = "\n".join(found[:MAX_SHOWN_LINES]) + ("\n…" if len(found) > MAX_SHOWN_LINES else "")
    return f"The closest text is at line {first + 1}:\n{shown}\n{_describe_difference(found, wanted, first)}"


def _describe_difference(found: list[str], wanted: list[str], first: int) -> str:
    for offset, line in enumerate(wanted):
        there = found[offset] if offset < len(found) else None
        if there is None:
            return f"The text ends before line {offset + 1} of the target."
        if there != line:
            has, asked = _cut_around_difference(there, line), _cut_around_difference(line, there)
            return f"Line {first + offset + 1} reads {has!r} where the target has {asked!r}."
    return "Only whitespace or line endings differ."


def _cut_around_difference(line: str, other: str) -> str:
    """A line from a little before where it differs."""
    same = next(
        (index for index, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other))
    )
    start = max(same - 20, 0)
    return ("…" if start else "") + line[start : start + 80] + ("…" if len(line) > start + 80 else "")

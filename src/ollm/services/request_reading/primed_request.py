"""What goes with a request to a small model: the names of the project's files, and of those it names the text.

A short file goes whole; of a long one the definitions and lines that the request, or a short file it names, mentions.
Pure: names and texts in, one text out, the same for the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ollm.domain.struct import Data
from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.asked_places import MOVE_END, MOVED_BY
from ollm.services.request_reading.broken_data import find_broken_data
from ollm.services.request_reading.excerpts import find_words, show_excerpt
from ollm.services.request_reading.meant_files import find_led_to, find_meant, find_tiny_project
from ollm.services.request_reading.plain_words import FILE_NOUNS
from ollm.services.request_reading.wanted_files import CODE

MAX_NAMES = 40
MAX_WHOLE_LINES = 50
MAX_WHOLE_CHARS = 3_200
MAX_ASKED_LINES = 160  # of a file that is only asked about
MAX_ASKED_CHARS = 5_600
MAX_LINES = 20  # lines shown for a word that is to become another
MAX_COLUMNS = 20
_PATH = r"[\w.-]*(?:/[\w.-]+)*\.[A-Za-z]\w*"
_MOVES = re.compile(
    r"\b(?:move|extract|pull|take|put|factor|split|relocate|transfer|shift|belongs?|want|need|should|must|ha(?:s|ve) "
    r"to)\b.*\.py\b",
    re.IGNORECASE,
)
_PAGES = (".md", ".rst", ".txt")  # shown first, for what is shown last is what a small model changes


class Primed(Data, frozen=True):
    """`text` goes behind the request; `whole` are the files the model has seen all of, `meant` those that the request
    means without naming them."""

    text: str = ""
    whole: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()


def prime_request(request: str, names: Sequence[str], read: Callable[[str], str | None], max_chars: int) -> Primed:
    """Names and texts for this request, `max_chars` at most."""
    names = [name for name in names if "\n" not in name]  # one of several lines could be taken for what is shown
    named = find_named(request, names)
    told = find_led_to(request, named, names, read) if named else find_meant(request, names, read)
    named += [name for name in told if name not in named]
    named = named or sorted(find_tiny_project(request, names, read), key=lambda name: not name.endswith(_PAGES))
    listed = [*named, *(name for name in names if name not in named)][:MAX_NAMES]
    if not listed:
        return Primed()
    more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    parts, whole = [f"Files here: {', '.join(sorted(listed))}{more}"], []
    if moves_files(request):
        return Primed(text=parts[0])
    if command := _find_move_command(request, names, read):
        parts[0] += f"{MOVED_BY}{command}{MOVE_END}"
    texts = {name: text for name in named if (text := read(name))}
    if renames(request) and not all(map(is_short, texts.values())):
        lines = find_lines(texts, find_words(re.sub(_PATH, " ", request)))
        return Primed(text="\n\n".join(filter(None, (parts[0], lines))))
    for name in find_only_run(request, named):
        texts.pop(name, None)
    asked = not asks_for_change(request)
    short = {name: text for name, text in texts.items() if is_short(text, asked=asked and name.endswith(CODE))}
    words = find_words("\n".join((request, *short.values())))
    left = max_chars - len(parts[0])
    for name in sorted(named, key=lambda name: name not in short):
        if name not in texts:
            continue
        if name in short and len(show_whole(name, texts[name])) > left:
            short.pop(name)
            words = find_words("\n".join((request, *short.values())))
        part = show_whole(name, texts[name]) if name in short else show_excerpt(name, texts[name], request, words)
        part += number_columns(name, texts[name])
        if part and len(part) <= left:
            parts.append(part)
            left -= len(part)
            whole += [name] if name in short else []
    parts += find_broken_data(request, {name: texts[name] for name in whole})[:1]
    return Primed(text="\n\n".join(parts), whole=tuple(whole), meant=tuple(told))


def _find_move_command(request: str, names: Sequence[str], read: Callable[[str], str | None]) -> str:
    if not _MOVES.search(request):
        return ""
    from ollm.services.request_reading.moved_code import find_move_command

    return find_move_command(request, names, read)


def moves_files(request: str) -> bool:
    """Whether files are renamed, moved, copied or deleted and nothing else: then their text only leads astray."""
    return (
        re.match(
            rf"(?i)\s*(?:please\s+)?(?:rename|move|copy|delete|remove)\s+{FILE_NOUNS}{_PATH}(?![\w'/]|\s+(?:from|in)\b)",
            request,
        )
        is not None
    )


def renames(request: str) -> bool:
    """Whether one word takes the place of another: lines that hold it say more than whole files."""
    return (
        re.match(r"(?i)\s*(?:please\s+)?(?:rename\b|replace\b.*\b(?:every|all|everywhere)\b|change every\b)", request)
        is not None
    )


def find_only_run(request: str, named: Iterable[str]) -> list[str]:
    """Files that are named only as what to run."""

    def count(pattern: str) -> int:
        return len(re.findall(pattern, request))

    return [
        name
        for name in named
        if (ran := count(rf"(?i)\b(?:run|execute)\s+(?:python3?\s+|sh\s+|bash\s+|node\s+)?`?{re.escape(name)}"))
        and ran == count(re.escape(name))
    ]


def find_lines(texts: dict[str, str], words: Sequence[str]) -> str:
    """The lines that hold one of the words, as grep shows them."""
    found = [
        f"{name}:{number}:{line[:160]}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line) for word in words)
    ]
    more = [f"… and {len(found) - MAX_LINES} more lines"] if len(found) > MAX_LINES else []
    return "\n".join(("Lines:", *found[:MAX_LINES], *more)) if found else ""


def find_named(request: str, names: Iterable[str]) -> list[str]:
    """The files whose path or last name is in the request."""

    def is_mentioned(text: str) -> bool:
        return re.search(rf"(?<![\w./-]){re.escape(text)}(?![\w/-]|\.\w)", request) is not None

    return [name for name in names if is_mentioned(name) or is_mentioned(name.rpartition("/")[2])]


def is_short(text: str, *, asked: bool = False) -> bool:
    """Whether a file goes whole: code that is only asked about may be longer, nobody writes it again."""
    if asked:
        return len(text) <= MAX_ASKED_CHARS and text.count("\n") <= MAX_ASKED_LINES
    return len(text) <= MAX_WHOLE_CHARS and text.count("\n") <= MAX_WHOLE_LINES


def show_whole(name: str, text: str) -> str:
    return f"{name}:\n```\n{text.rstrip()}\n```"


def number_columns(name: str, text: str) -> str:
    """The columns of a table as awk numbers them: a small model counts them wrong."""
    head = text.partition("\n")[0].strip().split(",")
    named = len(head) > 1 and all(re.fullmatch(r"[A-Za-z_][\w -]*", column.strip()) for column in head)
    if not name.endswith(".csv") or not named or len(head) > MAX_COLUMNS:
        return ""
    return f"\nColumns: {', '.join(f'${number} {column.strip()}' for number, column in enumerate(head, 1))}"

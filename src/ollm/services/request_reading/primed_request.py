"""What goes with a request to a small model: the names of the project's files, and of those it names the text.

A short file goes whole; of a long one the definitions and lines that the request, or a short file it names, mentions.
Pure: names and texts in, one text out, the same for the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ollm.domain.struct import Data
from ollm.providers.text_calls.definitions import find_definitions
from ollm.services.request_reading.meant_files import find_led_to, find_meant, find_tiny_project

MAX_NAMES = 40
MAX_WHOLE_LINES = 50
MAX_WHOLE_CHARS = 3_200
MAX_EXCERPT_LINES = 60
MAX_DEFINITION_LINES = 45
MAX_LINES = 20  # lines shown for a word that is to become another
FIRST_HITS = 2  # of a word that is on more lines than `MAX_HITS`
MAX_HITS = 8  # lines a word may be on and still say where to look
CONTEXT_LINES = 3
MAX_COLUMNS = 20
_PATH = r"[\w.-]*(?:/[\w.-]+)*\.[A-Za-z]\w*"
_WORD = re.compile(r"#?[A-Za-z_][\w-]*[\w]|#\w{3,8}|\d+\.\d[\d.]*\d|\d{3,}")
STOP_WORDS = frozenset(
    [
        "the",
        "and",
        "that",
        "with",
        "from",
        "into",
        "this",
        "then",
        "file",
        "files",
        "line",
        "lines",
        "function",
        "class",
        "method",
        "value",
        "name",
        "run",
        "python",
        "which",
        "what",
        "when",
        "where",
        "there",
        "them",
        "they",
        "should",
        "have",
        "has",
        "does",
        "not",
        "are",
        "for",
        "its",
        "all",
        "every",
        "each",
        "add",
        "set",
        "change",
        "write",
        "print",
        "prints",
        "text",
        "folder",
        "script",
        "module",
        "section",
        "test",
        "tests",
        "test_",
        "number",
        "numbers",
        "constant",
        "parameter",
        "returns",
        "return",
        "called",
        "make",
        "import",
        "fails",
        "find",
        "bug",
        "fix",
        "use",
        "using",
        "how",
        "many",
        "out",
        "was",
        "were",
        "will",
        "would",
        "end",
        "new",
        "old",
        "only",
        "other",
    ]
)


_PAGES = (".md", ".rst", ".txt")  # shown first, for what is shown last is what a small model changes


class Primed(Data, frozen=True):
    """`text` goes behind the request; `whole` are the files the model has seen all of, `meant` those that the request
    is about without naming them."""

    text: str = ""
    whole: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()


def prime_request(request: str, names: Sequence[str], read: Callable[[str], str | None], max_chars: int) -> Primed:
    """Names and texts for this request, `max_chars` at most."""
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
    texts = {name: text for name in named if (text := read(name))}
    if renames(request) and not all(map(is_short, texts.values())):
        lines = find_lines(texts, find_words(re.sub(_PATH, " ", request)))
        return Primed(text="\n\n".join(filter(None, (parts[0], lines))))
    for name in find_only_run(request, named):
        texts.pop(name, None)
    short = {name: text for name, text in texts.items() if is_short(text)}
    words = find_words("\n".join((request, *short.values())))
    left = max_chars - len(parts[0])
    for name in sorted(named, key=lambda name: name not in short):
        if name not in texts:
            continue
        part = show_whole(name, texts[name]) if name in short else show_excerpt(name, texts[name], request, words)
        part += number_columns(name, texts[name])
        if part and len(part) <= left:
            parts.append(part)
            left -= len(part)
            whole += [name] if name in short else []
    return Primed(text="\n\n".join(parts), whole=tuple(whole), meant=tuple(told))


def moves_files(request: str) -> bool:
    """Whether files are renamed, moved, copied or deleted and nothing else: then their text only leads astray."""
    return (
        re.match(
            rf"(?i)\s*(?:please\s+)?(?:rename|move|copy|delete|remove)\s+(?:the\s+)?(?:files?\s+)?{_PATH}(?![\w'/]|\s+(?:from|in)\b)",
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


def is_short(text: str) -> bool:
    return len(text) <= MAX_WHOLE_CHARS and text.count("\n") <= MAX_WHOLE_LINES


def find_words(text: str) -> list[str]:
    """Words that may name something in a file, in their order."""
    found = (word for word in _WORD.findall(text) if len(word) > 2 and word.lower() not in STOP_WORDS)
    return list(dict.fromkeys(found))


def show_whole(name: str, text: str) -> str:
    return f"{name}:\n```\n{text.rstrip()}\n```"


def number_columns(name: str, text: str) -> str:
    """The columns of a table as awk numbers them: a small model counts them wrong."""
    head = text.partition("\n")[0].strip().split(",")
    named = len(head) > 1 and all(re.fullmatch(r"[A-Za-z_][\w -]*", column.strip()) for column in head)
    if not name.endswith(".csv") or not named or len(head) > MAX_COLUMNS:
        return ""
    return f"\nColumns: {', '.join(f'${number} {column.strip()}' for number, column in enumerate(head, 1))}"


def show_excerpt(name: str, text: str, request: str, words: Sequence[str]) -> str:
    """The parts of a long file that matter here, and how long it is."""
    lines = text.splitlines()
    spans = choose_spans(lines, find_words(request), words)
    shown: list[str] = []
    last = 0
    for start, end in merge_spans(spans):
        if len(shown) + end - start > MAX_EXCERPT_LINES:
            break
        shown += ["..."] if start > last and shown else []
        shown += lines[start:end]
        last = end
    if not shown:
        shown = [*lines[:3], "...", *lines[-20:]] if find_definitions(lines) else lines[:3]
    body = "\n".join(line[:240] for line in shown)
    return f"{name} is long ({len(lines)} lines). {'Parts of it' if spans else 'It begins'}:\n```\n{body}\n```"


def choose_spans(lines: list[str], asked: Sequence[str], words: Sequence[str]) -> list[tuple[int, int]]:
    """First the definitions that are named, then the lines with words that are rare in the file."""
    definitions = find_definitions(lines)
    spans = [
        (found.start, min(found.end, found.start + MAX_DEFINITION_LINES))
        for wanted in (asked, words)
        for found in definitions
        if found.name in wanted
    ]
    for word in asked if not spans else filter(is_identifier, asked):
        hits = [number for number, line in enumerate(lines) if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line)]
        if len(hits) > MAX_HITS:
            spans += [(hit, hit + 1) for hit in hits[:FIRST_HITS] if is_identifier(word)]
            continue
        for hit in hits:
            if not any(start <= hit < end for start, end in spans):
                spans.append((max(0, hit - CONTEXT_LINES), min(len(lines), hit + CONTEXT_LINES + 1)))
    return list(dict.fromkeys(spans))


def is_identifier(word: str) -> bool:
    return bool(re.search(r"[_\d#]|[a-z][A-Z]|^[A-Z]{3}", word)) and not word.endswith(("Error", "Exception"))


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged

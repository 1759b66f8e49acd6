"""How text is cut into words for searching, and how a hit is shown. What people type is literal, never syntax."""

from __future__ import annotations

import re
import zlib
from unicodedata import normalize

# Ideographs, kana and their extensions: each is a word of its own. Compiled by `re` when first used.
_ALONE = r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f])"
_WORD = r"\w"
_SEPARATOR = "\x1f"
MAX_WORDS = 64
HALF_WORD = 3  # from this length on a word also finds longer ones that begin with it
OPEN, CLOSE = "«", "»"
AROUND = 60
PACKED_FROM = 200


def spaced(text: str) -> str:
    """The text as the index is given it."""
    if text.isascii():
        return text
    return re.sub(_ALONE, rf"\1{_SEPARATOR}", text.encode("utf-8", "replace").decode())


def packed(text: str) -> str | bytes:
    """The text as it is stored: long ones compressed, so that the index stays smaller than what was said."""
    return text if len(text) < PACKED_FROM else zlib.compress(text.encode("utf-8", "replace"), 6)


def unpacked(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()


def question(text: str, *, halves: bool) -> str:
    """The FTS5 expression for what was typed: all words must be there; empty when there is no word in it.

    With `halves` a word also finds longer ones that begin with it.
    """
    words = [word for word in text.replace("\0", " ").split() if re.search(_WORD, word)][:MAX_WORDS]
    return " AND ".join(_quoted(word, halves) for word in words)


def _quoted(word: str, halves: bool) -> str:
    cut = spaced(word)
    ends_in_word = halves and cut[-1:].isalnum() and len(word) >= HALF_WORD
    return '"' + cut.replace('"', '""') + '"' + ("*" if ends_in_word else "")


def snippet(text: str, typed: str) -> str:
    """A piece of the text around the first hit, on one line, with the hits marked."""
    words = sorted(set(typed.split()), key=len, reverse=True)[:MAX_WORDS]
    pattern = "|".join(re.escape(folded(word)) for word in words)
    plain = folded(text)
    found = re.search(pattern, plain) if pattern else None
    if pattern and not found:
        pieces = [piece for word in words for piece in re.findall(r"\w+", folded(word))]
        pattern = "|".join(re.escape(piece) for piece in pieces)
        found = re.search(pattern, plain) if pattern else None
    if not found:
        return " ".join(text[: 2 * AROUND].split())
    start, end = max(0, found.start() - AROUND), min(len(text), found.end() + AROUND)
    marked, place = [], start
    for hit in re.finditer(pattern, plain[start:end]):
        marked += [text[place : start + hit.start()], OPEN, text[start + hit.start() : start + hit.end()], CLOSE]
        place = start + hit.end()
    marked.append(text[place:end])
    shown = " ".join("".join(marked).split())
    return ("…" if start else "") + shown + ("…" if end < len(text) else "")


def folded(text: str) -> str:
    """Lower case without accents, letter for letter, so that places stay the same."""
    if text.isascii():
        return text.lower()
    return "".join(_base(letter) for letter in text)


def _base(letter: str) -> str:
    lower = normalize("NFD", letter)[0].lower()
    return lower if len(lower) == 1 else letter

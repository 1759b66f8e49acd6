"""Split text into words for searching, and show hits. Typed text is literal, never syntax."""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import category, normalize

# Ideographs, kana and their extensions: each is a word of its own. Compiled by `re` when first used.
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_ALONE = rf"([{_IDEOGRAPHS}])"
# So are the characters of other scripts that are written without blanks, or that join words: Thai, Lao, Burmese, Khmer
# and Hangul.
UNSPACED = rf"[{_IDEOGRAPHS}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7af]"
_PRIVATE = r"[\ue000-\uf8ff]"  # what marks are made of
_WORD = r"\w"
_LETTERS = r"[^\W_]+"
_ENDING = rf"{_LETTERS}\Z"
_ASCII_LETTERS = "".join(chr(code) if chr(code).isalnum() else " " for code in range(128))
_SEPARATOR = "\x1f"
MAX_WORDS = 64
MAX_WORD_CHARS = 200
MIN_PREFIX_CHARS = 3  # from this length on a word also finds longer ones that begin with it
OPEN, CLOSE = "«", "»"
SNIPPET_CHARS = 60


class SearchWord(NamedTuple):
    """One typed word. The index may split it into several (a path, a name with dashes): `leading` and, if longer
    words that begin with the last of them count too, that last one as `ending`, folded."""

    typed: str
    leading: str
    ending: str

    @property
    def phrase(self) -> str:
        return quote_phrase(self.leading + self.ending)

    def make_phrase(self, ending: str) -> str:
        """Make the phrase with another last word."""
        return quote_phrase(self.leading + ending)

    def begins_in(self, text: str) -> bool:
        """Return True if a folded text contains it at the start of a word."""
        pattern = rf"(?<![^\W_]){re.escape(fold_text(self.typed))}" if self.typed[:1].isalnum() else None
        return bool(re.search(pattern, text)) if pattern else fold_text(self.typed) in text


def separate_words(text: str, alone: str = rf"({UNSPACED})") -> str:
    """Separate the characters of scripts without blanks, as the index stores them."""
    if text.isascii():
        return text
    clean = re.sub(_PRIVATE, " ", text.encode("utf-8", "replace").decode())
    for letter in set(clean):
        if not letter.isprintable() and category(letter) == "Cf":  # FTS5 takes some of them for letters
            clean = clean.replace(letter, " ")
    return re.sub(alone, rf"\1{_SEPARATOR}", clean)


def join_words(text: str) -> str:
    """Undo `separate_words`."""
    return text.replace(_SEPARATOR, "")


def split_words(text: str) -> list[str]:
    """Return each word of a text once, in lower case, unordered; very long words are cut into overlapping pieces."""
    if text.isascii():  # four times as quick
        found = set(text.translate(_ASCII_LETTERS).lower().split())
    else:
        found = set(re.findall(_LETTERS, separate_words(text, _ALONE).lower()))
    if any(len(word) > MAX_WORD_CHARS for word in found):
        found = {piece for word in found for piece in _cut_word(word)}
    return list(found)


def _cut_word(word: str) -> list[str]:
    """Cut a word into pieces, such that every part of half a piece's length lies in one of them."""
    step = MAX_WORD_CHARS // 2
    return [word[place : place + MAX_WORD_CHARS] for place in range(0, max(len(word) - step, 1), step)]


def find_part(text: str) -> str:
    """Make a LIKE pattern for the words, each between blanks, of any text that contains this one. It uses the
    longest word, which may be part of a longer one at the start or end of the text."""
    cut = separate_words(text, _ALONE).lower()
    longest = max(re.finditer(_LETTERS, cut), key=lambda found: len(found[0]), default=None)
    if longest is None:
        return "%"
    begins, ends = longest.start() > 0, longest.end() < len(cut)
    part = longest[0][: MAX_WORD_CHARS // 2]
    return f"%{' ' * begins}{part}{' ' * (ends and part == longest[0])}%"


def parse_words(text: str) -> list[SearchWord]:
    """Parse the words to find, or return [] if there are only signs."""
    typed = [word for word in text.replace("\0", " ").split() if re.search(_WORD, word)][:MAX_WORDS]
    return [_parse_word(word) for word in typed]


def _parse_word(typed: str) -> SearchWord:
    cut = separate_words(typed)
    found = re.search(_ENDING, cut)
    if not found or len(typed) < MIN_PREFIX_CHARS:
        return SearchWord(typed, cut, "")
    return SearchWord(typed, cut[: found.start()], fold_text(found[0]))


def has_digit(word: str) -> bool:
    """Return True for a word with a digit: an identifier, which no shorter or similar word can stand for."""
    return any(map(str.isdigit, word))


def quote_phrase(words: str) -> str:
    """Make an FTS5 phrase of these words in sequence."""
    return '"' + words.replace("\0", " ").replace('"', '""') + '"'


def make_snippet(text: str, typed: str) -> str:
    """Return the text around the first hit, on one line, with the hits marked."""
    words = sorted(set(typed.split()), key=len, reverse=True)[:MAX_WORDS]
    pattern = "|".join(re.escape(fold_text(word)) for word in words)
    plain = fold_text(text)
    found = re.search(pattern, plain) if pattern else None
    if pattern and not found:
        parts = [part for word in words for part in re.findall(r"\w+", fold_text(word))]
        pattern = "|".join(re.escape(part) for part in parts)
        found = re.search(pattern, plain) if pattern else None
    if not found:
        return " ".join(text[: 2 * SNIPPET_CHARS].split())
    start, end = max(0, found.start() - SNIPPET_CHARS), min(len(text), found.end() + SNIPPET_CHARS)
    marked, place = [], start
    for hit in re.finditer(pattern, plain[start:end]):
        marked += [text[place : start + hit.start()], OPEN, text[start + hit.start() : start + hit.end()], CLOSE]
        place = start + hit.end()
    marked.append(text[place:end])
    shown = " ".join("".join(marked).split())
    return ("…" if start else "") + shown + ("…" if end < len(text) else "")


def fold_text(text: str) -> str:
    """Convert to lower case without accents, letter for letter, so that positions stay the same."""
    if text.isascii():
        return text.lower()
    return "".join(_fold_letter(letter) for letter in text)


def _fold_letter(letter: str) -> str:
    lower = normalize("NFD", letter)[0].lower()
    return lower if len(lower) == 1 else letter

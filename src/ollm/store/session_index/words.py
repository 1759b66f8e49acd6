"""Fold text into words for searching: texts and queries alike. Typed text is literal, never syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from operator import eq
from typing import NamedTuple
from unicodedata import category, combining, normalize

# Ideographs, kana and their extensions: each is a word of its own. Compiled by `re` when first used.
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_ALONE = rf"([{_IDEOGRAPHS}])"
# So are the characters of other scripts that are written without blanks, or that join words: Thai, Lao, Burmese, Khmer
# and Hangul.
_UNSPACED = rf"{_IDEOGRAPHS}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7af"
UNSPACED = f"[{_UNSPACED}]"
_CHUNK = rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+"
# Combining classes of accents, points and hamza. The others belong to letters: vowel signs, virama, voicing marks.
_ACCENT_CLASSES = frozenset({1, *range(10, 37), *range(200, 241)})
_VARIANTS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
_LETTERS = r"[^\W_]+"
_ASCII_LETTERS = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
_SEPARATOR = "\x1f"
MAX_WORDS = 64
MAX_WORD_CHARS = 200
MIN_PREFIX_CHARS = 3  # from this length on a word also finds longer ones that begin with it


class SearchWord(NamedTuple):
    """One typed word, folded. The index may split it into several (a path, a name with dashes): `leading` and, if
    longer words that begin with the last of them count too, that last one as `ending`."""

    leading: str
    ending: str

    @property
    def phrase(self) -> str:
        return self.make_phrase(self.ending)

    def make_phrase(self, ending: str) -> str:
        """Make the phrase with another last word."""
        return quote_phrase(f"{self.leading} {ending}")

    def begins_in(self, text: str) -> bool:
        """Return True if a folded text contains it at the start of a word."""
        words = map(re.escape, f"{self.leading} {self.ending}".split())
        return bool(re.search(r"(?<!\S)" + r"\s+".join(words), text))


def fold_text(text: str) -> str:
    """Fold to lower case without accents and compatibility forms, with a blank for each sign. Forms of one word in
    either case, composed or decomposed, are folded to the same."""
    if text.isascii():
        return text.translate(_ASCII_LETTERS)
    plain = _map_letters(normalize("NFKD", _map_letters(text, _blank_sign).upper()), _drop_accent)
    return _map_letters(normalize("NFC", plain.casefold()), _blank_sign)


def fold_words(text: str) -> str:
    """Fold a text into words separated by blanks, as the index stores them."""
    return _map_letters(fold_text(text), _separate_letter)


def find_spans(text: str) -> list[tuple[int, int]]:
    """Find the place in a text of each word that `fold_words` makes of it."""
    chunks = re.finditer(r"\S+" if text.isascii() else _CHUNK, _map_letters(text, _blank_sign))
    return [chunk.span() for chunk in chunks for _ in fold_words(chunk[0]).split()]


def _map_letters(text: str, change: Callable[[str], str]) -> str:
    table = {letter: change(letter) for letter in set(text)}
    return text if all(map(eq, table, table.values())) else "".join(map(table.__getitem__, text))


@cache
def _blank_sign(letter: str) -> str:
    return letter if letter.isalnum() or category(letter).startswith("M") else " "


@cache
def _drop_accent(letter: str) -> str:
    accent = combining(letter) in _ACCENT_CLASSES or category(letter) == "Me" or re.match(_VARIANTS, letter)
    return "" if accent else letter


@cache
def _separate_letter(letter: str) -> str:
    return f" {letter} " if re.match(UNSPACED, letter) else letter


def split_words(text: str) -> list[str]:
    """Return each word of a text once, in lower case, unordered; very long words are cut into overlapping pieces."""
    if text.isascii():  # four times as quick
        found = set(text.translate(_ASCII_LETTERS).split())
    else:
        found = set(re.findall(_LETTERS, _separate_ideographs(text)))
    if any(len(word) > MAX_WORD_CHARS for word in found):
        found = {piece for word in found for piece in _cut_word(word)}
    return list(found)


def _cut_word(word: str) -> list[str]:
    """Cut a word into pieces, such that every part of half a piece's length lies in one of them."""
    step = MAX_WORD_CHARS // 2
    return [word[place : place + MAX_WORD_CHARS] for place in range(0, max(len(word) - step, 1), step)]


def _separate_ideographs(text: str) -> str:
    return re.sub(_ALONE, rf"\1{_SEPARATOR}", text).lower()


def find_part(text: str) -> str:
    """Make a LIKE pattern for the words, each between blanks, of any text that contains this one. It uses the
    longest word, which may be part of a longer one at the start or end of the text."""
    cut = _separate_ideographs(text)
    longest = max(re.finditer(_LETTERS, cut), key=lambda found: len(found[0]), default=None)
    if longest is None:
        return "%"
    begins, ends = longest.start() > 0, longest.end() < len(cut)
    part = longest[0][: MAX_WORD_CHARS // 2]
    return f"%{' ' * begins}{part}{' ' * (ends and part == longest[0])}%"


def parse_words(text: str) -> list[SearchWord]:
    """Parse the words to find, or return [] if there are only signs."""
    parsed = ((typed, fold_words(typed).split()) for typed in text.split())
    return [_parse_word(typed, words) for typed, words in parsed if words][:MAX_WORDS]


def _parse_word(typed: str, words: list[str]) -> SearchWord:
    *leading, ending = words
    if len(" ".join(words)) < MIN_PREFIX_CHARS or _blank_sign(typed[-1]) == " " or re.match(UNSPACED, ending):
        return SearchWord(" ".join(words), "")
    return SearchWord(" ".join(leading), ending)


def has_digit(word: str) -> bool:
    """Return True for a word with a digit: an identifier, which no shorter or similar word can stand for."""
    return any(map(str.isdigit, word))


def quote_phrase(words: str) -> str:
    """Make an FTS5 phrase of these words in sequence."""
    return '"' + words.replace("\0", " ").replace('"', '""') + '"'

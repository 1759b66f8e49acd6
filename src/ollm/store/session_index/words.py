"""Fold text into words for searching: texts and queries alike. Typed text is literal, never syntax.

Besides its words, a text is indexed by marks, words that cannot be typed: its role, its session, and its signs.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple
from unicodedata import bidirectional, category, combining, lookup, name, normalize

# Ideographs, kana and their extensions: each is a word of its own. Compiled by `re` when first used.
IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
# So are the characters of other scripts that are written without blanks, or that join words: Thai, Lao, Burmese, Khmer
# and Hangul.
UNSPACED = rf"[{IDEOGRAPHS}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7af]"
# Combining classes of accents, points and hamza. The others belong to letters: vowel signs, virama, voicing marks.
_ACCENT_CLASSES = frozenset({1, *range(10, 37), *range(200, 241)})
_VARIANTS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
ASCII_LETTERS = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
_ASCII_SYMBOLS = "#$%+<=>|~"
_ASCII_WORDS = "".join(chr(code) if chr(code) in _ASCII_SYMBOLS else ASCII_LETTERS[code] for code in range(128))
_SEPARATOR = "\x1f"
ROLES = ("user", "assistant", "system", "tool")
MIN_PACKED_CHARS = 200
_ROLE, _SESSION, _SIGN = "\ue000", "\ue001", 0xE100
_SIGNS = 0x700
_EVERYWHERE = frozenset(".,'-_ \n\t\r")  # These are in so many texts that a mark would narrow nothing down.
MAX_WORDS = 64
MIN_PREFIX_CHARS = 3  # A word of this length also finds words that begin with it.


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
        return quote_phrase(f"{self.leading} {ending}".strip())

    def begins_in(self, text: str) -> bool:
        """Return True if a folded text contains it at the start of a word."""
        words = map(re.escape, f"{self.leading} {self.ending}".split())
        return bool(re.search(r"(?<!\S)" + r"\s+".join(words), text))


class _FoldTable(dict[int, str]):
    """The folded form of each character, computed on first use; a character that `is_word` gets blanks around it."""

    def __init__(self, is_word: Callable[[str], bool]) -> None:
        self._is_word = is_word

    def __missing__(self, code: int) -> str:
        folded = (f" {one} " if self._is_word(one) else one for one in _fold_letter(chr(code)))
        self[code] = "".join(folded)
        return self[code]


def fold_text(text: str) -> str:
    """Fold to lower case without accents and compatibility forms, with a blank for each sign and blanks around each
    symbol. Forms of one word in either case, composed or decomposed, are folded to the same."""
    return normalize("NFKC", text).translate(_FOLDED_TEXT)


def fold_words(text: str) -> str:
    """Fold a text into words separated by blanks, as the index stores them. Each symbol is a word."""
    if not text.isascii():
        return normalize("NFKC", text).translate(_FOLDED_WORDS)
    text = text.translate(_ASCII_WORDS)
    for symbol in _ASCII_SYMBOLS:
        text = text.replace(symbol, f" {symbol} ")
    return text


def find_spans(text: str) -> list[tuple[int, int]]:
    """Find the place in a text of each word that `fold_words` makes of it."""
    chunks = re.finditer(rf"{_SEPARATOR}|[^\s{_SEPARATOR}]+", "".join(map(_outline_letter, text)))
    return [chunk.span() for chunk in chunks for _ in fold_words(text[chunk.start() : chunk.end()]).split()]


def is_punctuation(text: str) -> bool:
    """Return True if only the signs of a text can be found, as it holds no letter and signs that are not words."""
    return not any(map(str.isalnum, text)) and any(not letter.isspace() and is_separator(letter) for letter in text)


def is_picture(letter: str) -> bool:
    """Return True for a symbol that stands for a thing, as an emoji does, not for an operation, a unit or a sum."""
    return category(letter) == "So"


@cache
def is_symbol(letter: str) -> bool:
    """Return True for a symbol, such as an emoji, a plus or a number sign, as opposed to punctuation."""
    return category(letter) in ("Sm", "Sc", "So") or bidirectional(letter) == "ET"


@cache
def is_separator(letter: str) -> bool:
    return not (letter.isalnum() or category(letter).startswith("M") or is_symbol(letter))


def _fold_letter(letter: str) -> str:
    if is_separator(letter):
        return " "
    plain = "".join(map(_drop_accent, normalize("NFKD", letter.upper())))
    return "".join(" " if is_separator(one) else one for one in normalize("NFC", plain.casefold()))


def _drop_accent(letter: str) -> str:
    if combining(letter) in _ACCENT_CLASSES or category(letter) == "Me" or re.match(_VARIANTS, letter):
        return ""
    base, stroke, _ = name(letter, "").partition(" WITH ")  # No decomposition removes a stroke or a hook.
    try:
        return lookup(base) if stroke and letter.isalpha() else letter
    except KeyError:
        return letter


@cache
def _is_alone(letter: str) -> bool:
    return is_symbol(letter) or re.match(UNSPACED, letter) is not None


@cache
def _outline_letter(letter: str) -> str:
    return _SEPARATOR if _is_alone(letter) else " " if is_separator(letter) else "x"


_FOLDED_TEXT, _FOLDED_WORDS = _FoldTable(is_symbol), _FoldTable(_is_alone)


def parse_words(text: str) -> list[SearchWord]:
    """Parse the words to find, or return [] if there is only punctuation."""
    parsed = ((typed, fold_words(typed).split()) for typed in text.split())
    return [_parse_word(typed, words) for typed, words in parsed if words][:MAX_WORDS]


def _parse_word(typed: str, words: list[str]) -> SearchWord:
    *leading, ending = words
    if len(" ".join(words)) < MIN_PREFIX_CHARS or is_separator(typed[-1]) or _is_alone(ending[0]):
        return SearchWord(" ".join(words), "")
    return SearchWord(" ".join(leading), ending)


def has_digit(word: str) -> bool:
    """Return True for a word with a digit: an identifier, which no shorter or similar word can stand for."""
    return any(map(str.isdigit, word))


def quote_phrase(words: str) -> str:
    """Make an FTS5 phrase of these words in sequence."""
    return '"' + words.replace("\0", " ").replace('"', '""') + '"'


def pack_text(text: str) -> str | bytes:
    """Encode a text for storage. Long ones are compressed, so that the index stays smaller than the sessions."""
    return text if len(text) < MIN_PACKED_CHARS else zlib.compress(text.encode("utf-8", "replace"), 6)


def unpack_text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()


def make_role_mark(role: str) -> str:
    return _ROLE + role


def make_session_mark(session: int) -> str:
    return f"{_SESSION}{session}"


def make_sign_marks(text: str) -> list[str]:
    """Make a mark for each sign in the text that is not a word by itself."""
    signs = {letter for letter in set(text) - _EVERYWHERE if is_separator(letter) and not letter.isspace()}
    return sorted({chr(_SIGN + ord(sign) % _SIGNS) for sign in signs})


def make_index_text(text: str, role: str, session: int) -> str:
    """Make the text for the word index, with its marks."""
    return " ".join((fold_words(text), make_role_mark(role), make_session_mark(session), *make_sign_marks(text)))

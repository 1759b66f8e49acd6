"""A command as a person must see it before they say yes: all of it, with nothing hidden in it."""

from __future__ import annotations

import re
import unicodedata

_BLANKS = re.compile(r"[ \t]{9,}")
_EMPTY_LINES = re.compile(r"\n(?:[ \t]*\n){3,}")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")


def is_hidden(character: str) -> bool:
    """Whether a character is not seen, or changes how others are seen: controls, bidi, zero-width, odd blanks."""
    if character in "\n\t" or " " <= character <= "~":
        return False
    category = unicodedata.category(character)
    if category in _HIDDEN_CATEGORIES or character in _FILLERS:
        return True
    return category == "Zs" or 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF


def find_hidden_characters(text: str) -> list[str]:
    """The names of the hidden characters in a text, each once."""
    return list(dict.fromkeys(_name_code_point(character) for character in text if is_hidden(character)))


def render_command(text: str) -> str:
    """The whole text with hidden characters written as ⟨U+202E⟩ and long runs of blanks folded to ⟨120 blanks⟩."""
    shown = text if text.isascii() and text.isprintable() else "".join(map(_render_character, text))
    folded = _BLANKS.sub(lambda match: f" ⟨{len(match.group())} blanks⟩ ", shown)
    return _EMPTY_LINES.sub(lambda match: f"\n⟨{match.group().count(chr(10)) - 1} empty lines⟩\n", folded)


def _render_character(character: str) -> str:
    return f"⟨{_name_code_point(character)}⟩" if is_hidden(character) else character


def _name_code_point(character: str) -> str:
    return f"U+{ord(character):04X}"

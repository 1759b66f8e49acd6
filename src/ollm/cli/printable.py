"""Text from a model or a file, as it may stand on a terminal."""

from __future__ import annotations

_MAX_REPLACED_CHARACTERS = 64


def make_printable(text: str) -> str:
    """Text from a model or a file as one harmless line: control, bidi and invisible characters are shown as escapes."""
    if text.isprintable():
        return text
    odd = [letter for letter in set(text) if not letter.isprintable()]
    if len(odd) > _MAX_REPLACED_CHARACTERS:
        return text.translate({ord(letter): _escape(letter) for letter in odd})
    for letter in odd:  # quicker by far where there is much of it, such as a hole of zeros in a damaged file
        text = text.replace(letter, _escape(letter))
    return text


def _escape(letter: str) -> str:
    shown = {"\n": "⏎", "\t": " "}.get(letter)
    return shown if shown is not None else letter.encode("unicode_escape", "surrogatepass").decode()

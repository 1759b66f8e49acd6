"""Text from a model or a file, as it may stand on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text from a model or a file as one harmless line: control, bidi and invisible characters are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    shown = {"\n": "⏎", "\t": " "}.get(letter)
    return shown if shown is not None else letter.encode("unicode_escape", "surrogatepass").decode()

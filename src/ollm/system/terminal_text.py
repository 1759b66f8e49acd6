"""Makes text from models, servers, files and people safe for a terminal: the single definition of characters that
control it, change text direction or are invisible, and the ways to remove or show them."""

from __future__ import annotations

from collections.abc import Callable

from ollm.domain.lazy import compile_late

_MAX_REPLACED_CHARACTERS = 64
_MIN_LINE_CELLS = 20
_FORMAT_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_HIDDEN_CATEGORIES = _FORMAT_CATEGORIES | {"Co", "Cn"}
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")
JOINERS = ("\u200c", "\u200d")
_JOINED = compile_late(r"((?<=[^\x00-\x7f\u2000-\u206f])[\u200c\u200d](?=[^\x00-\x7f\u2000-\u206f]))")
_LONE_JOINER = compile_late(r"(?<![^\x00-\x7f\u2000-\u206f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u2000-\u206f])")
_BLANKS = compile_late(r"[ \t]{9,}")
_EMPTY_LINES = compile_late(r"\n(?:[ \t]*\n){3,}")


def wrap_words(text: str, indent: str = "") -> str:
    """Wrap each line between words to the width of the terminal, with `indent` before continued lines."""
    import shutil
    import textwrap

    width = max(_MIN_LINE_CELLS, shutil.get_terminal_size().columns - 1)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(wrapper.fill, text.splitlines()))


def strip_controls(text: str) -> str:
    """Clean text for models, editors and hooks: remove characters that control a terminal, change text direction or are
    invisible. Line ends, tabs and the joiners of letters and emoji stay."""
    return text if text.isprintable() else _replace_formats(text, "\n\t", lambda _: "")


def flatten_text(text: str) -> str:
    """Return one line: every run of blanks, line ends and unprintable characters becomes one blank."""
    return " ".join((text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)).split())


def make_printable(text: str) -> str:
    """Return one line with nothing removed: control, bidi and invisible characters are shown as escapes."""
    if text.isprintable():
        return text
    return replace_letters(text, [letter for letter in set(text) if not letter.isprintable()], _escape)


def replace_letters(text: str, letters: list[str], escape: Callable[[str], str]) -> str:
    """Replace these letters, which a text has, each by what `escape` returns for it."""
    if len(letters) > _MAX_REPLACED_CHARACTERS:
        return text.translate({ord(letter): escape(letter) for letter in letters})
    for letter in letters:  # This is much faster for a long run of one letter.
        text = text.replace(letter, escape(letter))
    return text


def _escape(letter: str) -> str:
    shown = {"\n": "⏎", "\t": " "}.get(letter)
    return shown if shown is not None else letter.encode("unicode_escape", "surrogatepass").decode()


def clean_lines(text: str, tabs: str = "    ") -> str:
    """Return lines with all other control and invisible characters shown as escapes; tabs become blanks."""
    if text.isprintable():
        return text
    return "\n".join(tabs.join(map(make_printable, line.split("\t"))) for line in text.split("\n"))


def clean_prose(text: str, tabs: str = "    ") -> str:
    """Clean text like `clean_lines`, but keep joined letters and emoji: 👩‍🔬, or a word in Persian. Never use it for
    text that can be run or written."""
    return "".join(piece if piece in JOINERS else clean_lines(piece, tabs) for piece in _JOINED.split(text))


def escape_controls(text: str) -> str:
    """Escape characters that control a terminal, change text direction or are invisible, in texts of any size. Line
    ends, tabs and the joiners of letters and emoji stay."""
    return text if text.isprintable() else _replace_formats(text, "\n\t", _escape)


def escape_json(text: str) -> str:
    """Escape direction marks and invisible characters in a JSON document: its meaning is the same, and a person who
    reads it sees them."""
    return text if text.isascii() else _replace_formats(text, "\n\r\t", _escape_json_character)


def _replace_formats(text: str, kept: str, escape: Callable[[str], str]) -> str:
    """Replace every control, format character and unusual line end, found by its category."""
    odd = [letter for letter in set(text) if not letter.isprintable() and letter not in kept]
    if not odd:
        return text
    import unicodedata

    found = [letter for letter in odd if unicodedata.category(letter) in _FORMAT_CATEGORIES]
    if any(letter in JOINERS for letter in found):
        text = _LONE_JOINER.sub(lambda match: escape(match[0]), text)
        found = [letter for letter in found if letter not in JOINERS]
    return replace_letters(text, found, escape)


def _escape_json_character(character: str) -> str:
    import json

    return json.dumps(character)[1:-1]


def is_hidden(character: str) -> bool:
    """Return True for invisible characters and those that change how others look: controls, bidi, zero-width, unusual
    blanks."""
    if character in "\n\t" or " " <= character <= "~":
        return False
    import unicodedata

    category = unicodedata.category(character)
    if category in _HIDDEN_CATEGORIES or character in _FILLERS:
        return True
    return category == "Zs" or 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF


def find_hidden_characters(text: str) -> list[str]:
    """Return the names of the hidden characters in a text, each once."""
    return list(dict.fromkeys(_name_code_point(character) for character in text if is_hidden(character)))


def render_command(text: str) -> str:
    """Render a command for approval: all of it, with hidden characters written as ⟨U+202E⟩ and long runs of blanks
    folded to ⟨120 blanks⟩."""
    shown = (
        text
        if text.isascii() and text.isprintable()
        else "".join(f"⟨{_name_code_point(one)}⟩" if is_hidden(one) else one for one in text)
    )
    folded = _BLANKS.sub(lambda match: f" ⟨{len(match.group())} blanks⟩ ", shown)
    return _EMPTY_LINES.sub(lambda match: f"\n⟨{match.group().count(chr(10)) - 1} empty lines⟩\n", folded)


def _name_code_point(character: str) -> str:
    return f"U+{ord(character):04X}"

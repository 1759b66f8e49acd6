"""What is assigned to a name that says secret: `NAME=value`, `name: value`, `"name": "value"`, `--name value`, XML.

Code is full of such names, so the value decides too: calls, attributes, types, placeholders and prose are left alone.
Names are found by a keyword in them and read outwards for a bounded length, so the work is linear in the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ollm.services.redaction import MARK
from ollm.services.redaction.names import SECRET_WORDS, Family, family_of, words_of

_KEYWORD = re.compile(r"pass|pwd|secret|token|key|cred|auth|cookie|jwt|_pw|sess|sig|_pat|bearer", re.IGNORECASE)
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_NAME_REST = re.compile(r"[A-Za-z0-9_\-.]{0,64}")
_SEPARATOR = re.compile(
    r"""(?P<close>\\?["'])?\]?(?P<separator>[ \t]{0,8}(?:=>|:=|=(?![=~>])|:(?![:=]))[ \t]{0,8})"""
    r"""(?:[A-Za-z_][\w.\[\]|, ]{0,40}?[ \t]{0,4}=[ \t]{0,4}(?=["']))?"""
)
_SPACE = re.compile(r"[ \t]{1,4}(?=[\"'\w])")
_TAG = re.compile(r">(?=[^<\s])")
_QUOTED = re.compile(r"""(?:[bfruBFRU]{0,2})(?P<quote>\\?["'`])(?P<value>(?:(?!(?P=quote))(?:\\.|[^\n]))*)""")
_LINE_VALUE = re.compile(r"""[^\s"'`]+""")
_INLINE_VALUE = re.compile(r"""[^\s"'`,;&|<>(){}\[\]]+""")
_TAG_VALUE = re.compile(r"[^<\n]{1,4096}")
_LINE_START = re.compile(r"[ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|[+>#]+[ \t]*)?[\"']?")
_PLACEHOLDER = re.compile(
    r"[$<{%\[(].*|[*xX.•_\-]+|\.{3}|.*\*{3,}.*|(?i:your|my|the|some|changeme|example)[\-_ ].*|.*\[redacted\].*"
)
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+[;,]?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*[;,:.?!]*")
_NUMBER = re.compile(r"-?[0-9][0-9_.,]*%?[;,]?")
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_\-.~]{12,}")
_TYPES = (
    "none null nil undefined true false yes no on off string str text int integer number bool boolean bytes any object"
)
_TYPES += " dict list union callable buffer promise record void never function optional sha256 sha1 md5 bearer basic"
_STATES = (
    "required missing empty unset set hidden invalid incorrect wrong expired valid unknown default prompt ask stdin"
)
_STATES += " interactive disabled enabled file env auto input path type enter field"
_PROSE = frozenset(
    ["is", "are", "was", "be", "must", "should", "the", "a", "an", "for", "of", "from", "to", "and", "or"]
)
_PROSE |= frozenset(["with", "not", "your", "this", "that", "has", "have", "can", "in", "if"])
_CODE = frozenset(["await", "new", "lambda", "async", "yield", "return", "typeof", "this", "self"])
_LITERALS = _PROSE | _CODE | frozenset(f"{_TYPES} {_STATES}".split())


class Place(NamedTuple):
    """Where a value stands: behind which name, how tightly, whether the name begins its line or follows `{` or `,`."""

    name: str
    family: Family
    tight: bool
    colon: bool
    own_line: bool
    listed: bool


def without_assigned(text: str) -> str:
    pieces: list[str] = []
    position = 0
    for keyword in _KEYWORD.finditer(text):
        if keyword.start() < position:
            continue
        span = _secret_span(text, keyword, position)
        if span is not None:
            pieces += [text[position : span[0]], MARK]
            position = span[1]
    return "".join([*pieces, text[position:]]) if pieces else text


def _secret_span(text: str, keyword: re.Match[str], floor: int) -> tuple[int, int] | None:
    start, end = _name_around(text, keyword, floor)
    name = text[start:end]
    family = family_of(name.strip("-."))
    if family is Family.NONE:
        return None
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return _without_separator(text, name, family, start, end)
    before = text[max(text.rfind("\n", 0, start) + 1, start - 80) : start]
    sign = separator["separator"]
    own_line = _LINE_START.fullmatch(before) is not None
    place = Place(name, family, sign == "=", ":" in sign, own_line, before.rstrip().endswith(("{", ",")))
    return _value_span(text, separator.end(), place)


def _name_around(text: str, keyword: re.Match[str], floor: int) -> tuple[int, int]:
    before = text[max(floor, keyword.start() - 64) : keyword.start()]
    start = keyword.start() - (len(before) - len(before.rstrip(_NAME_CHARACTERS)))
    rest = _NAME_REST.match(text, keyword.end())
    return start, rest.end() if rest else keyword.end()


def _without_separator(text: str, name: str, family: Family, start: int, end: int) -> tuple[int, int] | None:
    """`--name value`, `PASSWORD 'value'` and `<name>value</name>`."""
    if start > 0 and text[start - 1] == "<" and (tag := _TAG.match(text, end)):
        value = _TAG_VALUE.match(text, tag.end())
        return (
            value.span()
            if value and _is_secret(value[0], Place(name, family, True, False, True, False), quoted=True)
            else None
        )
    space = _SPACE.match(text, end)
    if space is None:
        return None
    is_option, is_quoted = name.startswith("-"), text[space.end()] in "\"'"
    if is_option or (is_quoted and family is Family.PASSWORD and " " not in text[space.end() : space.end() + 2]):
        return _spaced_value(text, space.end(), Place(name, family, False, False, False, False))
    return None


def _spaced_value(text: str, start: int, place: Place) -> tuple[int, int] | None:
    span = _value_span(text, start, place)
    return None if span is None or " " in text[span[0] : span[1]] else span


def _value_span(text: str, start: int, place: Place) -> tuple[int, int] | None:
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        return quoted.span("value") if _is_secret(quoted["value"], place, quoted=True) else None
    pattern = _LINE_VALUE if place.own_line and (place.tight or place.colon) else _INLINE_VALUE
    found = pattern.match(text, start)
    if found is None or text[found.end() : found.end() + 1] in ("(", "["):
        return None
    value = found[0]
    if place.name.isupper() and place.tight and place.own_line:
        return found.span() if not _PLACEHOLDER.fullmatch(value) else None
    return _trimmed(found) if not _is_code(value) and _is_secret(value, place, quoted=False) else None


def _trimmed(found: re.Match[str]) -> tuple[int, int]:
    return found.start(), found.start() + len(found[0].rstrip(",;)}]") or found[0])


def _is_code(value: str) -> bool:
    """Attributes, calls and names that themselves say secret: the value is elsewhere."""
    if "(" in value or _ATTRIBUTE.fullmatch(value):
        return True
    return _IDENTIFIER.fullmatch(value) is not None and not SECRET_WORDS.isdisjoint(words_of(value))


def _is_secret(value: str, place: Place, *, quoted: bool) -> bool:
    bare = value.strip(" ,;.")
    if not bare or _PLACEHOLDER.fullmatch(value) or bare.lower() in _LITERALS:
        return False
    if place.family is Family.WEAK:
        return _RANDOM.fullmatch(value) is not None
    if _NUMBER.fullmatch(value):
        return len(value) >= (4 if place.family is Family.PASSWORD else 8)
    if quoted:
        return not _is_prose(value)
    return place.tight or not _IDENTIFIER.fullmatch(value) or _is_configured(value, place)


def _is_configured(value: str, place: Place) -> bool:
    """A word alone behind a colon: a password in a configuration file, unless it may as well be a type."""
    if not place.colon:
        return False
    if place.family is Family.PASSWORD:
        return place.own_line or place.listed
    return place.own_line and len(value) >= 8 and value.islower()


def _is_prose(value: str) -> bool:
    words = value.lower().split()
    return len(words) > 2 and not _PROSE.isdisjoint(words)

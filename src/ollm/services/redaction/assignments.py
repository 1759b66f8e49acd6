"""Values assigned to a secret name: `NAME=value`, `name: value`, `"name": "value"`, `--name value`, XML.

Names are judged by whole words: `max_tokens`, `author` and `public_key` are not secret. Code is full of such names, so
the value decides too: calls, attributes, types, placeholders and prose are left alone. Names are found by a keyword in
them and extended in both directions for a bounded length, so the work is linear in the text.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ollm.services.redaction.patterns import MARK, get_pattern, get_words

MIN_SIGNATURE_CHARS = 6
NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."


class NameSensitivity(IntEnum):
    """Sensitivity of a name. The value of a weak one is secret only if it looks like a secret."""

    NONE = 0
    WEAK = 1
    SECRET = 2
    PASSWORD = 3


def split_words(name: str) -> tuple[str, ...]:
    """Split a name in any case style into lower-case words."""
    return tuple(word.lower() for word in get_pattern("name_words").findall(name))


@lru_cache(maxsize=4096)
def classify_name(name: str) -> NameSensitivity:
    """Classify a name (of a variable, field, option or header) by the sensitivity of its value."""
    words = split_words(name)
    if not words or words[-1] in get_words("about") or words[0] in get_words("first"):
        return NameSensitivity.NONE
    is_short = words == ("pwd",) or (len(words) > 1 and words[-1] in ("pass", "pwd", "pw"))
    if is_short or _has_word(words, "passwords"):
        return NameSensitivity.PASSWORD
    if _has_word(words, "secrets") or _is_key(words, name):
        return NameSensitivity.SECRET
    return NameSensitivity.WEAK if words[-1] in get_words("weak") else NameSensitivity.NONE


def _has_word(words: tuple[str, ...], kind: str) -> bool:
    """Return True if one of the words is of this kind, or the last one ends with one that is written joined."""
    return not get_words(kind).isdisjoint(words) or words[-1].endswith(tuple(get_words(f"joined_{kind}")))


def _is_key(words: tuple[str, ...], name: str) -> bool:
    """Return True for secret keys. An upper-case variable name counts unless it is known to be harmless."""
    if "key" not in words[1:]:
        return False
    kind = words[words.index("key", 1) - 1]
    is_variable = name.isupper() and words[-1] == "key"
    return kind in get_words("key_kinds") or (is_variable and kind not in get_words("harmless_keys"))


class AssignmentContext(NamedTuple):
    """Context of a value: its name, how tightly it follows, and the text before the name on its line: empty
    (`own_line`), `{` or `,` (`listed`), `?` or `&` (`query`)."""

    name: str
    family: NameSensitivity
    tight: bool = False
    colon: bool = False
    own_line: bool = False
    listed: bool = False
    query: bool = False

    @property
    def is_header(self) -> bool:
        return self.colon and "-" in self.name.strip("-")

    @property
    def is_signature(self) -> bool:
        return "sig" in self.name.lower()

    @property
    def suits_weak_names(self) -> bool:
        """False for signatures outside a URL, which are not secret."""
        return self.query or not self.is_signature or "amz" in self.name.lower()


def is_code(value: str) -> bool:
    """Return True for attributes, calls, types and secret names: the value itself is elsewhere."""
    if "(" in value or get_pattern("attribute").fullmatch(value) or get_pattern("generic").fullmatch(value):
        return True
    return get_pattern("identifier").fullmatch(value) is not None and not get_words("code_secrets").isdisjoint(
        split_words(value)
    )


def is_secret(value: str, place: AssignmentContext, *, quoted: bool) -> bool:
    bare = value.strip(" ,;.")
    if (
        not bare
        or get_pattern("placeholder").fullmatch(value)
        or bare.lower() in get_words("literals") | get_words("prose")
    ):
        return False
    if place.family is NameSensitivity.WEAK:
        return _is_weak_secret(value, place)
    if place.name.lower() == "pwd":
        return place.tight and not get_pattern("path").fullmatch(value)
    if get_pattern("number").fullmatch(value):
        return len(value) >= (4 if place.family is NameSensitivity.PASSWORD else 8)
    if quoted:
        return not is_prose(value)
    return (
        place.tight or place.is_header or not get_pattern("identifier").fullmatch(value) or _is_configured(value, place)
    )


def _is_weak_secret(value: str, place: AssignmentContext) -> bool:
    if place.is_signature and place.query and place.tight:  # Anyone with the signature can use the URL.
        return len(value) >= MIN_SIGNATURE_CHARS and not get_pattern("number").fullmatch(value)
    return (
        place.suits_weak_names
        and get_pattern("random").fullmatch(get_pattern("escaped_blank").split(value)[0]) is not None
    )


def _is_configured(value: str, place: AssignmentContext) -> bool:
    """Return True for a single word after a colon in a configuration file, unless it may be a type."""
    if not place.colon:
        return False
    if place.family is NameSensitivity.PASSWORD:
        return place.own_line or place.listed
    if place.name.isupper() and "_" in place.name:
        return place.own_line and value.islower()
    return place.own_line and len(value) >= 8 and value.islower()


def is_prose(value: str) -> bool:
    words = value.lower().split()
    return len(words) > 2 and not get_words("prose").isdisjoint(words)


def redact_assignments(text: str) -> str:
    parts: list[str] = []
    position = looked_at = 0
    for keyword in get_pattern("keyword").finditer(text):
        if keyword.start() < looked_at:
            continue
        start, looked_at = _find_name(text, keyword, position)
        span = _find_secret_span(text, start, looked_at)
        if span is not None:
            parts += [text[position : span[0]], MARK]
            position = looked_at = span[1]
    return "".join([*parts, text[position:]]) if parts else text


def _find_secret_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Find the secret that follows this name, or return None."""
    name = text[start:end]
    before = text[max(0, start - 80) : start].rpartition("\n")[2]
    family = NameSensitivity.SECRET if _is_key_in_two_words(before, name) else classify_name(name.strip("-."))
    if family is NameSensitivity.NONE:
        return None
    separator = get_pattern("separator").match(text, end)
    if separator is None:
        return _find_unseparated_value(text, before, AssignmentContext(name, family), end)
    if _closes_a_string(text, before, separator):
        return None
    sign = separator["separator"]
    place = AssignmentContext(
        name,
        family,
        tight=sign.upper() in ("=", "%3D"),
        colon=":" in sign,
        own_line=get_pattern("line_start").fullmatch(before) is not None,
        listed=before.rstrip().endswith(("{", ",")),
        query=before.endswith(("?", "&", ";")) or sign.upper() == "%3D",
    )
    block = get_pattern("block_start").match(text, separator.end()) if place.own_line and place.colon else None
    return _find_block(text, before, block, place) if block else _find_value(text, separator.end(), place)


def _is_key_in_two_words(before: str, name: str) -> bool:
    return name.lower() == "key" and before.lower().endswith(("api ", "access ", "secret ", "private "))


def _closes_a_string(text: str, before: str, separator: re.Match[str]) -> bool:
    """Return True if the quote after the separator ends a string that contains the name: `input("Password: ")`."""
    quote = text[separator.end() : separator.end() + 1]
    return separator["close"] is None and quote in ('"', "'", "`") and before.count(quote) % 2 == 1


def _find_name(text: str, keyword: re.Match[str], floor: int) -> tuple[int, int]:
    before = text[max(floor, keyword.start() - 64) : keyword.start()]
    start = keyword.start() - (len(before) - len(before.rstrip(NAME_CHARACTERS)))
    rest = get_pattern("name_rest").match(text, keyword.end())
    return start, rest.end() if rest else keyword.end()


def _find_unseparated_value(text: str, before: str, place: AssignmentContext, end: int) -> tuple[int, int] | None:
    """Find `<name>value</name>`, `--name value`, `PASSWORD 'value'`, `ENV NAME value`, `the password is value1`."""
    if before.endswith("<") and (tag := get_pattern("tag").match(text, end)):
        value = get_pattern("tag_value").match(text, tag.end())
        return value.span() if value and is_secret(value[0], place, quoted=True) else None
    if said := get_pattern("is").match(text, end):
        value = get_pattern("inline_value").match(text, said.end())
        return _trim_span(value) if value and get_pattern("mixed").fullmatch(value[0].rstrip(".,;!?")) else None
    space = get_pattern("space").match(text, end)
    if space is None or (place.family is NameSensitivity.WEAK and get_pattern("uuid").match(text, space.end())):
        return None  # An id after an option such as `--session` is not a secret.
    is_named = place.name.startswith("-") or before.strip() in ("ENV", "ARG")
    is_quoted = place.family is NameSensitivity.PASSWORD and text[space.end()] in "\"'"
    span = _find_value(text, space.end(), place) if is_named or is_quoted else None
    return None if span is None or " " in text[span[0] : span[1]] else span


def _find_value(text: str, start: int, place: AssignmentContext) -> tuple[int, int] | None:
    quoted = get_pattern("quoted").match(text, start)
    if quoted is not None:
        return quoted.span("value") if is_secret(quoted["value"], place, quoted=True) else None
    pattern = (
        get_pattern("line_value") if place.own_line and (place.tight or place.colon) else get_pattern("inline_value")
    )
    found = pattern.match(text, start)
    if found is None or text[found.end() : found.end() + 1] in ("(", "["):
        return None
    value = found[0]
    if place.name.isupper() and place.name != "PWD" and place.tight and place.own_line:
        return found.span() if not get_pattern("placeholder").fullmatch(value) else None
    if (not place.query and is_code(value)) or not is_secret(value, place, quoted=False):
        return None
    return _find_passphrase(text, found, place) or _trim_span(found)


def _find_block(text: str, before: str, start: re.Match[str], place: AssignmentContext) -> tuple[int, int] | None:
    """Find the YAML block below `name: |`: lines indented deeper than the name, with empty ones between them."""
    if place.family < NameSensitivity.SECRET:
        return None
    indent = re.escape(re.sub(r"-(?=[ \t])", " ", before.rstrip("\"'")))
    line = rf"(?:[ \t]*\r?\n)*{indent}[ \t]+"
    found = re.compile(rf"{line}(?P<value>\S[^\n]*(?:\n{line}\S[^\n]*)*)").match(text, start.end())
    if found is None:
        return None
    value = found["value"].rstrip()
    is_told = get_pattern("placeholder").fullmatch(value) or is_prose(value)
    return None if is_told else (found.start("value"), found.start("value") + len(value))


def _find_passphrase(text: str, first: re.Match[str], place: AssignmentContext) -> tuple[int, int] | None:
    """Find a password of several words in a configuration file: its whole line, unless that is a sentence."""
    if place.family is not NameSensitivity.PASSWORD or not place.own_line or not place.colon:
        return None
    more = get_pattern("more_words").match(text, first.end())
    if more is None or is_prose(text[first.start() : more.end()]):
        return None
    return first.start(), more.end()


def _trim_span(found: re.Match[str]) -> tuple[int, int]:
    return found.start(), found.start() + len(found[0].rstrip(",;)}].!?") or found[0])

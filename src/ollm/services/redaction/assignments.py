"""What is assigned to a name that says secret: `NAME=value`, `name: value`, `"name": "value"`, `--name value`, XML,
YAML blocks.

Code is full of such names, so the value decides too: calls, attributes, types, placeholders and prose are left alone.
Names are found by a keyword in them and read outwards for a bounded length, so the work is linear in the text.
"""

from __future__ import annotations

import re

from ollm.services.redaction import MARK
from ollm.services.redaction.names import NameSensitivity, classify_name
from ollm.services.redaction.values import PLACEHOLDER, AssignmentContext, is_code, is_prose, is_secret, looks_mixed

_KEYWORD = re.compile(r"pass|pwd|secret|token|key|cred|auth|cookie|jwt|_pw|sess|sig|_pat|bearer", re.IGNORECASE)
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_NAME_REST = re.compile(r"[A-Za-z0-9_\-.]{0,64}")
_SEPARATOR = re.compile(
    r"""(?P<close>\\?["'])?\]?(?P<separator>[ \t]{0,8}(?:=>|:=|=(?![=~>])|:(?![:=]))[ \t]{0,8})"""
    r"""(?:[A-Za-z_][\w.\[\]|, ]{0,40}?[ \t]{0,4}=[ \t]{0,4}(?=["']))?"""
)
_IS = re.compile(r"[ \t]{1,3}(?:is|was)[ \t]{1,3}[\"'`]?")
_SPACE = re.compile(r"[ \t]{1,4}(?=[\"'\w])")
_TAG = re.compile(r">(?=[^<\s])")
_QUOTED = re.compile(r"""(?:[bfruBFRU]{0,2})(?P<quote>\\?["'`])(?P<value>(?:(?!(?P=quote))(?:\\.|[^\n]))*)""")
_LINE_VALUE = re.compile(r"""[^\s"'`]+""")
_INLINE_VALUE = re.compile(r"""[^\s"'`,;&|<>(){}\[\]]+""")
_TAG_VALUE = re.compile(r"[^<\n]{1,4096}")
_MORE_WORDS = re.compile(r"""(?:[ \t]+[^\s"'`,;:=|&<>(){}\[\]#]+)+(?=[ \t]*(?:\r?\n|\Z|[ \t]#))""")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_BLOCK_START = re.compile(r"[|>][+\-1-9]{0,2}[ \t]*(?:#[^\n]*)?\r?\n")
_LINE_START = re.compile(r"[ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|[+>#]+[ \t]*)?[\"']?")


def redact_assignments(text: str) -> str:
    parts: list[str] = []
    position = looked_at = 0
    for keyword in _KEYWORD.finditer(text):
        if keyword.start() < looked_at:
            continue
        start, looked_at = _find_name(text, keyword, position)
        span = _find_secret_span(text, start, looked_at)
        if span is not None:
            parts += [text[position : span[0]], MARK]
            position = looked_at = span[1]
    return "".join([*parts, text[position:]]) if parts else text


def _find_secret_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The secret behind the name that is here, if there is one."""
    name = text[start:end]
    before = text[max(0, start - 80) : start].rpartition("\n")[2]
    family = NameSensitivity.SECRET if _is_key_in_two_words(before, name) else classify_name(name.strip("-."))
    if family is NameSensitivity.NONE:
        return None
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return _find_unseparated_value(text, before, AssignmentContext(name, family), end)
    if _closes_a_string(text, before, separator):
        return None
    sign = separator["separator"]
    place = AssignmentContext(
        name,
        family,
        tight=sign == "=",
        colon=":" in sign,
        own_line=_LINE_START.fullmatch(before) is not None,
        listed=before.rstrip().endswith(("{", ",")),
        query=before.endswith(("?", "&", ";")),
    )
    block = _BLOCK_START.match(text, separator.end()) if place.own_line and place.colon else None
    return _find_block(text, before, block, place) if block else _find_value(text, separator.end(), place)


def _is_key_in_two_words(before: str, name: str) -> bool:
    return name.lower() == "key" and before.lower().endswith(("api ", "access ", "secret ", "private "))


def _closes_a_string(text: str, before: str, separator: re.Match[str]) -> bool:
    """Whether the quote behind the sign ends a string that the name is in: `input("Password: ")`."""
    quote = text[separator.end() : separator.end() + 1]
    return separator["close"] is None and quote in ('"', "'", "`") and before.count(quote) % 2 == 1


def _find_name(text: str, keyword: re.Match[str], floor: int) -> tuple[int, int]:
    before = text[max(floor, keyword.start() - 64) : keyword.start()]
    start = keyword.start() - (len(before) - len(before.rstrip(_NAME_CHARACTERS)))
    rest = _NAME_REST.match(text, keyword.end())
    return start, rest.end() if rest else keyword.end()


def _find_unseparated_value(text: str, before: str, place: AssignmentContext, end: int) -> tuple[int, int] | None:
    """`<name>value</name>`, `--name value`, `PASSWORD 'value'`, `ENV NAME value` and `the password is value1`."""
    if before.endswith("<") and (tag := _TAG.match(text, end)):
        value = _TAG_VALUE.match(text, tag.end())
        return value.span() if value and is_secret(value[0], place, quoted=True) else None
    if said := _IS.match(text, end):
        value = _INLINE_VALUE.match(text, said.end())
        return _trim_span(value) if value and looks_mixed(value[0].rstrip(".,;!?")) else None
    space = _SPACE.match(text, end)
    if space is None:
        return None
    is_named = place.name.startswith("-") or before.strip() in ("ENV", "ARG")
    is_quoted = place.family is NameSensitivity.PASSWORD and text[space.end()] in "\"'"
    return _find_spaced_value(text, space.end(), place) if is_named or is_quoted else None


def _find_spaced_value(text: str, start: int, place: AssignmentContext) -> tuple[int, int] | None:
    """What is behind an option; the id behind one like `--session` is none that opens anything."""
    if place.family is NameSensitivity.WEAK and _UUID.match(text, start):
        return None
    span = _find_value(text, start, place)
    return None if span is None or " " in text[span[0] : span[1]] else span


def _find_value(text: str, start: int, place: AssignmentContext) -> tuple[int, int] | None:
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        return quoted.span("value") if is_secret(quoted["value"], place, quoted=True) else None
    pattern = _LINE_VALUE if place.own_line and (place.tight or place.colon) else _INLINE_VALUE
    found = pattern.match(text, start)
    if found is None or text[found.end() : found.end() + 1] in ("(", "["):
        return None
    value = found[0]
    if place.name.isupper() and place.name != "PWD" and place.tight and place.own_line:
        return found.span() if not PLACEHOLDER.fullmatch(value) else None
    if not place.query and is_code(value):
        return None
    if not is_secret(value, place, quoted=False):
        return None
    return _find_passphrase(text, found, place) or _trim_span(found)


def _find_block(text: str, before: str, start: re.Match[str], place: AssignmentContext) -> tuple[int, int] | None:
    """The lines of YAML below `name: |`: as far as they are further in than the name, empty ones between them."""
    if place.family < NameSensitivity.SECRET:
        return None
    indent = re.escape(re.sub(r"-(?=[ \t])", " ", before.rstrip("\"'")))
    line = rf"(?:[ \t]*\r?\n)*{indent}[ \t]+"
    found = re.compile(rf"{line}(?P<value>\S[^\n]*(?:\n{line}\S[^\n]*)*)").match(text, start.end())
    if found is None:
        return None
    value = found["value"].rstrip()
    is_told = PLACEHOLDER.fullmatch(value) or is_prose(value)
    return None if is_told else (found.start("value"), found.start("value") + len(value))


def _find_passphrase(text: str, first: re.Match[str], place: AssignmentContext) -> tuple[int, int] | None:
    """A password of several words in a configuration file: all of its line, unless that is a sentence."""
    if place.family is not NameSensitivity.PASSWORD or not place.own_line or not place.colon:
        return None
    more = _MORE_WORDS.match(text, first.end())
    if more is None or is_prose(text[first.start() : more.end()]):
        return None
    return first.start(), more.end()


def _trim_span(found: re.Match[str]) -> tuple[int, int]:
    return found.start(), found.start() + len(found[0].rstrip(",;)}].!?") or found[0])

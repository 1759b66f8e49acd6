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

from ollm.services.redaction import MARK

PASSWORDS = frozenset({"password", "passwd", "passphrase", "passcode", "passwort", "pgpassword"})
SECRETS = frozenset(
    {"secret", "secrets", "token", "apikey", "credential", "credentials", "jwt", "authtoken", "accesstoken"}
)
SECRET_WORDS = PASSWORDS | SECRETS | {"pass", "pwd", "auth", "key", "pw", "cookie"}
_JOINED_PASSWORDS = ("password", "passwd", "passphrase")
_JOINED_SECRETS = ("apikey", "authtoken", "accesstoken", "secretkey", "privatekey", "accesskey")
_WEAK = frozenset({"auth", "cookie", "session", "sessionid", "signature", "sig", "pat", "bearer"})
_KEY_WORDS = (
    "api access secret private encryption signing auth master account client storage deploy session webhook shared "
    "service decryption hmac rsa ssl tls license admin"
)
_KINDS_OF_KEY = frozenset(_KEY_WORDS.split())
_HARMLESS_KEYS = frozenset(
    {"public", "primary", "foreign", "cache", "sort", "partition", "hot", "idempotency", "natural"}
)
_ABOUT_WORDS = (
    "type name names count counts id ids url uri endpoint field length limit len size path file dir policy "
    "ttl expiry expires expiration expired at in header prefix suffix index mode method enabled disabled "
    "required status error errors min max budget usage parser kind provider scope scopes lifetime age env "
    "regex class pattern label hint prompt manager strength algorithm format issuer audience schema rotation "
    "version input output list stream ring word words start end position per used cost price rate estimate "
    "estimator counter counting factor ratio total"
)
_ABOUT = frozenset(_ABOUT_WORDS.split())
_FIRST = frozenset({"max", "min", "num", "total", "public", "pub", "next", "prev", "has", "is", "needs", "no"})
MIN_SIGNATURE_CHARS = 6
_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
PLACEHOLDER = re.compile(
    r"[$<{%\[(].*|[*xX.•_\-]+|.*\*{3,}.*|(?i:your|my|the|some|changeme|example)[\-_ ][A-Za-z\-_ ]*|.*\[redacted\].*"
    r"|!(?i:vault|secret|ref|sub|env)\b.*"
)
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+[;,\[]?")
_GENERIC = re.compile(
    r"(?:[\w.]*\.)?(?:Optional|Union|[Ll]ist|[Dd]ict|[Tt]uple|[Ss]et|Sequence|Mapping|Array|Promise|Record|Map)[\[<].*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*[;,:.?!]*")
_NUMBER = re.compile(r"-?[0-9][0-9_.,]*%?[;,]?")
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_%\-.~]{12,}")
_ESCAPED_BLANK = re.compile(r"\\[nrt]")
_MIXED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])\S{6,}")
_PATH = re.compile(r"[/~.\\$].*|[A-Za-z]:[\\/].*")
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
_KEYWORD = re.compile(r"pass|pwd|secret|token|key|cred|auth|cookie|jwt|_pw|sess|sig|_pat|bearer", re.IGNORECASE)
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_NAME_REST = re.compile(r"[A-Za-z0-9_\-.]{0,64}")
_SEPARATOR = re.compile(
    r"""(?P<close>\\?["'])?\]?(?P<separator>[ \t]{0,8}(?:=>|:=|=(?![=~>])|%3[Dd]|:(?![:=]))[ \t]{0,8})"""
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


class NameSensitivity(IntEnum):
    """Sensitivity of a name. The value of a weak one is secret only if it looks like a secret."""

    NONE = 0
    WEAK = 1
    SECRET = 2
    PASSWORD = 3


def split_words(name: str) -> tuple[str, ...]:
    """Split a name in any case style into lower-case words."""
    return tuple(word.lower() for word in _NAME_WORDS.findall(name))


@lru_cache(maxsize=4096)
def classify_name(name: str) -> NameSensitivity:
    """Classify a name (of a variable, field, option or header) by the sensitivity of its value."""
    words = split_words(name)
    if not words or words[-1] in _ABOUT or words[0] in _FIRST:
        return NameSensitivity.NONE
    if PASSWORDS.intersection(words) or words[-1].endswith(_JOINED_PASSWORDS) or _is_short_password(words):
        return NameSensitivity.PASSWORD
    if SECRETS.intersection(words) or words[-1].endswith(_JOINED_SECRETS) or _is_key(words, name):
        return NameSensitivity.SECRET
    return NameSensitivity.WEAK if words[-1] in _WEAK else NameSensitivity.NONE


def _is_short_password(words: tuple[str, ...]) -> bool:
    return words == ("pwd",) or (len(words) > 1 and words[-1] in ("pass", "pwd", "pw"))


def _is_key(words: tuple[str, ...], name: str) -> bool:
    """Return True for secret keys. An upper-case variable name counts unless it is known to be harmless."""
    if "key" not in words[1:]:
        return False
    kind = words[words.index("key", 1) - 1]
    return kind in _KINDS_OF_KEY or (name.isupper() and words[-1] == "key" and kind not in _HARMLESS_KEYS)


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
    if "(" in value or _ATTRIBUTE.fullmatch(value) or _GENERIC.fullmatch(value):
        return True
    return _IDENTIFIER.fullmatch(value) is not None and not SECRET_WORDS.isdisjoint(split_words(value))


def is_secret(value: str, place: AssignmentContext, *, quoted: bool) -> bool:
    bare = value.strip(" ,;.")
    if not bare or PLACEHOLDER.fullmatch(value) or bare.lower() in _LITERALS:
        return False
    if place.family is NameSensitivity.WEAK:
        return _is_weak_secret(value, place)
    if place.name.lower() == "pwd":
        return place.tight and not _PATH.fullmatch(value)
    if _NUMBER.fullmatch(value):
        return len(value) >= (4 if place.family is NameSensitivity.PASSWORD else 8)
    if quoted:
        return not is_prose(value)
    return place.tight or place.is_header or not _IDENTIFIER.fullmatch(value) or _is_configured(value, place)


def _is_weak_secret(value: str, place: AssignmentContext) -> bool:
    if place.is_signature and place.query and place.tight:  # whoever has it may do what the URL does
        return len(value) >= MIN_SIGNATURE_CHARS and not _NUMBER.fullmatch(value)
    return place.suits_weak_names and _RANDOM.fullmatch(_ESCAPED_BLANK.split(value)[0]) is not None


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
    return len(words) > 2 and not _PROSE.isdisjoint(words)


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
    """Find the secret that follows this name, or return None."""
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
        tight=sign.upper() in ("=", "%3D"),
        colon=":" in sign,
        own_line=_LINE_START.fullmatch(before) is not None,
        listed=before.rstrip().endswith(("{", ",")),
        query=before.endswith(("?", "&", ";")) or sign.upper() == "%3D",
    )
    block = _BLOCK_START.match(text, separator.end()) if place.own_line and place.colon else None
    return _find_block(text, before, block, place) if block else _find_value(text, separator.end(), place)


def _is_key_in_two_words(before: str, name: str) -> bool:
    return name.lower() == "key" and before.lower().endswith(("api ", "access ", "secret ", "private "))


def _closes_a_string(text: str, before: str, separator: re.Match[str]) -> bool:
    """Return True if the quote after the separator ends a string that contains the name: `input("Password: ")`."""
    quote = text[separator.end() : separator.end() + 1]
    return separator["close"] is None and quote in ('"', "'", "`") and before.count(quote) % 2 == 1


def _find_name(text: str, keyword: re.Match[str], floor: int) -> tuple[int, int]:
    before = text[max(floor, keyword.start() - 64) : keyword.start()]
    start = keyword.start() - (len(before) - len(before.rstrip(_NAME_CHARACTERS)))
    rest = _NAME_REST.match(text, keyword.end())
    return start, rest.end() if rest else keyword.end()


def _find_unseparated_value(text: str, before: str, place: AssignmentContext, end: int) -> tuple[int, int] | None:
    """Find `<name>value</name>`, `--name value`, `PASSWORD 'value'`, `ENV NAME value`, `the password is value1`."""
    if before.endswith("<") and (tag := _TAG.match(text, end)):
        value = _TAG_VALUE.match(text, tag.end())
        return value.span() if value and is_secret(value[0], place, quoted=True) else None
    if said := _IS.match(text, end):
        value = _INLINE_VALUE.match(text, said.end())
        return _trim_span(value) if value and _MIXED.fullmatch(value[0].rstrip(".,;!?")) else None
    space = _SPACE.match(text, end)
    if space is None:
        return None
    is_named = place.name.startswith("-") or before.strip() in ("ENV", "ARG")
    is_quoted = place.family is NameSensitivity.PASSWORD and text[space.end()] in "\"'"
    return _find_spaced_value(text, space.end(), place) if is_named or is_quoted else None


def _find_spaced_value(text: str, start: int, place: AssignmentContext) -> tuple[int, int] | None:
    """Find the value after an option. An id after an option such as `--session` is not a secret."""
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
    is_told = PLACEHOLDER.fullmatch(value) or is_prose(value)
    return None if is_told else (found.start("value"), found.start("value") + len(value))


def _find_passphrase(text: str, first: re.Match[str], place: AssignmentContext) -> tuple[int, int] | None:
    """Find a password of several words in a configuration file: its whole line, unless that is a sentence."""
    if place.family is not NameSensitivity.PASSWORD or not place.own_line or not place.colon:
        return None
    more = _MORE_WORDS.match(text, first.end())
    if more is None or is_prose(text[first.start() : more.end()]):
        return None
    return first.start(), more.end()


def _trim_span(found: re.Match[str]) -> tuple[int, int]:
    return found.start(), found.start() + len(found[0].rstrip(",;)}].!?") or found[0])

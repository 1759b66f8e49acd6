"""Whether what is behind a name that says secret is one, or code, a type, a placeholder or prose."""

from __future__ import annotations

import re
from typing import NamedTuple

from ollm.services.redaction.names import SECRET_WORDS, NameSensitivity, split_words

PLACEHOLDER = re.compile(
    r"[$<{%\[(].*|[*xX.•_\-]+|.*\*{3,}.*|(?i:your|my|the|some|changeme|example)[\-_ ][A-Za-z\-_ ]*|.*\[redacted\].*"
    r"|!(?i:vault|secret|ref|sub|env)\b.*"
)
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+[;,]?")
_GENERIC = re.compile(
    r"(?:[\w.]*\.)?(?:Optional|Union|[Ll]ist|[Dd]ict|[Tt]uple|[Ss]et|Sequence|Mapping|Array|Promise|Record|Map)[\[<].*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*[;,:.?!]*")
_NUMBER = re.compile(r"-?[0-9][0-9_.,]*%?[;,]?")
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_%\-.~]{12,}")
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


class AssignmentContext(NamedTuple):
    """Where a value is: behind which name, how tightly, and what is before the name on its line: nothing
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
    def suits_weak_names(self) -> bool:
        """Signatures are secret in a URL alone."""
        return self.query or "sig" not in self.name.lower() or "amz" in self.name.lower()


def is_code(value: str) -> bool:
    """Attributes, calls, types and names that themselves say secret: the value is elsewhere."""
    if "(" in value or _ATTRIBUTE.fullmatch(value) or _GENERIC.fullmatch(value):
        return True
    return _IDENTIFIER.fullmatch(value) is not None and not SECRET_WORDS.isdisjoint(split_words(value))


def is_secret(value: str, place: AssignmentContext, *, quoted: bool) -> bool:
    bare = value.strip(" ,;.")
    if not bare or PLACEHOLDER.fullmatch(value) or bare.lower() in _LITERALS:
        return False
    if place.family is NameSensitivity.WEAK:
        return place.suits_weak_names and _RANDOM.fullmatch(value) is not None
    if place.name.lower() == "pwd":
        return place.tight and not _PATH.fullmatch(value)
    if _NUMBER.fullmatch(value):
        return len(value) >= (4 if place.family is NameSensitivity.PASSWORD else 8)
    if quoted:
        return not is_prose(value)
    return place.tight or place.is_header or not _IDENTIFIER.fullmatch(value) or _is_configured(value, place)


def _is_configured(value: str, place: AssignmentContext) -> bool:
    """A word alone behind a colon: a password in a configuration file, unless it may as well be a type."""
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


def looks_mixed(value: str) -> bool:
    """Letters and digits together, as words do not have them."""
    return _MIXED.fullmatch(value) is not None

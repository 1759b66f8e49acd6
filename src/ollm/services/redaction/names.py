"""Names that say their value is secret, told by whole words: `max_tokens`, `author` and `public_key` do not."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

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
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class NameSensitivity(IntEnum):
    """How much a name says. What a weak one holds is secret only when it looks it."""

    NONE = 0
    WEAK = 1
    SECRET = 2
    PASSWORD = 3


def split_words(name: str) -> tuple[str, ...]:
    """The words of a name in any case style, in lower case."""
    return tuple(word.lower() for word in _WORDS.findall(name))


@lru_cache(maxsize=4096)
def classify_name(name: str) -> NameSensitivity:
    """What a name (of a variable, field, option or header) says about its value."""
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
    """Which keys are secret: in capitals, as variables are named, all but the known harmless ones."""
    if "key" not in words[1:]:
        return False
    kind = words[words.index("key", 1) - 1]
    return kind in _KINDS_OF_KEY or (name.isupper() and words[-1] == "key" and kind not in _HARMLESS_KEYS)

"""Redaction of secrets in text before it leaves as a log line, an error or an export (S10.7).

Five steps, each linear in the text: private keys, known secret values, passwords in URLs and headers, values assigned
to secret names, and tokens of a known shape. Ids, hashes, public keys, code and prose stay. The patterns are read
and compiled for the first text that could hold a secret, so importing costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ollm.services.redaction.assignments import NameSensitivity, classify_name, redact_assignments
from ollm.services.redaction.patterns import MARK
from ollm.services.redaction.shapes import (
    classify_credential,
    holds_token,
    redact_credentials,
    redact_private_keys,
    redact_tokens,
)

MIN_KNOWN_VALUE_CHARS = 8
MIN_TOKEN_CHARS = 16
_HINTS: tuple[str, ...] = ("pass", "pwd", "_pw", "secret", "token", "key", "cred", "auth", "cookie", "bearer", "jwt")
_HINTS += ("basic ", "://", "sig=", "signature", "login", "mysql", " -u", "--user")


class Redactor:
    """Redacts secrets in text. `values` are secrets known beforehand: those of variables withheld from tools."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = {value for value in values if len(value) >= MIN_KNOWN_VALUE_CHARS}
        self._values = sorted({form for value in known for form in _list_forms(value)}, key=len, reverse=True)

    def redact(self, text: str) -> str:
        """Replace every secret in a text with a mark. A text without secrets is returned unchanged. Otherwise colour
        codes are removed."""
        if "\x1b[" in text:
            plain = re.sub(r"\x1b\[[0-9;:]*m", "", text)
            clean = self._redact_plain(plain)
            return text if clean == plain and self._redact_plain(text) == text else clean
        return self._redact_plain(text)

    def redact_field(self, name: str, text: str) -> str:
        """Redact secrets in a text, or all of it if the name marks it as a secret."""
        is_secret = text and name and classify_name(name) >= NameSensitivity.SECRET
        return MARK if is_secret else self.redact(text)

    def _redact_plain(self, text: str) -> str:
        text = redact_private_keys(text)
        for value in self._values:
            text = text.replace(value, MARK)
        text = _redact_named(text)
        is_long = max(map(len, text.split()), default=0) >= MIN_TOKEN_CHARS
        return redact_tokens(text) if is_long else text


def _redact_named(text: str) -> str:
    """Redact values that follow a secret name, and credentials in known places."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    return redact_assignments(redact_credentials(text))


def find_secrets(values: Iterable[str]) -> dict[str, str]:
    """Find the values that contain a secret, with its kind: a known shape, or a value that would be redacted in a
    log."""
    kinds = {
        text: classify_credential(text)
        or ("token" if holds_token(text) else None if _redact_named(text) == text else "it names a secret")
        for text in values
    }
    return {text: kind for text, kind in kinds.items() if kind is not None}


def _list_forms(value: str) -> set[str]:
    """List the forms of a value in text: unchanged, inside JSON, and inside a URL."""
    if value.isascii() and value.isalnum():
        return {value}
    import json
    from urllib.parse import quote, quote_plus

    plain = value.encode("utf-8", "replace").decode()
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(plain, ""),
        quote_plus(plain),
    }

"""Secrets of a known form: tokens, private keys, and passwords in URLs, headers and command lines.

Each shape starts with a fixed text at the beginning of a word, so a text is read once, whatever it holds.
"""

from __future__ import annotations

import re
from functools import cache

from ollm.services.redaction.patterns import MARK, get_pattern, list_shapes

_BEGIN = "-----BEGIN "
_BEGIN_ENCODED = "LS0tLS1CRUdJTi"  # The same text in base64.


def redact_tokens(text: str) -> str:
    for shape in _find_shapes(text):
        text = shape.sub(MARK, text)
    return text


def holds_token(text: str) -> bool:
    return any(shape.search(text) for shape in _find_shapes(text))


def _find_shapes(text: str) -> list[re.Pattern[str]]:
    """Return the expressions of the tokens that a text may contain. Most texts have none and need no expression."""
    return [_compile_shape(shape) for hint, shape in list_shapes().items() if hint in text]


@cache
def _compile_shape(shape: str) -> re.Pattern[str]:
    start = r"(?=[A-Za-z0-9][A-Za-z0-9_\-.:/+=~]{15})"  # Most words are shorter, so the search skips them.
    return re.compile(rf"{start}(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt]))(?:{shape})")


def redact_private_keys(text: str) -> str:
    """Redact whole key blocks. A truncated block is redacted as far as it looks like a key."""
    if _BEGIN not in text:
        return text
    parts, position = [], 0
    begins = list(get_pattern("private").finditer(text))
    limits = [begin.start() for begin in begins[1:]] + [len(text)]
    for begin, limit in zip(begins, limits, strict=False):
        end = get_pattern("private_end").search(text, begin.end(), limit) or get_pattern("key_body").match(
            text, begin.end(), limit
        )
        parts += [text[position : begin.start()], MARK]
        position = end.end() if end else begin.end()
    return "".join([*parts, text[position:]])


def redact_credentials(text: str) -> str:
    """Redact passwords in URLs, `Authorization` and `Cookie` headers, `curl -u` and netrc lines."""
    text = get_pattern("url_password").sub(_keep_user, text) if "://" in text and "@" in text else text
    lowered = text.lower()
    if "authorization" in lowered:
        text = get_pattern("authorization").sub(_keep_scheme, text)
    if "cookie" in lowered:
        text = get_pattern("cookie").sub(_hide_cookies, text)
    text = get_pattern("bearer").sub(_keep_bearer, text)
    return get_pattern("command_line").sub(_keep_before, text)


def classify_credential(value: str) -> str | None:
    if value.startswith(_BEGIN_ENCODED):
        value = _decode_base64(value)
    if _BEGIN in value and get_pattern("private").search(value):
        return "private key"
    hinted = "=" in value and any(word in value.lower() for word in ("pass", "pwd", "key", "shared", "token", "secret"))
    if hinted and get_pattern("connection_string").search(value):
        return "connection string with a password"
    found = get_pattern("url_password").search(value) if "://" in value and "@" in value else None
    return "URL with a password" if found and _is_secret(found["token"] or found["password"]) else None


def _decode_base64(value: str) -> str:
    import base64

    try:
        return base64.b64decode(value + "=" * (-len(value.rstrip()) % 4)).decode()
    except ValueError:
        return ""


def _hide_cookies(found: re.Match[str]) -> str:
    """Redact every value of `Cookie`, but only the first of `Set-Cookie`: its attributes are not secret."""
    head, sets, pairs = found.groups()
    return head + re.sub(r"=[^;]+", f"={MARK}", pairs, count=1 if sets else 0)


def _is_secret(text: str) -> bool:
    return not get_pattern("no_credential").fullmatch(text) and text != MARK


def _keep_user(found: re.Match[str]) -> str:
    if found["token"]:
        return f"{MARK}@"
    return f"{found['user']}:{MARK}@" if _is_secret(found["password"]) else found[0]


def _keep_scheme(found: re.Match[str]) -> str:
    before, scheme, credential, alone = found.groups()
    if alone and not any(letter.isdigit() for letter in alone):
        return found[0]
    return f"{before}{scheme or ''}{MARK}" if _is_secret(credential or alone) else found[0]


def _keep_bearer(found: re.Match[str]) -> str:
    value = found[2]
    if found[1].lower().startswith("basic"):  # The word "basic" also occurs in prose.
        telling = ":" in _decode_base64(value)
    else:
        telling = value.endswith("=") or any(letter.isdigit() for letter in value)
    return f"{found[1]}{MARK}" if telling and _is_secret(value) else found[0]


def _keep_before(found: re.Match[str]) -> str:
    return found[0] if found[2].isdigit() or not _is_secret(found[2]) else f"{found[1]}{MARK}"

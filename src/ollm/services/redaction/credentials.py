"""Secrets known by where they are: private key blocks, passwords in URLs, headers and on command lines."""

from __future__ import annotations

import re
from functools import cache

from ollm.services.redaction import MARK

_BEGIN = "-----BEGIN "
_PRIVATE = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"(?:(?:\s|\\[nrt])*(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Z][A-Za-z\-]{2,20}: [^\n\\]{1,200}))*"
_PLACEHOLDER = r"[$<{%\[].*|[*x.•]+|:?"


_compile_once = cache(re.compile)  # when first needed


def redact_private_keys(text: str) -> str:
    """Blocks are taken out whole; one that was cut off, as far as it looks like a key."""
    if _BEGIN not in text:
        return text
    parts, position = [], 0
    begins = list(_compile_once(_PRIVATE).finditer(text))
    limits = [begin.start() for begin in begins[1:]] + [len(text)]
    for begin, limit in zip(begins, limits, strict=False):
        end = _compile_once(_PRIVATE_END).search(text, begin.end(), limit) or _compile_once(_KEY_BODY).match(
            text, begin.end(), limit
        )
        parts += [text[position : begin.start()], MARK]
        position = end.end() if end else begin.end()
    return "".join([*parts, text[position:]])


def redact_credentials(text: str) -> str:
    """Passwords in URLs, `Authorization` and `Cookie` headers, `curl -u`, netrc lines."""
    text = _compile_url_password().sub(_keep_user, text) if "://" in text and "@" in text else text
    lowered = text.lower()
    if "authorization" in lowered:
        text = _compile_authorization().sub(_keep_scheme, text)
    if "cookie" in lowered:
        text = _compile_cookie().sub(rf"\g<1>{MARK}", text)
    text = _compile_bearer().sub(_keep_bearer, text)
    return _compile_command_line().sub(_keep_before, text)


def classify_credential(value: str) -> str | None:
    if _BEGIN in value and _compile_once(_PRIVATE).search(value):
        return "private key"
    if "=" in value and _names_a_secret(value.lower()) and _compile_connection_string().search(value):
        return "connection string with a password"
    found = _compile_url_password().search(value) if "://" in value and "@" in value else None
    return "URL with a password" if found and _is_secret(found["token"] or found["password"]) else None


def _names_a_secret(lowered: str) -> bool:
    return any(word in lowered for word in ("password", "pwd", "key", "shared", "token", "secret"))


@cache
def _compile_url_password() -> re.Pattern[str]:
    """After `scheme://`: `user:password@` (the password may hold @) or a long token alone before the @."""
    return re.compile(
        r"""(?<=://)(?:(?P<token>(?=[^\s/:@"'<>]{0,64}[0-9])[^\s/:@"'<>]{16,255})@"""
        r"""|(?P<user>[^\s/:@"'<>\\]{0,255}):(?P<password>[^\s/"'<>\\]{1,255}|[^\s/"'<>\\0-9][^\s"'<>\\]{0,255})@)"""
    )


@cache
def _compile_connection_string() -> re.Pattern[str]:
    """A password or key among settings: `Server=…;Password=…`, `host=… password=…`, `jdbc:…?user=…&password=…`."""
    names = "password|pwd|accountkey|sharedaccesskey|sharedaccesssignature|accesskey|sharedsecretvalue"
    queries = "api_?key|access_?token|auth_?token|token|client_?secret|secret"
    return re.compile(
        rf"(?i)(?:^|[;?&\s])\s{{0,4}}(?:{names})\s{{0,4}}=\s{{0,4}}[^;\s*$<]|[?&](?:{queries})=[^&\s*$<]{{8}}"
    )


@cache
def _compile_authorization() -> re.Pattern[str]:
    schemes = r"(?:bearer|basic|token|digest|negotiate|ntlm|apikey|api-key|aws4-hmac-sha256|hawk|dpop|key)"
    return re.compile(
        rf"""(?i)\b((?:proxy-)?authorization(?:\\?["'])?\s{{0,4}}[:=]\s{{0,4}}(?:\\?["'])?)"""
        rf"""(?:({schemes}\s{{1,4}})([^\r\n"'\\]{{1,4096}})|([^\s"'\\]{{8,4096}}))"""
    )


@cache
def _compile_cookie() -> re.Pattern[str]:
    return re.compile(
        r"""(?i)\b((?:set-)?cookie(?:\\?["'])?:\s{0,4}(?:\\?["'])?)[^\s=;"'\\]{1,128}=[^\r\n"'\\]{1,8192}"""
    )


@cache
def _compile_bearer() -> re.Pattern[str]:
    return re.compile(
        r"(?i)(?<![A-Za-z0-9_\-])((?:bearer|basic)\s{1,4})([A-Za-z0-9._~+/\-]{8,4096}(?![A-Za-z0-9._~+/\-])(?!=[^=\s])={0,2})"
    )


@cache
def _compile_command_line() -> re.Pattern[str]:
    return re.compile(
        r"""(?<![\w\-])((?:-u|--user|--proxy-user)[ =]["']?[^\s:"']{1,128}:|sshpass\s{1,4}-p\s{0,4}["']?"""
        r"""|docker\s{1,4}login\s[^\n|;&]{0,200}?-p\s{1,4}|mysql(?:dump|admin)?\s[^\n|;&]{0,200}?\s-p"""
        r"""|machine\s{1,4}\S{1,255}\s{1,4}login\s{1,4}\S{1,255}\s{1,4}password\s{1,4})([^\s"']{1,255})"""
    )


def _is_secret(text: str) -> bool:
    return not _compile_once(_PLACEHOLDER).fullmatch(text) and text != MARK


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
    telling = value.endswith("=") or any(letter.isdigit() for letter in value)
    return f"{found[1]}{MARK}" if telling and _is_secret(value) else found[0]


def _keep_before(found: re.Match[str]) -> str:
    return found[0] if found[2].isdigit() or not _is_secret(found[2]) else f"{found[1]}{MARK}"

"""Secrets of a known form: tokens, private keys, and passwords in URLs, headers and command lines.

Each shape starts with a fixed text at the beginning of a word, so a text is read once, whatever it holds.
"""

from __future__ import annotations

import re
from functools import cache

from ollm.domain.lazy import compile_late
from ollm.services.redaction import MARK

_BEGIN = "-----BEGIN "
_BEGIN_ENCODED = "LS0tLS1CRUdJTi"  # the same in base64
_PRIVATE = compile_late(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PRIVATE_END = compile_late(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = compile_late(r"(?:(?:\s|\\[nrt])*(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Z][A-Za-z\-]{2,20}: [^\n\\]{1,200}))*")
_PLACEHOLDER = compile_late(r"[$<{%\[].*|[*x.•]+|:?")
_WORD = r"[A-Za-z0-9_\-]"
# A token begins with one of these, and then looks random: ten letters and digits in a row, or sixteen letters.
PREFIXES = (  # noqa: SIM905 - shorter so
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct-"
    " glc_ glsa_ xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xox xapp- sk- sk_live_ sk_test_ sk_prod_ rk_live_"
    " rk_test_ rk_prod_ whsec_ GOCSPX- ya29. npm_ pypi-AgE hf_ api_org_ gsk_ r8_ fw_ xai- pplx- tvly- SG. pul- ops_eyJ"
    " doo_v1_ dop_v1_ dor_v1_ shpat_ shpca_ shppa_ shpss_ lin_api_ lin_oauth_ ntn_ hvs. hvb. hvr. dp.pt. dp.st. dp.sa."
    " dp.ct. dp.scim. dp.audit. NRAK- sntrys_ sntryu_ PMAK- sbp_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_"
    " dckr_pat_ dckr_oat_ ATATT ATCTT ATSTT ATBB figd_ rubygems_ tskey- nfp_ fo1_ fm2_ vercel_blob_rw_ CCIPAT_ CCIPRJ_"
    " bkua_ CLOJARS_ aio_ HRKU- sq0 lsv2_ dapi AGE-SECRET-KEY-1 https://hooks.slack.com/services/"
    " https://hooks.slack.com/workflows/ https://discord.com/api/webhooks/ https://discordapp.com/api/webhooks/"
).split()
_RANDOM_REST = (
    r"(?=[\w\-./+]{0,80}?(?:(?=[A-Za-z]{0,9}[0-9])[A-Za-z0-9]{10}|[A-Za-z]{16}))"
    r"[A-Za-z0-9_\-]{1,8000}(?:[./+~][A-Za-z0-9_\-]{1,8000}){0,60}={0,2}"
)
SHAPES = {  # a text in every token of a shape that has no such beginning, and its expression
    "IA": r"A[KSB]IA[A-Z0-9]{16}(?![A-Za-z0-9])",
    "AIza": rf"AIza{_WORD}{{35}}",
    "1//0": rf"1//0{_WORD}{{30,200}}",
    "nvapi-": rf"nvapi-{_WORD}{{40,255}}",
    "SK": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "key-": r"key-[0-9a-f]{32}(?![A-Za-z0-9])",
    "-us": r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",
    "eyJ": rf"eyJ{_WORD}{{6,8000}}\.{_WORD}{{4,16000}}\.{_WORD}{{4,16000}}(?:\.{_WORD}{{2,8000}}){{0,2}}",
    ":": rf"(?:bot)?[0-9]{{6,12}}:(?:AA|(?={_WORD}{{0,40}}[0-9]))(?={_WORD}{{0,40}}[A-Z]){_WORD}{{32,42}}(?!{_WORD})",
    ".": rf"[MNO][A-Za-z0-9]{{23,25}}\.{_WORD}{{6}}\.{_WORD}{{27,40}}|pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}",
    ".atlasv1.": rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_WORD}{{40,255}}",
    "secret_": r"secret_[A-Za-z0-9]{43}",
    "oy2": r"oy2[a-z0-9]{43}",
    "cio": r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])",
    "EAAA": rf"EAAA{_WORD}{{60}}",
    "Q~": r"[A-Za-z0-9]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}",
}


def _find_shapes(text: str) -> list[re.Pattern[str]]:
    """Return the expressions of the tokens that a text may contain. Most texts have none and need no expression."""
    begun = [_compile_shape(re.escape(prefix) + _RANDOM_REST) for prefix in PREFIXES if prefix in text]
    return begun + [_compile_shape(shape) for hint, shape in SHAPES.items() if hint in text]


def redact_tokens(text: str) -> str:
    for shape in _find_shapes(text):
        text = shape.sub(MARK, text)
    return text


def holds_token(text: str) -> bool:
    return any(shape.search(text) for shape in _find_shapes(text))


@cache
def _compile_shape(shape: str) -> re.Pattern[str]:
    start = r"(?=[A-Za-z0-9][A-Za-z0-9_\-.:/+=~]{15})"  # most words are shorter, and passed over quickly
    return re.compile(rf"{start}(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt]))(?:{shape})")


def redact_private_keys(text: str) -> str:
    """Redact whole key blocks. A truncated block is redacted as far as it looks like a key."""
    if _BEGIN not in text:
        return text
    parts, position = [], 0
    begins = list(_PRIVATE.finditer(text))
    limits = [begin.start() for begin in begins[1:]] + [len(text)]
    for begin, limit in zip(begins, limits, strict=False):
        end = _PRIVATE_END.search(text, begin.end(), limit) or _KEY_BODY.match(text, begin.end(), limit)
        parts += [text[position : begin.start()], MARK]
        position = end.end() if end else begin.end()
    return "".join([*parts, text[position:]])


def redact_credentials(text: str) -> str:
    """Redact passwords in URLs, `Authorization` and `Cookie` headers, `curl -u` and netrc lines."""
    text = _URL_PASSWORD.sub(_keep_user, text) if "://" in text and "@" in text else text
    lowered = text.lower()
    if "authorization" in lowered:
        text = _AUTHORIZATION.sub(_keep_scheme, text)
    if "cookie" in lowered:
        text = _COOKIE.sub(_hide_cookies, text)
    text = _BEARER.sub(_keep_bearer, text)
    return _COMMAND_LINE.sub(_keep_before, text)


def classify_credential(value: str) -> str | None:
    if value.startswith(_BEGIN_ENCODED):
        value = _decode_base64(value)
    if _BEGIN in value and _PRIVATE.search(value):
        return "private key"
    hinted = "=" in value and any(word in value.lower() for word in ("pass", "pwd", "key", "shared", "token", "secret"))
    if hinted and _CONNECTION_STRING.search(value):
        return "connection string with a password"
    found = _URL_PASSWORD.search(value) if "://" in value and "@" in value else None
    return "URL with a password" if found and _is_secret(found["token"] or found["password"]) else None


def _decode_base64(value: str) -> str:
    """Return the text that a value encodes, or ""."""
    import base64

    try:
        return base64.b64decode(value + "=" * (-len(value.rstrip()) % 4)).decode()
    except ValueError:
        return ""


# After `scheme://`: `user:password@` (the password may hold @) or a long token alone before the @.
_URL_PASSWORD = compile_late(
    r"""(?<=://)(?:(?P<token>(?=[^\s/:@"'<>]{0,64}[0-9])[^\s/:@"'<>]{16,255})@"""
    r"""|(?P<user>[^\s/:@"'<>\\]{0,255}):(?P<password>[^\s/"'<>\\]{1,255}|[^\s/"'<>\\0-9][^\s"'<>\\]{0,255})@)"""
)
# A password or key among settings: `Server=…;Password=…`, `host=… password=…`, `jdbc:…?user=…&password=…`.
_CONNECTION_STRING = compile_late(
    r"(?i)(?:^|[;?&\s])\s{0,4}(?:password|pwd|accountkey|sharedaccesskey|sharedaccesssignature|accesskey|sharedsecretvalue)"
    r"\s{0,4}=\s{0,4}[^;\s*$<]"
    r"|[?&](?:api_?key|access_?token|auth_?token|token|client_?secret|secret)=[^&\s*$<]{8}"
)
_AUTHORIZATION = compile_late(
    r"""(?i)\b((?:proxy-)?authorization(?:\\?["'])?\s{0,4}[:=]\s{0,4}(?:\\?["'])?)"""
    r"""(?:((?:bearer|basic|token|digest|negotiate|ntlm|apikey|api-key|aws4-hmac-sha256|hawk|dpop|key)\s{1,4})"""
    r"""([^\r\n"'\\]{1,4096})|([^\s"'\\]{8,4096}))"""
)
_COOKIE = compile_late(
    r"""(?i)\b((set-)?cookie(?:\\?["'])?:\s{0,4}(?:\\?["'])?)([^\s=;"'\\]{1,128}=[^\r\n"'\\]{1,8192})"""
)
_BEARER = compile_late(
    r"(?i)(?<![A-Za-z0-9_\-])((?:bearer|basic)\s{1,4})([A-Za-z0-9._~+/\-]{8,4096}(?![A-Za-z0-9._~+/\-])(?!=[^=\s])={0,2})"
)
_COMMAND_LINE = compile_late(
    r"""(?<![\w\-])((?:-u|--user|--proxy-user)[ =]["']?[^\s:"']{1,128}:|sshpass\s{1,4}-p\s{0,4}["']?"""
    r"""|docker\s{1,4}login\s[^\n|;&]{0,200}?-p\s{1,4}|mysql(?:dump|admin)?\s[^\n|;&]{0,200}?\s-p"""
    r"""|machine\s{1,4}\S{1,255}\s{1,4}login\s{1,4}\S{1,255}\s{1,4}password\s{1,4})([^\s"']{1,255})"""
)


def _hide_cookies(found: re.Match[str]) -> str:
    """Redact every value of `Cookie`, but only the first of `Set-Cookie`: its attributes are not secret."""
    head, sets, pairs = found.groups()
    return head + re.sub(r"=[^;]+", f"={MARK}", pairs, count=1 if sets else 0)


def _is_secret(text: str) -> bool:
    return not _PLACEHOLDER.fullmatch(text) and text != MARK


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
    if found[1].lower().startswith("basic"):  # also a word of prose: user and password are in it, or it is that
        telling = ":" in _decode_base64(value)
    else:
        telling = value.endswith("=") or any(letter.isdigit() for letter in value)
    return f"{found[1]}{MARK}" if telling and _is_secret(value) else found[0]


def _keep_before(found: re.Match[str]) -> str:
    return found[0] if found[2].isdigit() or not _is_secret(found[2]) else f"{found[1]}{MARK}"

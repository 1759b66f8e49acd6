"""Secrets of a known form: tokens, private keys, and passwords in URLs, headers and command lines.

Each shape starts with a fixed text at the beginning of a word, so a text is read once, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
SHAPES: tuple[tuple[str, str, str], ...] = (  # name, texts one of which is in every such token, expression
    (
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{22,255}",
    ),
    (
        "GitLab token",
        "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct-",
        rf"gl(?:pat|ptt|dt|rt|cbt|ft|soat|imt|agent|oas|ffct)-{_WORD}{{16,300}}",
    ),
    ("Slack token", "xox xapp-", r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{10,255}|xapp-[0-9]-[A-Za-z0-9\-]{10,255}"),
    ("AWS access key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("API key", "sk-", rf"sk-(?=[A-Za-z_\-]{{0,100}}(?:[0-9]|[A-Za-z]{{16}})){_WORD}{{16,400}}"),
    (
        "Google key",
        "AIza GOCSPX- ya29. 1//0",
        rf"AIza{_WORD}{{35}}|GOCSPX-{_WORD}{{20,80}}|ya29\.[A-Za-z0-9_\-.]{{20,2000}}|1//0{_WORD}{{30,200}}",
    ),
    ("Stripe key", "sk_ rk_ whsec_", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/=]{20,255}"),
    ("npm token", "npm_", r"npm_[A-Za-z0-9]{30,255}"),
    ("PyPI token", "pypi-AgE", rf"pypi-AgE{_WORD}{{30,1000}}"),
    ("Hugging Face token", "hf_ api_org_", r"(?:hf_|api_org_)[A-Za-z0-9]{25,255}"),
    (
        "model service key",
        "gsk_ r8_ fw_ xai- pplx- tvly-",
        r"(?:gsk_|r8_|fw_)[A-Za-z0-9]{20,255}|(?:xai-|pplx-)[A-Za-z0-9]{30,255}|tvly-[A-Za-z0-9\-]{20,255}",
    ),
    ("NVIDIA key", "nvapi-", rf"nvapi-{_WORD}{{40,255}}"),
    ("SendGrid key", "SG.", rf"SG\.{_WORD}{{16,64}}\.{_WORD}{{16,128}}"),
    ("Twilio key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mail service key", "key- -us", r"key-[0-9a-f]{32}(?![A-Za-z0-9])|[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    (
        "JSON web token",
        "eyJ",
        rf"eyJ{_WORD}{{6,8000}}\.{_WORD}{{4,16000}}\.{_WORD}{{4,16000}}(?:\.{_WORD}{{2,8000}}){{0,2}}",
    ),
    (  # core.telegram.org/bots/api
        "Telegram token",
        "0: 1: 2: 3: 4: 5: 6: 7: 8: 9:",
        rf"(?:bot)?[0-9]{{6,12}}:(?:AA|(?={_WORD}{{0,40}}[0-9]))(?={_WORD}{{0,40}}[A-Z]){_WORD}{{32,42}}(?!{_WORD})",
    ),
    ("Pulumi token", "pul-", r"pul-[a-f0-9]{40}(?![A-Za-z0-9])"),  # www.pulumi.com/docs/pulumi-cloud/access-management
    (
        "1Password token",
        "ops_eyJ",
        r"ops_eyJ[A-Za-z0-9_\-+/=]{40,8000}",
    ),  # developer.1password.com/docs/service-accounts
    ("Discord token", ".", rf"[MNO][A-Za-z0-9]{{23,25}}\.{_WORD}{{6}}\.{_WORD}{{27,40}}"),
    ("DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{40,64}"),
    ("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("Databricks token", "dapi", r"dapi[a-f0-9]{32}"),
    ("Linear key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,255}"),
    ("Notion token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{40,255}|secret_[A-Za-z0-9]{43}"),
    (
        "vault token",
        "hvs. hvb. hvr. dp.",
        rf"hv[sbr]\.{_WORD}{{20,400}}|dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9._\-]{{30,255}}",
    ),
    ("Terraform token", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_WORD}{{40,255}}"),
    ("Grafana token", "glc_ glsa_", r"glc_[A-Za-z0-9+/=]{32,400}|glsa_[A-Za-z0-9_]{32,255}"),
    (
        "monitoring key",
        "NRAK- sntrys_ sntryu_ PMAK-",
        r"NRAK-[A-Z0-9]{27}|sntry[su]_[A-Za-z0-9+/=_\-]{40,500}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    ),
    (
        "database service token",
        "sbp_ sb_secret_ pscale_",
        r"sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_\-]{20,255}|pscale_(?:tkn|pw|oauth)_[\w.\-]{30,255}",
    ),
    ("Docker token", "dckr_pat_ dckr_oat_", rf"dckr_(?:pat|oat)_{_WORD}{{20,255}}"),
    ("Atlassian token", "ATATT ATCTT ATSTT ATBB", r"AT(?:ATT|CTT|STT|BB)[A-Za-z0-9_\-=]{24,400}"),
    ("Figma token", "figd_", rf"figd_{_WORD}{{30,255}}"),
    (
        "package registry token",
        "rubygems_ cio oy2",
        r"rubygems_[a-f0-9]{48}|cio[A-Za-z0-9]{32}(?![A-Za-z0-9])|oy2[a-z0-9]{43}",
    ),
    (
        "network service key",
        "tskey- nfp_ fo1_",
        rf"tskey-[a-z]{{2,20}}-[A-Za-z0-9\-]{{10,255}}|nfp_[A-Za-z0-9]{{30,255}}|fo1_{_WORD}{{40,255}}",
    ),
    (
        "hosting token",
        "fm2_ vercel_blob_rw_ CCIPAT_ CCIPRJ_ bkua_ CLOJARS_ aio_",
        r"fm2_[A-Za-z0-9+/=]{40,2000}|(?:vercel_blob_rw_|CCIPAT_|CCIPRJ_|bkua_|CLOJARS_|aio_)[A-Za-z0-9_]{28,80}",
    ),
    ("Heroku key", "HRKU-", rf"HRKU-{_WORD}{{30,255}}"),
    ("Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Square token", "sq0 EAAA", rf"sq0[a-z]{{3}}-{_WORD}{{22,43}}|EAAA{_WORD}{{60}}"),
    ("LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("Azure secret", "Q~", r"[A-Za-z0-9]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}"),
    (
        "web hook",
        "/webhooks/ hooks.slack.com/",
        r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_]{20,255}",
    ),
    (
        "web hook",
        "/webhooks/ hooks.slack.com/",
        rf"https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/[0-9]{{5,25}}/{_WORD}{{30,100}}",
    ),
)


_HINTS = tuple(tuple(hints.split()) for _, hints, _ in SHAPES)


def find_possible(text: str) -> tuple[int, ...]:
    """Return the numbers of the shapes that a text may contain. Most texts have none and need no expression."""
    return tuple(number for number, hints in enumerate(_HINTS) if any(hint in text for hint in hints))


def redact_tokens(text: str) -> str:
    for number in find_possible(text):
        text = _compile_shape(number).sub(MARK, text)
    return text


def classify_token(value: str, among: Iterable[int] | None = None) -> str | None:
    """Return the name of the first shape found, or None. `among` are the only possible ones."""
    for number in find_possible(value) if among is None else among:
        if any(hint in value for hint in _HINTS[number]) and _compile_shape(number).search(value):
            return SHAPES[number][0]
    return None


@cache
def _compile_shape(number: int) -> re.Pattern[str]:
    start = r"(?=[A-Za-z0-9][A-Za-z0-9_\-.:/+=~]{15})"  # most words are shorter, and passed over quickly
    return re.compile(rf"{start}(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt]))(?:{SHAPES[number][2]})")


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
    if "=" in value and _names_a_secret(value.lower()) and _CONNECTION_STRING.search(value):
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


def _names_a_secret(lowered: str) -> bool:
    return any(word in lowered for word in ("password", "pwd", "key", "shared", "token", "secret"))


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

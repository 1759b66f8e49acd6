"""Select the environment variables passed to a tool (S7).

A name on the allow list passes whatever its value. Any other variable is withheld if a deny pattern matches its name,
if its name contains a secret word, or if redaction would remove part of its value from a log. A pattern on the
configured allow list only overrides configured deny patterns, never the built-in rules: a secret must be allowed by
its exact name. Names are case-insensitive. Only names are ever logged or shown.
"""

from __future__ import annotations

import fnmatch
import logging
import re
from collections.abc import Callable, Mapping, Sequence

from ollm.config.settings import CORE_ALLOW, CORE_DENY, EnvironmentSettings
from ollm.services.redaction import MIN_KNOWN_VALUE_CHARS, find_secrets

_log = logging.getLogger("ollm.environment")

EXTRA_DENY_PATTERNS = (  # noqa: SIM905 - shorter so
    "*_CREDENTIALS *API_KEY* *APIKEY* *ACCESS_KEY* *SECRET_KEY* *PRIVATE_KEY* *AUTHTOKEN* *_PWD KEY KUBE_CONFIG_DATA"
    " KUBECONFIG_DATA *_KUBECONFIG_DATA *_PAT *_DSN *PGPASSWORD* *CONNECTION_STRING* *CONNECTIONSTRING* *_CONNSTR"
    " npm_config_*auth*"
).split()
# A word of a name that says secret by itself, and at the end of the last word also joined to another (DBPASSWORD).
_WORDS = "PASSWORD|PASSWD|PASSPHRASE|PASSCODE|SECRET|TOKEN|CREDENTIAL|COOKIE|JWT|APIKEY|BEARER"
SECRET_WORD = re.compile(rf"(?:(?:{_WORDS})S?|PASS|PW|AUTH|CREDS?)[0-9]*")
JOINED_SECRET = re.compile(rf".+(?:(?:{_WORDS}|KEY)S?|PASS|PWD|PW|AUTH|CREDS)[0-9]*")
# Words of the language and names of programs that only end like a secret.
ORDINARY_WORD = re.compile(
    r"(?:MON|DON|TUR|HOC|JOC|WHIS|LAC|MIC|HIC|FLUN|MALAR|HOT|TURN|LATCH|PUB|PUBLIC|CACHE|SORT|PRIMARY|FOREIGN)KEYS?"
    r"|(?:BY|COM|ENCOM|TRES|SUR|OVER|UNDER|ASK)PASS|OLDPWD"
)
COUNTING_WORDS = frozenset({"MAX", "MIN", "NUM", "TOTAL", "COUNT", "LIMIT"})  # MAX_TOKENS, for example, is a number.
TELLING_WORDS = frozenset({"SESSION", "SESSIONID", "OTP", "TOTP", "SEED", "NONCE"})  # Only random values are secret.
MAX_KNOWN_VARIABLES = 4096
HARMLESS_NAMES = ("SSH_AUTH_SOCK", "XAUTHORITY", "PWD", "OLDPWD")
SHELL_CODE_RULE = "it is code or settings for every shell that is started"
_WORD_ENDS = re.compile(r"[^A-Z0-9]+")
_RANDOM_VALUE = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/=_-]{16,}")
_CLOSED_SETS = re.compile(r"(?:[^\[]|\[[!^]?.[^\]]*\])*")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class EnvironmentSanitizationService:
    """Filters environment variables. `warnings` lists configured patterns that could not be used."""

    def __init__(self, settings: EnvironmentSettings | None = None) -> None:
        self.warnings: tuple[str, ...] = ()
        self.configure(settings or EnvironmentSettings())

    def configure(self, config: EnvironmentSettings) -> None:
        """Use these rules in addition to the built-in ones. A bad pattern is skipped with a warning (S10.5)."""
        good_allow, more = _split_usable(config.allow_list)
        good_deny, most = _split_usable(config.deny_patterns)
        self.warnings = (*more, *most)
        for warning in self.warnings:
            _log.warning("%s", warning)
        self._named = frozenset(pattern.upper() for pattern in good_allow)
        self._core = _NamePatterns((*CORE_ALLOW, *HARMLESS_NAMES))
        self._allow = _NamePatterns(good_allow)
        self._built_in = _NamePatterns((*CORE_DENY, *EXTRA_DENY_PATTERNS))
        self._deny = _NamePatterns(good_deny)
        self._known: dict[tuple[str, str], str | None] = {}  # Every tool call checks an environment again.

    def sanitize(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that a tool may have."""
        rules = self.find_rules(environment)
        if _log.isEnabledFor(logging.DEBUG):  # The redactor of log lines needs these rules first.
            _log.debug("withheld: %s", ", ".join(sorted(name for name, rule in rules.items() if rule)))
        return {name: value for name, value in environment.items() if rules[name] is None}

    def list_removed_values(self, environment: Mapping[str, str]) -> list[str]:
        """List the withheld values, for the redaction of logs and errors."""
        rules = self.find_rules(environment)
        return [value for name, value in environment.items() if rules[name] is not None]

    def is_allowed(self, name: str) -> bool:
        """Return True if this name passes whatever its value: a core variable, or an exact name in the settings."""
        return name.upper() in self._named or self._core.find_match(name) is not None

    def is_denied(self, name: str) -> bool:
        """Return True if a deny pattern or a secret word matches this name, regardless of the allow list."""
        return self._find_built_in_rule(name) is not None or self._deny.find_match(name) is not None

    def find_rules(self, environment: Mapping[str, str]) -> dict[str, str | None]:
        """Return the rule that withholds each variable, or None if it passes. Earlier results are cached."""
        if len(self._known) > MAX_KNOWN_VARIABLES:
            self._known.clear()
        self._judge({name: value for name, value in environment.items() if (name, value) not in self._known})
        return {name: self._known[name, value] for name, value in environment.items()}

    def _judge(self, environment: Mapping[str, str]) -> None:
        unnamed = []
        for name, value in environment.items():
            rule = self._find_rule(name, value)
            self._known[name, value] = rule
            if rule is None and not self.is_allowed(name) and len(value) >= MIN_KNOWN_VALUE_CHARS:
                unnamed.append((name, value))
        kinds = find_secrets(value for _, value in unnamed) if unnamed else {}
        for name, value in unnamed:
            if value in kinds:
                self._known[name, value] = f"value: {kinds[value]}"

    def _find_rule(self, name: str, value: str) -> str | None:
        if SHELL_CODE.find_match(name) is not None and name.upper() not in self._named:
            return SHELL_CODE_RULE
        if self.is_allowed(name):
            return None
        rule = self._find_built_in_rule(name) or _find_random_value(name, value)
        return rule or (None if self._allow.find_match(name) else self._deny.find_match(name))

    def _find_built_in_rule(self, name: str) -> str | None:
        rule = self._built_in.find_match(name)
        if rule is not None:
            return rule
        words = _split_words(name)
        said = next((word for word in words if SECRET_WORD.fullmatch(word)), None)
        if said is None and JOINED_SECRET.fullmatch(words[-1]) and not ORDINARY_WORD.fullmatch(words[-1]):
            said = words[-1]
        if said is None or (said == "TOKENS" and not COUNTING_WORDS.isdisjoint(words)):
            return None
        return f"word: {said}"


def _split_words(name: str) -> list[str]:
    upper = name.upper()
    return upper.split("_") if upper.isidentifier() else _WORD_ENDS.split(upper)


def _find_random_value(name: str, value: str) -> str | None:
    """Find a long random value in a session id or seed. UUIDs and small numbers are harmless."""
    if TELLING_WORDS.isdisjoint(_split_words(name)) or not _RANDOM_VALUE.fullmatch(value) or _UUID.fullmatch(value):
        return None
    return "value: random"


class _NamePatterns:
    """Case-insensitive globs over whole names."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._tests = [(pattern, _make_test(pattern.upper())) for pattern in patterns]

    def find_match(self, name: str) -> str | None:
        upper = name.upper()
        return next((pattern for pattern, fits in self._tests if fits(upper)), None)


def _make_test(pattern: str) -> Callable[[str], object]:
    """Make a test of upper-case names. Most patterns are simple enough to be compared as text."""
    text = pattern.strip("*")
    if any(letter in "*?[" for letter in text):
        return re.compile(fnmatch.translate(pattern.replace("[^", "[!"))).match
    if pattern.startswith("*"):
        return lambda name: text in name if pattern.endswith("*") else name.endswith(text)
    return lambda name: name.startswith(text) if pattern.endswith("*") else name == text


SHELL_CODE = _NamePatterns(
    ("BASH_ENV", "ENV", "BASH_FUNC_*", "PROMPT_COMMAND", "PS0", "PS4", "SHELLOPTS", "BASHOPTS", "CDPATH")
)


def _split_usable(patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    good, warnings = [], []
    for pattern in patterns:
        trouble = _find_trouble(pattern)
        if trouble:
            warnings.append(f"the environment pattern {pattern!r} is skipped: {trouble}")
        else:
            good.append(pattern)
    return good, warnings


def _find_trouble(pattern: str) -> str | None:
    if not pattern.strip() or "=" in pattern or not pattern.isprintable():
        return "not a valid variable name"
    if "{" in pattern or "}" in pattern:
        return "braces are not supported: write one pattern for each name"
    return None if _CLOSED_SETS.fullmatch(pattern) else "a [ is not closed"

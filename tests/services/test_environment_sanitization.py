"""Which variables tools get."""

import base64
import logging
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import CORE_ALLOW, CORE_DENY, EnvironmentSettings
from ollm.services.environment_sanitization import EnvironmentSanitizationService
from tests.covers import covers

SERVICE = EnvironmentSanitizationService()

KEPT_BACK = {
    "DBPASSWORD": "x",
    "dbpass": "x",
    "DEPLOYKEY": "x",
    "MYAPP_CREDS": "x",
    "TOKENS": "x",
    "BEARER": "x",
    "MYAPPBEARER": "x",
    "ROOTPW": "x",
    "DB_PASS1": "x",
    "OTP_SEED": "JBSWY3DPEHPK3PXP",
    "SESSION_ID": "9f86d081884c7d659a2feaa0c55ad015",
    "BASIC": "Authorization: Basic dXNlcjpwYXNz",
    "LOGIN": "Basic dXNlcjpwYXNz",
    "DEPLOY_PEM": base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nabc").decode(),
    "JSONCRED": '{"type": "service_account", "private_key": "abc123def"}',
    "UPLOAD": "https://b.example.org/k?X-Amz-Expires=60&X-Amz-Signature=" + "fe5f80f7" * 8,
    "OPENAI_API_KEY": "x",
    "my_key": "x",
    "CLIENT_SECRET": "x",
    "GH_TOKEN": "x",
    "TOKEN": "x",
    "DB_PASSWORD": "x",
    "PASSWORD": "x",
    "GCP_CREDENTIAL": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/x.json",
    "AWS_REGION": "eu",
    "aws_secret_access_key": "x",
    "GITHUB_ACTOR": "me",
    "PGPASSWORD": "x",
    "MYSQL_PWD": "x",
    "SMTP_PASS": "x",
    "SMTP_PASS_PROD": "x",
    "DOCKER_AUTH_CONFIG": "{}",
    "SESSION_COOKIE": "x",
    "APP_JWT": "x",
    "OPENAI_APIKEY": "x",
    "APIKEY_STRIPE": "x",
    "GITLAB_PAT": "x",
    "SENTRY_DSN": "x",
    "npm_config__auth": "x",
    "NPM_CONFIG_//npm.example.org/:_authToken": "x",
    "AZURE_STORAGE_CONNECTION_STRING": "x",
    "DATABASE_URL": "postgres://me:secret@db/x",
    "HTTP_PROXY": "http://me:secret@proxy:3128",
    "JDBC": "jdbc:postgresql://h/db?user=a&password=s3cret99",
    "LIBPQ": "host=h user=u password=s3cret99",
    "HOOK": "https://example.org/?api_key=abcdef1234567890",
    "INNOCENT": "ghp_" + "a1B2" * 9,
    "DEPLOY": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
    "SIGNED": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
}
PASSED = {
    "KEYBOARD": "us",
    "BYPASS": "1",
    "COMPASS": "1",
    "TURNKEY": "1",
    "LLM_MAX_TOKENS": "10",
    "XDG_SESSION_ID": "c2",
    "TERM_SESSION_ID": "6b1f2e0c-0b1a-4d3a-9f57-0a1b2c3d4e5f",
    "RANDOM_SEED": "12345678901234567890",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus,guid=0123456789abcdef0123456789abcdef",
    "PATH": "/bin",
    "HOME": "/home/me",
    "USER": "me",
    "SHELL": "/bin/sh",
    "TERM": "xterm",
    "LANG": "C",
    "LC_ALL": "C",
    "lc_time": "C",
    "GIT_AUTHOR_NAME": "Me",
    "TOKENIZERS_PARALLELISM": "false",
    "PWD": "/",
    "OLDPWD": "/",
    "SSH_AUTH_SOCK": "/run/agent",
    "XAUTHORITY": "/home/me/.Xauthority",
    "GIT_ASKPASS": "/bin/ask",
    "MAX_TOKENS": "10",
    "KEYMAP": "us",
    "MONKEY": "x",
    "PASSENGER_APP": "x",
    "DATABASE_URL": "postgres://db/x",
    "EDITOR": "vi",
    "CI": "true",
    "NPM_CONFIG_USERCONFIG": "/x",
    "SEARCH": "https://example.org/?q=token&page=2",
    "LS_COLORS": "rs=0:di=01;34:*.key=01;31",
    "COMMIT": "3f2504e04f8911d39a0c0305e82c33010000abcd",
}


@covers("S7.2", "S7.4", "S7.5")
@pytest.mark.parametrize(("name", "value"), KEPT_BACK.items())
def test_secrets_are_kept_back(name: str, value: str) -> None:
    assert SERVICE.sanitize({name: value}) == {}


@covers("S7.1", "S7.3", "S7.6")
@pytest.mark.parametrize(("name", "value"), PASSED.items())
def test_ordinary_variables_pass(name: str, value: str) -> None:
    assert SERVICE.sanitize({name: value}) == {name: value}


names = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=50)
environments = st.dictionaries(names, st.text(max_size=200), max_size=20)
sensitive = st.builds(
    lambda pattern, fill: pattern.replace("*", fill),
    st.sampled_from(CORE_DENY),
    st.text("ABCxyz019_", min_size=1, max_size=9),
)
core = st.sampled_from(CORE_ALLOW).map(lambda pattern: pattern.replace("*", "ALL"))


@covers("P25", "S7.5", "D357")
@given(environment=environments, extra=st.dictionaries(sensitive, st.text(max_size=50), min_size=1, max_size=5))
def test_names_that_match_deny_patterns_are_removed(environment: dict[str, str], extra: dict[str, str]) -> None:
    """Feature: services-sessions, Property 25: Deny pattern filtering"""
    result = SERVICE.sanitize(environment | extra)

    assert not [name for name in extra if name in result and not SERVICE.is_allowed(name)]
    assert all(SERVICE.is_denied(name) for name in extra)


@covers("P25", "S7.8")
@given(environment=environments, stems=st.lists(names.map("ZQ_{}".format), min_size=1, max_size=4))
def test_names_that_match_patterns_of_the_settings_are_removed(environment: dict[str, str], stems: list[str]) -> None:
    """Feature: services-sessions, Property 25: Deny pattern filtering"""
    service = EnvironmentSanitizationService(EnvironmentSettings(deny_patterns=tuple(f"{stem}*" for stem in stems)))

    result = service.sanitize(environment | {f"{stem}{end}": "x" for stem in stems for end in ("", "_MORE")})

    assert not [name for name in result if name.startswith(tuple(stems))]


@covers("P26", "S7.6")
@given(environment=environments, extra=st.dictionaries(core, st.text(max_size=200), min_size=1))
def test_names_on_the_allow_list_are_kept_whatever_their_value(
    environment: dict[str, str], extra: dict[str, str]
) -> None:
    """Feature: services-sessions, Property 26: Allow list preservation"""
    result = SERVICE.sanitize(environment | extra)

    assert {name: result.get(name) for name in extra} == extra


@covers("P26", "S7.7")
@given(environment=environments, wanted=st.dictionaries(sensitive, st.text(max_size=50), min_size=1, max_size=4))
def test_a_name_that_the_settings_allow_is_kept_though_it_looks_like_a_secret(
    environment: dict[str, str], wanted: dict[str, str]
) -> None:
    """Feature: services-sessions, Property 26: Allow list preservation"""
    service = EnvironmentSanitizationService(EnvironmentSettings(allow_list=tuple(wanted)))
    result = service.sanitize(environment | wanted)

    assert {name: result.get(name) for name in wanted} == wanted


@covers("P27", "D356", "D357")
@given(environment=environments, allow=st.lists(names, max_size=3), deny=st.lists(names, max_size=3))
def test_what_remains_is_allowed_or_matches_no_deny_pattern(
    environment: dict[str, str], allow: list[str], deny: list[str]
) -> None:
    """Feature: services-sessions, Property 27: Sanitization completeness"""
    service = EnvironmentSanitizationService(EnvironmentSettings(allow_list=tuple(allow), deny_patterns=tuple(deny)))

    result = service.sanitize(environment)

    assert all(service.is_allowed(name) or not service.is_denied(name) for name in result)
    assert all(environment[name] == value for name, value in result.items())


@covers("S7.7", "D350")
def test_configured_rules_add_to_the_built_in_ones() -> None:
    service = EnvironmentSanitizationService(
        EnvironmentSettings(
            allow_list=("MY_TOKEN", "CI_*"), deny_patterns=("INTERNAL_*", "CI_HOST", "?EFT_SIDE", "X[0-9]", "Y[!0-9]")
        )
    )
    environment = {
        "MY_TOKEN": "ghp_" + "a1B2" * 9,
        "ci_secret": "1",
        "ci_host": "1",
        "INTERNAL_HOST": "h",
        "Left_Side": "1",
        "Y_": "1",
        "X1": "1",
        "XY": "1",
        "OTHER_TOKEN": "1",
        "PATH": "/bin",
    }

    assert set(service.sanitize(environment)) == {"MY_TOKEN", "ci_host", "XY", "PATH"}


@covers("S10.5", "D628", "D350")
@pytest.mark.parametrize("bad", ["[A-", "{A,B}", "A}", "", " ", "A=B", "A\nB", "["])
def test_a_bad_pattern_is_skipped_and_said_while_the_rest_stands(bad: str) -> None:
    service = EnvironmentSanitizationService()

    service.configure(EnvironmentSettings(deny_patterns=(bad, "GOOD_*")))

    assert len(service.warnings) == 1
    assert repr(bad) in service.warnings[0]
    assert set(service.sanitize({"GOOD_ONE": "1", "A_KEY": "1", "PLAIN": "1"})) == {"PLAIN"}


def test_a_pattern_of_many_stars_is_no_trap() -> None:
    service = EnvironmentSanitizationService(EnvironmentSettings(deny_patterns=("*a" * 20 + "*b",)))

    assert service.sanitize({"a" * 200: "1"})


def test_the_rule_is_named_and_the_value_is_not() -> None:
    found = SERVICE.find_rules(
        {"A_KEY": "sesame-street", "X": "postgres://u:sesame@h", "PATH": "/", "SMTP_PASS": "sesame"}
    )

    assert found == {"A_KEY": "*_KEY", "SMTP_PASS": "word: PASS", "X": "value: URL with a password", "PATH": None}


@covers("D366")
def test_names_are_logged_at_debug_level_only_and_values_never(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ollm"):
        SERVICE.sanitize({"A_KEY": "sesame-street", "PLAIN": "open"})

    assert {record.levelname for record in caplog.records} == {"DEBUG"}
    assert "A_KEY" in caplog.text
    assert "sesame" not in caplog.text


def test_what_is_kept_back_is_known_for_redaction() -> None:
    assert SERVICE.list_removed_values({"A_KEY": "sesame-street", "PLAIN": "open"}) == ["sesame-street"]


CODE = ("BASH_ENV", "ENV", "BASH_FUNC_ls%%", "PROMPT_COMMAND", "SHELLOPTS")


def test_keys_and_code_for_shells_are_kept_back() -> None:
    given = dict.fromkeys((*CODE, "KEY", "KUBE_CONFIG_DATA", "KEYBOARD", "NODE_ENV", "VIRTUAL_ENV"), "x")

    assert set(EnvironmentSanitizationService().sanitize(given)) == {"KEYBOARD", "NODE_ENV", "VIRTUAL_ENV"}


def test_a_pattern_never_overrides_a_built_in_rule_and_an_exact_name_does() -> None:
    service = EnvironmentSanitizationService(EnvironmentSettings(allow_list=("*", "DBPASS")))
    given = dict.fromkeys((*CODE, "PLAIN"), "x") | {
        name: KEPT_BACK[name] for name in KEPT_BACK if name != "DATABASE_URL"
    }

    assert set(service.sanitize(given)) == {"dbpass", "PLAIN"}
    named = EnvironmentSanitizationService(EnvironmentSettings(allow_list=("BASH_ENV",)))
    assert set(named.sanitize(dict.fromkeys(CODE, "x"))) == {"BASH_ENV"}

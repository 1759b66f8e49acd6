"""Names that say their value is secret."""

import pytest

from ollm.services.redaction.names import NameSensitivity, classify_name, split_words


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("DB_PASSWORD", NameSensitivity.PASSWORD),
        ("userPassword", NameSensitivity.PASSWORD),
        ("smtpPass", NameSensitivity.PASSWORD),
        ("GITHUB_TOKEN", NameSensitivity.SECRET),
        ("apiKey", NameSensitivity.SECRET),
        ("STRIPE_KEY", NameSensitivity.SECRET),
        ("stripe_key", NameSensitivity.NONE),
        ("PUBLIC_KEY", NameSensitivity.NONE),
        ("max_tokens", NameSensitivity.NONE),
        ("tokenizer", NameSensitivity.NONE),
        ("token_count", NameSensitivity.NONE),
        ("author", NameSensitivity.NONE),
        ("passenger", NameSensitivity.NONE),
        ("auth", NameSensitivity.WEAK),
    ],
)
def test_names_are_told_by_whole_words(name: str, family: NameSensitivity) -> None:
    assert classify_name(name) is family


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DB_PASSWORD", ("db", "password")),
        ("userPassword2", ("user", "password", "2")),
        ("HTTPToken", ("http", "token")),
        ("api-key.v1", ("api", "key", "v", "1")),
        ("", ()),
        ("é_", ()),
    ],
)
def test_a_name_is_read_in_any_case_style(name: str, words: tuple[str, ...]) -> None:
    assert split_words(name) == words


@pytest.mark.parametrize(
    ("names", "family"),
    [
        ("password PASSWD dbpassword keystorepassphrase pwd db_pwd MYSQL_PW smtp_pass", NameSensitivity.PASSWORD),
        ("secret SECRETS jwt myapikey azurestorageaccesskey secret_access_key ssh_private_key", NameSensitivity.SECRET),
        ("FOO_KEY api_key key_api_key hmac_key KEY_SECRET", NameSensitivity.SECRET),
        ("cookie session_id_cookie bearer x_sig GH_PAT sessionid", NameSensitivity.WEAK),
        ("pass pw key KEY foo_key cache_key CACHE_KEY PRIMARY_KEY keyboard", NameSensitivity.NONE),
        ("token_type password_field max_password is_secret next_token public_token secret_name", NameSensitivity.NONE),
        ("", NameSensitivity.NONE),
        ("cookies authors signatures", NameSensitivity.NONE),
    ],
)
def test_what_a_name_says_about_its_value(names: str, family: NameSensitivity) -> None:
    assert {name: classify_name(name) for name in names.split()} == dict.fromkeys(names.split(), family)


def test_a_password_says_more_than_a_secret_and_a_secret_more_than_a_weak_name() -> None:
    assert NameSensitivity.NONE < NameSensitivity.WEAK < NameSensitivity.SECRET < NameSensitivity.PASSWORD
    assert not NameSensitivity.NONE

"""Secrets known by where they stand."""

import json

import pytest

from ollm.services.redaction import MARK, Redactor
from ollm.services.redaction.credentials import classify_credential, redact_credentials, redact_private_keys

REDACT = Redactor().redact


PEM = "-----BEGIN {0}PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 4 + "-----END {0}PRIVATE KEY-----"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_private_key_is_taken_out_whole(kind: str, form: str) -> None:
    key = PEM.format(kind)
    text = f"before {key if form == 'plain' else json.dumps(key)} after"

    redacted = REDACT(text)

    assert "MIIE" not in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


def test_a_private_key_that_was_cut_off_goes_and_the_text_after_it_stays() -> None:
    cut = PEM.format("")[:150]

    redacted = REDACT(f"{cut}\nThe key above was cut.\n{PEM.format('')}\nend")

    assert "MIIE" not in redacted
    assert "The key above was cut." in redacted
    assert redacted.endswith("end")


def test_a_public_key_and_a_certificate_stay_whole() -> None:
    for kind in ("PUBLIC KEY", "CERTIFICATE"):
        text = f"-----BEGIN {kind}-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END {kind}-----"
        assert REDACT(text) == text


def test_of_two_keys_each_is_taken_out_and_what_is_between_stays() -> None:
    text = f"one {PEM.format('')} two {PEM.format('RSA ')} three"

    assert redact_private_keys(text) == f"one {MARK} two {MARK} three"
    assert redact_private_keys("no key here") == "no key here"
    assert redact_private_keys("-----BEGIN PRIVATE KEY-----") == MARK


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgres://bob:s3cret@db/x", f"postgres://bob:{MARK}@db/x"),
        ("redis://:pw12@host", f"redis://:{MARK}@host"),
        ("https://a1b2c3d4e5f6g7h8@host/x", f"https://{MARK}@host/x"),
        ("https://bob:${PASSWORD}@host", "https://bob:${PASSWORD}@host"),
        ("https://bob:***@host", "https://bob:***@host"),
        ("https://someone@host/x", "https://someone@host/x"),
        ("Authorization: Bearer abc", f"Authorization: Bearer {MARK}"),
        ("Authorization: abcdefg1", f"Authorization: {MARK}"),
        ("Authorization: required", "Authorization: required"),
        ("Authorization: Bearer <token>", "Authorization: Bearer <token>"),
        ("Cookie: a=b; c=d", f"Cookie: {MARK}"),
        ("Set-Cookie: a=b\nnext", f"Set-Cookie: {MARK}\nnext"),
        ("Cookie: none", "Cookie: none"),
        ("bearer abcdefg1", f"bearer {MARK}"),
        ("bearer abcdefgh", "bearer abcdefgh"),
        ("basic abcdefgh=", f"basic {MARK}"),
        ("curl -u bob:pw1 x", f"curl -u bob:{MARK} x"),
        ("curl --user=bob:pw1 x", f"curl --user=bob:{MARK} x"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        ("sshpass -p hunter ssh", f"sshpass -p {MARK} ssh"),
        ("mysql -u root -phunter db", f"mysql -u root -p{MARK} db"),
        ("machine h login bob password pw", f"machine h login bob password {MARK}"),
    ],
)
def test_where_a_secret_stands_only_the_secret_goes(text: str, clean: str) -> None:
    assert redact_credentials(text) == clean


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (PEM.format("EC "), "private key"),
        ("-----BEGIN CERTIFICATE-----", None),
        ("Server=x;Password=pw;", "connection string with a password"),
        ("host=x password=pw", "connection string with a password"),
        ("https://x/?api_key=12345678", "connection string with a password"),
        ("https://x/?api_key=1234567", None),
        ("Server=x;Password=$PW;", None),
        ("name=value", None),
        ("postgres://bob:pw@h", "URL with a password"),
        ("https://a1b2c3d4e5f6g7h8@host", "URL with a password"),
        ("postgres://bob:$PW@h", None),
        ("postgres://bob@h", None),
        ("", None),
    ],
)
def test_a_value_is_classified_by_what_it_carries(value: str, kind: str | None) -> None:
    assert classify_credential(value) == kind

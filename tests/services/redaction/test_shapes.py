"""Tokens that are known by their shape."""

import pytest

from ollm.services.redaction import MARK, Redactor, find_secrets
from ollm.services.redaction.shapes import SHAPES, classify_token, find_possible, redact_tokens
from tests.covers import covers

REDACT = Redactor().redact


EXAMPLES = {
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitLab token": "glpat-" + "a1B2" * 5,
    "Slack token": "xoxb-123456789012-abcdefghij",
    "AWS access key": "AKIAIOSFODNN7EXAMPLE",
    "API key": "sk-proj-" + "abcdefghijklmnopqrstuvwxyz",
    "Google key": "AIza" + "a1B2-" * 7,
    "Stripe key": "sk_live_" + "a1B2" * 6,
    "npm token": "npm_" + "a1B2" * 9,
    "Hugging Face token": "hf_" + "a1B2" * 9,
    "SendGrid key": "SG." + "a1B2" * 5 + "." + "a1B2" * 10,
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "Telegram token": "123456789:AA" + "a1B2c3D4" * 4 + "x",
    "Shopify token": "shpat_" + "0a1b2c3d" * 4,
    "Databricks token": "dapi" + "0a1b2c3d" * 4,
    "Docker token": "dckr_pat_" + "a1B2" * 6,
    "age key": "AGE-SECRET-KEY-1" + "QPZR" * 14 + "QP",
}


@covers("S10.7")
@pytest.mark.parametrize(("kind", "token"), EXAMPLES.items())
@pytest.mark.parametrize("around", ["{}", "see {} there", '"{}"', "line\\n{}", "({})", "x={}", "https://h/{}?a"])
def test_a_token_is_known_by_its_shape_wherever_it_stands(kind: str, token: str, around: str) -> None:
    assert token not in REDACT(around.format(token))
    assert find_secrets([around.format(token)]) == {around.format(token): kind}


def test_every_shape_has_a_name_of_its_own_words() -> None:
    assert all(name and hints and pattern for name, hints, pattern in SHAPES)


MORE = {
    "GitHub token": "github_pat_" + "a1B2_" * 5,
    "Slack token": "xapp-1-" + "A1-" * 4,
    "Google key": "ya29." + "a1B2" * 6,
    "Stripe key": "whsec_" + "a1B2" * 6,
    "PyPI token": "pypi-AgE" + "a1B2" * 8,
    "Hugging Face token": "api_org_" + "a1B2" * 8,
    "model service key": "gsk_" + "a1B2" * 6,
    "NVIDIA key": "nvapi-" + "aB1_" * 16,
    "Twilio key": "SK" + "0a1b" * 8,
    "mail service key": "key-" + "0a1b" * 8,
    "Pulumi token": "pul-" + "a1b2c3d4" * 5,
    "Discord token": "M" + "a1B2" * 6 + "." + "a1B2c3" + "." + "a1B2" * 7,
    "DigitalOcean token": "dop_v1_" + "0a1b" * 12,
    "Linear key": "lin_api_" + "a1B2" * 8,
    "Notion token": "ntn_" + "a1B2" * 10,
    "vault token": "hvs." + "a1B2" * 6,
    "Terraform token": "a1B2c3D4e5F6g7.atlasv1." + "a1B2" * 10,
    "Grafana token": "glsa_" + "a1B2" * 8,
    "monitoring key": "NRAK-" + "A1B2C3D4E" * 3,
    "database service token": "sbp_" + "0a1b" * 10,
    "Atlassian token": "ATATT" + "a1B2" * 6,
    "Figma token": "figd_" + "a1B2" * 8,
    "package registry token": "oy2" + "a" * 43,
    "network service key": "tskey-auth-" + "a1B2" * 3,
    "Heroku key": "HRKU-" + "a1B2" * 8,
    "Airtable token": "pat" + "a1B2c3D4e5F6g7" + "." + "0a1b" * 16,
    "Square token": "sq0atp-" + "a1B2" * 6,
    "LangSmith key": "lsv2_pt_" + "0a1b" * 8 + "_" + "0a1b2c3d4e",
    "Azure secret": "a1B8Q~" + "a1B2" * 8,
    "web hook": "https://discord.com/api/webhooks/1234567890/" + "a1B2" * 8,
}


@pytest.mark.parametrize(("kind", "token"), MORE.items())
def test_each_kind_of_token_is_known_and_taken_out(kind: str, token: str) -> None:
    assert classify_token(token) == kind
    assert redact_tokens(f"it is {token}, they say") == f"it is {MARK}, they say"
    assert classify_token("x" + token) is None or kind in ("Telegram token", "web hook")


def test_every_kind_has_an_example() -> None:
    assert {name for name, _, _ in SHAPES} - {"1Password token"} == {*EXAMPLES, *MORE}


@pytest.mark.parametrize(
    "token", ["ghp_" + "a" * 19, "AKIA" + "A" * 15, "AKIA" + "A" * 17, "sk-" + "a-" * 20, "SG.a.b"]
)
def test_what_is_too_short_or_goes_on_is_none(token: str) -> None:
    assert classify_token(token) is None
    assert redact_tokens(token) == token


def test_only_shapes_whose_fixed_text_is_there_are_looked_for() -> None:
    assert find_possible("nothing of the kind") == ()
    assert [SHAPES[number][0] for number in find_possible("AKIA and npm_")] == ["AWS access key", "npm token"]
    token = EXAMPLES["npm token"]
    assert classify_token(token, among=()) is None
    assert classify_token(token, among=find_possible(token)) == "npm token"

"""What is taken out of text, and what stays."""

import base64
import json
import string
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.services.redaction import MARK, Redactor, find_secrets
from ollm.services.redaction.shapes import redact_tokens
from tests.covers import covers
from tests.sizes import size

REDACT = Redactor().redact

SECRETS = """
password=hunter2|hunter2
password: hunter2|hunter2
password = hunter2|hunter2
password: hunter|hunter
"password": "hunter2"|hunter2
'password': 'correct horse battery staple'|correct horse
"password": "a\\"bcd"|bcd
export API_KEY='abcd1234'|abcd1234
DB_PASSWORD=s3cr3t!@#;x|s3cr3t
PGPASSWORD=foo psql|foo
MYSQL_PWD=foo|foo
api_key = "abc123def"|abc123def
apiKey: "abc123def",|abc123def
{"accessToken":"zzz999","user":"bob"}|zzz999
{\\"token\\": \\"zzz999\\"}|zzz999
Authorization: Bearer abcdef|abcdef
curl -H 'Authorization: Basic dXNlcjpwYXNz' http://x|dXNlcjpwYXNz
{"Authorization": "Bearer abcdefgh"}|abcdefgh
proxy-authorization: Digest username="x"|username
X-Api-Key: 12ab34cd|12ab34cd
x-auth-token: q1w2e3|q1w2e3
Cookie: sid=abcd; theme=dark|abcd
Set-Cookie: session=zzz; HttpOnly|zzz
postgres://bob:s3cret@db/x|s3cret
redis://:pw12@host:6379|pw12
https://user:p@ss@host/x|p@ss
https://user:pa/ss@host/x|pa/ss
https://ghx0123456789abcdef01@github.com/x|ghx0123456789abcdef01
https://api.x.com/v1?api_key=abc123&user=1|abc123
https://api.x.com/v1?user=1&access_token=abcdefghijkl|abcdefghijkl
--password hunter2|hunter2
--token=abc123|abc123
--api-key abc123xyz|abc123xyz
curl -u bob:hunter2 http://x|hunter2
machine x.com login bob password hunter2|hunter2
//npm.example.org/:_authToken=abcdef|abcdef
_auth=dXNlcjpwYXNzd29yZA==|dXNlcjpw
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY|wJalrXUtnFEMI
AccountKey=abc123def456==;EndpointSuffix=x|abc123def456
Server=x;User Id=sa;Password=Hunter;Database=y|Hunter
<password>hunter2</password>|hunter2
os.environ["API_KEY"] = "abc123"|abc123
api_key: str = "abc123"|abc123
CREATE USER bob WITH PASSWORD 'hunter2';|hunter2
client_secret=abcd-efgh|abcd-efgh
SECRET_KEY_BASE=deadbeef|deadbeef
ERROR wrong password: hunter2|hunter2
"auth": "dXNlcjpwYXNzd29yZDEyMw=="|dXNlcjpw
FOO_TOKEN: abc123|abc123
smtp_pass: abc123|abc123
password="abc|abc
env: {PASSWORD: hunter}|hunter
token: abcdefghijkl|abcdefghijkl
sshpass -p hunter2 ssh host|hunter2
docker login -u bob -p hunter2|hunter2
mysql -u root -phunter2 db|hunter2
jdbc:postgresql://host/db?user=fred&password=secret&ssl=true|=secret
curl -H "X-API-Key: abcdef" https://x|abcdef
{"headers":{"x-api-key":"my-key-123"}}|my-key-123
the password is hunter2.|hunter2
pwd=hunter2;Server=x|hunter2
API key: abcdef123456|abcdef123456
https://x/c?sv=2020&sig=AbCdEf0123456789AbCdEf0123456789%3D|AbCdEf
ENV DB_PASS hunter2|hunter2
mongodb+srv://admin:Passw0rd@cluster0.mongodb.net/test|Passw0rd
DefaultEndpointsProtocol=https;AccountName=x;AccountKey=Zm9vYmFyZm9vYmFy==;EndpointSuffix=core|Zm9v
$env:API_KEY = "abc123"|abc123
{"password":12345678}|12345678
"""

HARMLESS = """
token = get_token()
password = os.environ["DB_PASSWORD"]
if token == expected_token:
max_tokens=4096
tokens: 1234
tokenCount: 12
def login(password: str) -> None:
password=None
password: string;
const apiKey = process.env.API_KEY;
API_KEY=${API_KEY}
API_KEY=$API_KEY
password: "********"
password=<your password>
The password is required.
Password: must be at least 8 characters
"password": "This field is required."
public_key=ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVnbG9vcmVt bob@host
commit 3f2504e04f8911d39a0c0305e82c33010000abcd
id: 3f2504e0-4f89-11d3-9a0c-0305e82c3301
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"integrity": "sha512-abcdEFGH1234+/=="
author: Jane Doe
GIT_AUTHOR_NAME=Jane
"token_type": "bearer"
unexpected token '}' in JSON
token = next_token
primary_key=user_id
cache_key=abc123
key: value
keyboard=qwerty
monkey=banana1
passed=12
tests_pass=12
password_field = "password1"
token=token
password=password,
api_key=config.api_key
login(user, password=self.password)
The secret to good tests is patience.
http://localhost:8080/path?email=a@b.com
https://example.com/@user/post
git@github.com:org/repo.git
PWD=/home/me
"type": "password"
for token in tokens:
token: Token
secret: SecretStr
session.headers["X-Token"] = token
docker run -u 1000:1000 x
Authorization: required
Basic understanding of things
--password is required
--token TOKEN
use --api-key to set it
lambda key: value
password := readPassword()
if password != confirm:
sk-folding-cube-animation
assert token.kind == "name"
Enter your password:
bearer of good news
self._token = token
this.password = password;
key=lambda x: x[1]
{"prompt_tokens": 12, "total_tokens": 40}
authenticated: true
token: 42
return {"token": token}
"tokens_per_second": 12.5
headers = {"Authorization": f"Bearer {token}"}
secret = Secret.from_file(path)
KEY_BINDINGS=vi
password = input("Password: ")
let token: string | null = null;
interface Login { username: string; password: string }
  password: { type: String, required: true },
  "token": {"type": "string"},
  apiKey: z.string().min(1),
SyntaxError: Unexpected token < in JSON at position 0
<input type="password" name="password">
kubectl get secrets
secretKeyRef: {name: db, key: password}
Authorization header missing
Cookie policy: we use cookies
PASSED tests/test_auth.py::test_token [ 50%]
etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
password: {{ vault_password }}
password: !vault |
token=$(gh auth token)
"Authorization": "Bearer ${TOKEN}"
Authorization: Bearer <token>
password?: string
signature = inspect.signature(f)
signature: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
user:x:1000:1000::/home/user:/bin/bash
https://host:443/a:b@c
-----BEGIN PUBLIC KEY-----
-----BEGIN CERTIFICATE-----
aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQgdGV4dA==
"""


@covers("S10.7", "P28")
@pytest.mark.parametrize("case", SECRETS.strip().splitlines())
def test_a_secret_is_taken_out(case: str) -> None:
    text, _, secret = case.rpartition("|")

    redacted = REDACT(text)

    assert secret not in redacted
    assert MARK in redacted


@pytest.mark.parametrize("text", HARMLESS.strip().splitlines())
def test_code_prose_ids_and_public_keys_stay(text: str) -> None:
    assert REDACT(text) == text


@covers("P28")
@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=8, max_size=40))
def test_the_values_of_dropped_variables_are_taken_out_in_any_form(value: str) -> None:
    """Feature: services-sessions, Property 28: Sensitive data exclusion from errors"""
    redact = Redactor([value]).redact
    for form in (value, json.dumps(value)[1:-1], quote(value, "")):
        assert form not in redact(f"error: <<{form}>> happened").replace(MARK, "")


def test_short_values_of_dropped_variables_are_left_alone() -> None:
    assert Redactor(["true", "1234567"]).redact("true 1234567") == "true 1234567"


secrets = st.text(string.ascii_letters + string.digits, min_size=6, max_size=60).filter(
    lambda text: any(letter.isdigit() for letter in text) and not text.isdigit()
)
sensitive_names = st.builds(
    "{}{}".format,
    st.sampled_from(["", "MY_", "db_", "app-", "service."]),
    st.sampled_from(
        ["API_KEY", "SECRET", "TOKEN", "PASSWORD", "access_token", "client_secret", "private_key", "passwd"]
    ),
)
forms = st.sampled_from(
    [
        "{0}={1}",
        "{0}: {1}",
        '{{"{0}": "{1}"}}',
        "{0} = '{1}'",
        "error: {0}={1} refused",
        "GET /?{0}={1}&x=2",
        "--{0}={1}",
    ]
)


@covers("P28", "S10.7")
@given(name=sensitive_names, value=secrets, form=forms)
def test_whatever_stands_behind_a_sensitive_name_does_not_get_out(name: str, value: str, form: str) -> None:
    """Feature: services-sessions, Property 28: Sensitive data exclusion from errors"""
    text = form.format(name, value)

    assert value not in REDACT(text).replace(name, "")


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = REDACT(text)

    assert REDACT(once) == once


@given(st.binary(min_size=20, max_size=200))
def test_ordinary_base64_and_hex_stay(data: bytes) -> None:
    for text in (data.hex(), f"sha256:{data.hex()}", f"data:image/png;base64,{base64.b64encode(data).decode()}"):
        assert REDACT(text) == text


UNITS = [
    *("password=", "token=", "a", "=", ":", "-----BEGIN PRIVATE KEY-----", "eyJ", "-eyJ", "eyJaaaaaaaa.", "sk-", "://"),
    *(
        "a://a:",
        "x@",
        'password="',
        "Authorization: ",
        "Cookie: a=",
        "bearer ",
        "key",
        "PASS_",
        "é",
        "\n",
        "\\",
        "_",
        "-",
    ),
    *("token: ", "--token ", "'", '"', "AKIA", "0123456789", "<password>", "password '", "-u a:", "secret.secret."),
    *("https://hooks.slack.com/services/", "ghp_", "machine a login a ", 'password: \\"', "MAAAAAAAAAAAAAAAAAAAAAAA."),
]


LONG_CHARS = size(25_000, 200_000)


@pytest.mark.slow
def test_the_time_is_linear_whatever_the_text() -> None:
    for unit in UNITS:
        text = (unit * (LONG_CHARS // len(unit) + 1))[:LONG_CHARS]
        started = time.process_time()
        REDACT(text)
        find_secrets([text])
        assert time.process_time() - started < 1.5, unit


AWS_SIGNATURE = "fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024"
HIDDEN = {
    "https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz012345678/getMe": "AAabcdef",
    "pul-" + "a1b2c3d4" * 5: "a1b2c3d4",
    "ops_eyJzaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSIsInVzZXJBdXRoIjp7Im1": "eyJzaWdu",
    f"https://b.s3.amazonaws.com/x?X-Amz-Signature={AWS_SIGNATURE}": AWS_SIGNATURE,
    f"X-Amz-Signature={AWS_SIGNATURE}": AWS_SIGNATURE,
    "https://b.s3.amazonaws.com/x?X-Amz-Signature=feedface&x=1": "feedface",
    "https://a.blob.core.windows.net/c?sv=2020&sig=YWJjZGVm": "YWJjZGVm",
    f"https://x.example/?next=https%3A%2F%2Fb%2Fx%3FX-Amz-Signature%3D{AWS_SIGNATURE}": AWS_SIGNATURE,
    "\x1b[32mghp_abcdefghijABCDEFGHIJ0123456789abcdef\x1b[0m": "ghp_abc",
    "token=\x1b[31mabc123def456\x1b[0m": "abc123",
    "      GITHUB_TOKEN: letmein": "letmein",
}


@pytest.mark.parametrize("text", HIDDEN)
def test_secrets_in_odd_places_are_taken_out(text: str) -> None:
    assert HIDDEN[text] not in Redactor().redact(text)


@pytest.mark.parametrize(
    "text", ["token_type=bearer expires_in=3600", "API_KEY: str", "\x1b[32mall good\x1b[0m", "basic auth is fine"]
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert Redactor().redact(text) == text


PEM = "-----BEGIN {0}PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 4 + "-----END {0}PRIVATE KEY-----"


def test_private_keys_go_whole_and_the_text_around_them_stays() -> None:
    key = PEM.format("")
    for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "):
        for form in (PEM.format(kind), json.dumps(PEM.format(kind))):
            redacted = Redactor().redact(f"before {form} after")
            assert "MIIE" not in redacted
            assert (redacted[:7], redacted[-6:]) == ("before ", " after")
    assert Redactor().redact(f"{key[:150]}\nThe key was cut.\n{key}\nend") == f"{MARK}\nThe key was cut.\n{MARK}\nend"
    public = key.replace("PRIVATE", "PUBLIC")
    assert Redactor().redact(public) == public


AMAZON = "fe5f80f7" * 8


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgres://bob:s3cret@db/x", f"postgres://bob:{MARK}@db/x"),
        ("https://a1b2c3d4e5f6g7h8@host/x", f"https://{MARK}@host/x"),
        ("https://bob:${PASSWORD}@host", "https://bob:${PASSWORD}@host"),
        ("Authorization: Bearer abc", f"Authorization: Bearer {MARK}"),
        ("Authorization: required", "Authorization: required"),
        ("Cookie: a=b; c=d", f"Cookie: a={MARK}; c={MARK}"),
        ("Set-Cookie: s=eyJhbGciOiJI.eyJzdWIi.dozjgNry; Path=/; HttpOnly", f"Set-Cookie: s={MARK}; Path=/; HttpOnly"),
        ("bearer abcdefg1", f"bearer {MARK}"),
        ("bearer abcdefgh", "bearer abcdefgh"),
        ("Basic dXNlcjpwYXNz", f"Basic {MARK}"),
        ("a basic python3.11 setup", "a basic python3.11 setup"),
        ("curl -u bob:pw1 x", f"curl -u bob:{MARK} x"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        ("mysql -u root -phunter db", f"mysql -u root -p{MARK} db"),
        ("https://t.example/bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11/getMe", f"https://t.example/{MARK}/getMe"),
        (f"GET /k?X-Amz-Signature={AMAZON}&x=1", f"GET /k?X-Amz-Signature={MARK}&x=1"),
        (f'{{"X-Amz-Signature": "{AMAZON}"}}', f'{{"X-Amz-Signature": "{MARK}"}}'),
        ("20261117:the-quick-brown-fox-jumps-over-the-lazy", "20261117:the-quick-brown-fox-jumps-over-the-lazy"),
    ],
)
def test_only_the_secret_goes(text: str, clean: str) -> None:
    assert Redactor().redact(text) == clean


TOKENS = [
    "ghp_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 5,
    "xoxb-123456789012-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-proj-" + "abcdefghijklmnopqrstuvwxyz",
    "AIza" + "a1B2-" * 7,
    "sk_live_" + "a1B2" * 6,
    "npm_" + "a1B2" * 9,
    "hf_" + "a1B2" * 9,
    "SG." + "a1B2" * 5 + "." + "a1B2" * 10,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "123456789:AA" + "a1B2c3D4" * 4 + "x",
    "shpat_" + "0a1b2c3d" * 4,
    "dapi" + "0a1b2c3d" * 4,
    "dckr_pat_" + "a1B2" * 6,
    "AGE-SECRET-KEY-1" + "QPZR" * 14 + "QP",
    "github_pat_" + "a1B2" * 8,
    "xapp-1-" + "A1B2" * 3,
    "ya29." + "a1B2" * 6,
    "whsec_" + "a1B2" * 6,
    "pypi-AgE" + "a1B2" * 8,
    "api_org_" + "a1B2" * 8,
    "gsk_" + "a1B2" * 6,
    "nvapi-" + "aB1_" * 16,
    "SK" + "0a1b" * 8,
    "key-" + "0a1b" * 8,
    "pul-" + "a1b2c3d4" * 5,
    "M" + "a1B2" * 6 + "." + "a1B2c3" + "." + "a1B2" * 7,
    "dop_v1_" + "0a1b" * 12,
    "lin_api_" + "a1B2" * 8,
    "ntn_" + "a1B2" * 10,
    "hvs." + "a1B2" * 6,
    "a1B2c3D4e5F6g7.atlasv1." + "a1B2" * 10,
    "glsa_" + "a1B2" * 8,
    "NRAK-" + "A1B2C3D4E" * 3,
    "sbp_" + "0a1b" * 10,
    "ATATT" + "a1B2" * 6,
    "figd_" + "a1B2" * 8,
    "oy2" + "a" * 43,
    "tskey-auth-" + "a1B2" * 3,
    "HRKU-" + "a1B2" * 8,
    "pat" + "a1B2c3D4e5F6g7" + "." + "0a1b" * 16,
    "sq0atp-" + "a1B2" * 6,
    "lsv2_pt_" + "0a1b" * 8 + "_" + "0a1b2c3d4e",
    "a1B8Q~" + "a1B2" * 8,
    "https://discord.com/api/webhooks/1234567890/" + "a1B2" * 8,
]


@covers("S10.7")
@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("around", ["{}", "see {} there", '"{}"', "line\\n{}", "({})", "x={}", "it is {}, they say"])
def test_a_token_is_known_by_its_shape_wherever_it_stands(token: str, around: str) -> None:
    text = around.format(token)

    assert redact_tokens(text) == around.format(MARK)
    assert find_secrets([text]) == {text: "token"}


@pytest.mark.parametrize(
    "text",
    ["ghp_" + "a" * 12, "AKIA" + "A" * 15, "AKIA" + "A" * 17, "sk-" + "a-" * 20, "SG.a.b", "npm_config_cache_min=10",
     "hf_hub_download_v2_with_cache", "xghp_" + "a1B2" * 9, "pattern-matching.in-3-steps"],
)  # fmt: skip
def test_what_only_begins_like_a_token_stays(text: str) -> None:
    assert redact_tokens(text) == text
    assert find_secrets([text]) == {}

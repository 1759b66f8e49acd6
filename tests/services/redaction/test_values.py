"""Whether what stands behind a telling name is a secret."""

import pytest

from ollm.services.redaction.names import NameSensitivity
from ollm.services.redaction.values import PLACEHOLDER, AssignmentContext, is_code, is_secret, looks_mixed

PASSWORD, SECRET, WEAK = NameSensitivity.PASSWORD, NameSensitivity.SECRET, NameSensitivity.WEAK


@pytest.mark.parametrize(
    "value",
    [
        "$X",
        "<pw>",
        "{x}",
        "%s",
        "[x]",
        "(x)",
        "xxx",
        "***",
        "...",
        "ab***cd",
        "your-password",
        "changeme_x",
        "a[redacted]b",
        "!vault |",
        "!Ref X",
    ],
)
def test_placeholders_are_no_secrets(value: str) -> None:
    assert PLACEHOLDER.fullmatch(value)
    assert not is_secret(value, AssignmentContext("password", PASSWORD, tight=True), quoted=True)


@pytest.mark.parametrize("value", ["hunter2", "yourpassword", "!exclaim", "x1", "a.b"])
def test_other_values_are_no_placeholders(value: str) -> None:
    assert not PLACEHOLDER.fullmatch(value)


@pytest.mark.parametrize(
    "value", ["a.b", "a->b", "a::b", "a?.b;", "f(x)", "Optional[str]", "list[int]", "my_token", "t.List[str]"]
)
def test_code_is_told(value: str) -> None:
    assert is_code(value)


@pytest.mark.parametrize("value", ["hunter2", "hunter", "a-b", "1.5", "abc/def", "x9_token"])
def test_what_is_no_code_is_told(value: str) -> None:
    assert not is_code(value)


@pytest.mark.parametrize(
    ("value", "place", "quoted", "secret"),
    [
        ("hunter", AssignmentContext("password", PASSWORD, tight=True), False, True),
        ("hunter", AssignmentContext("password", PASSWORD), False, False),
        ("hunter2", AssignmentContext("password", PASSWORD), False, True),
        ("", AssignmentContext("password", PASSWORD, tight=True), True, False),
        (" ,;.", AssignmentContext("password", PASSWORD, tight=True), True, False),
        ("None", AssignmentContext("password", PASSWORD, tight=True), False, False),
        ("required", AssignmentContext("password", PASSWORD, tight=True), True, False),
        ("1234", AssignmentContext("password", PASSWORD, tight=True), False, True),
        ("123", AssignmentContext("password", PASSWORD, tight=True), False, False),
        ("1234567", AssignmentContext("token", SECRET, tight=True), False, False),
        ("12345678", AssignmentContext("token", SECRET, tight=True), False, True),
        ("This is the field", AssignmentContext("password", PASSWORD), True, False),
        ("correct horse battery", AssignmentContext("password", PASSWORD), True, True),
        ("to be", AssignmentContext("password", PASSWORD), True, True),
        ("/home/me", AssignmentContext("pwd", PASSWORD, tight=True), False, False),
        ("C:\\me", AssignmentContext("pwd", PASSWORD, tight=True), False, False),
        ("hunter2", AssignmentContext("pwd", PASSWORD, tight=True), False, True),
        ("hunter2", AssignmentContext("pwd", PASSWORD), False, False),
        ("abcdefghijk1", AssignmentContext("auth", WEAK), False, True),
        ("abcdefghij1", AssignmentContext("auth", WEAK), False, False),
        ("abcdefghijkl", AssignmentContext("auth", WEAK), False, False),
        ("abcdefghijk1", AssignmentContext("sig", WEAK), False, False),
        ("abcdefghijk1", AssignmentContext("sig", WEAK, query=True), False, True),
        ("abcdefghijk1", AssignmentContext("X-Amz-Signature", WEAK), False, True),
        ("abc", AssignmentContext("x-api-key", SECRET, colon=True), False, True),
        ("abc", AssignmentContext("--api", SECRET, colon=True), False, False),
        ("hunter", AssignmentContext("password", PASSWORD, colon=True, own_line=True), False, True),
        ("hunter", AssignmentContext("password", PASSWORD, colon=True, listed=True), False, True),
        ("hunter", AssignmentContext("password", PASSWORD, colon=True), False, False),
        ("hunter", AssignmentContext("password", PASSWORD, own_line=True), False, False),
        ("letmein", AssignmentContext("GITHUB_TOKEN", SECRET, colon=True, own_line=True), False, True),
        ("Letmein", AssignmentContext("GITHUB_TOKEN", SECRET, colon=True, own_line=True), False, False),
        ("letmein", AssignmentContext("token", SECRET, colon=True, own_line=True), False, False),
        ("letmeinn", AssignmentContext("token", SECRET, colon=True, own_line=True), False, True),
        ("letmeinn", AssignmentContext("token", SECRET, colon=True), False, False),
        ("letmein", AssignmentContext("github_token", SECRET, colon=True, own_line=True), False, False),
        ("letmein", AssignmentContext("TOKEN", SECRET, colon=True, own_line=True), False, False),
        ("it is so", AssignmentContext("password", PASSWORD), True, False),
    ],
)
def test_the_place_decides_as_well_as_the_value(
    value: str, place: AssignmentContext, quoted: bool, secret: bool
) -> None:
    assert is_secret(value, place, quoted=quoted) is secret


@pytest.mark.parametrize(
    ("value", "mixed"), [("abc123", True), ("abc12", False), ("abcdef", False), ("123456", False), ("ab 123", False)]
)
def test_letters_and_digits_together_look_mixed(value: str, mixed: bool) -> None:
    assert looks_mixed(value) is mixed

"""How file names are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.system.paths import is_environment_file
from ollm.system.sandbox.names import SHELL_START_UP_FILES, normalize_name


@given(st.text(max_size=30))
def test_environment_files_are_told_by_name(rest: str) -> None:
    assert is_environment_file(".env" + rest) or (".env" + rest).rstrip(". ").lower().endswith(
        (".example", ".sample", ".template")
    )
    assert not is_environment_file("x.env" + rest)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("README", "readme"),
        ("a. . ", "a"),
        ("...", "..."),
        ("", ""),
        ("Ünïcode", "ünïcode"),
        (".\u200benv", ".env"),
        (".ｅｎｖ", ".env"),
        (".env\u202e", ".env"),
        ("STRASSE", "strasse"),
        ("straße", "strasse"),
        ("\u200b", "\u200b"),
    ],
)
def test_a_name_as_the_most_forgiving_file_system_compares_it(name: str, plain: str) -> None:
    assert normalize_name(name) == plain


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (".env", True),
        (".ENV.local", True),
        (".envrc", True),
        (".env.example", False),
        (".env.Sample.", False),
        (".env.template", False),
        ("env", False),
        ("my.env", False),
    ],
)
def test_which_names_are_environment_files(name: str, secret: bool) -> None:
    assert is_environment_file(name) is secret


def test_the_files_that_shells_start_with_are_listed_as_they_are_compared() -> None:
    assert {".bashrc", ".zshrc", "config.fish", ".xprofile"} <= SHELL_START_UP_FILES
    assert {normalize_name(name) for name in SHELL_START_UP_FILES} == SHELL_START_UP_FILES

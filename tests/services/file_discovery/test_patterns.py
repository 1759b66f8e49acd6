"""Git's wildcards byte by byte, and globs as people write them."""

import os
import subprocess
from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery.patterns import (
    BadPattern,
    compile_bytes,
    expand_braces,
    translate_glob,
    translate_pattern,
)

CASES: list[tuple[str, str, bool]] = [
    ("foo", "foo", True),
    ("foo", "fooo", False),
    ("?oo", "foo", True),
    ("?oo", "/oo", False),
    ("*", "foo", True),
    ("*", "a/b", False),
    ("a*b", "axxb", True),
    ("a*b", "a/b", False),
    ("**", "a/b/c", True),
    ("**/c", "c", True),
    ("**/c", "a/b/c", True),
    ("**/c", "xc", False),
    ("a/**", "a/b/c", True),
    ("a/**", "a", False),
    ("a/**/c", "a/c", True),
    ("a/**/c", "a/x/y/c", True),
    ("a/**/c", "axc", False),
    ("a**", "a/b", True),
    ("a**", "abc", True),
    ("**a", "xa", True),
    ("**a", "x/a", False),
    ("[ab]", "a", True),
    ("[ab]", "c", False),
    ("[!ab]", "c", True),
    ("[^ab]", "a", False),
    ("[!ab]", "/", False),
    ("[a-c]", "b", True),
    ("[a-c]", "d", False),
    ("[a-]", "-", True),
    ("[-a]", "-", True),
    ("[]a]", "]", True),
    ("[!]a]", "b", True),
    ("[\\]]", "]", True),
    ("[a-\\c]", "b", True),
    ("[[:digit:]]", "7", True),
    ("[[:digit:]x]", "x", True),
    ("[![:alpha:]]", "a", False),
    ("[[:space:]]", " ", True),
    ("[[:xdigit:]]", "F", True),
    ("[[:upper:]]", "a", False),
    ("[[:punct:]]", "#", True),
    ("[[:alnum:][:blank:]]", "\t", True),
    ("[[:]", ":", True),
    ("\\*", "*", True),
    ("\\*", "x", False),
    ("\\a", "a", True),
    ("a.b", "axb", False),
    ("a+(b)", "a+(b)", True),
    ("é", "é", True),
    ("??", "é", True),
    ("{a,b}", "{a,b}", True),
]


def test_git_itself_agrees(tmp_path: Path) -> None:
    """Patterns with a slash in front are anchored, so that git compares the whole path."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for pattern, path, _ in CASES:
        if pattern.startswith("**") or "/" in (path[:1], path[-1:]) or path in ("\t", ":"):
            continue
        (tmp_path / ".gitignore").write_text(f"/{pattern}\n", encoding="utf-8")
        asked = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=tmp_path, check=False)
        whole = {path, *("/".join(path.split("/")[:end]) for end in range(1, path.count("/") + 1))}
        expression = compile_bytes(translate_pattern(os.fsencode(pattern)))
        expected = any(expression.fullmatch(os.fsencode(one)) for one in whole)
        assert (asked.returncode == 0) is expected, (pattern, path)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a\\", "a backslash at the end escapes nothing"),
        ("[", "a set without its closing bracket"),
        ("[a", "a set without its closing bracket"),
        ("[a-", "a set without its closing bracket"),
        ("[[:alpha", "a set without its closing bracket"),
        ("[\\", "a set without its closing bracket"),
        ("[[:nope:]]", r"there is no class \[:nope:\]"),
        ("[/]", "a set that holds no character"),
    ],
)
def test_a_pattern_that_can_never_match_is_told(pattern: str, reason: str) -> None:
    with pytest.raises(BadPattern, match=reason):
        translate_pattern(pattern.encode())


def test_no_wildcard_matches_the_end_of_a_path_in_a_list() -> None:
    for pattern in (b"*", b"**", b"?", b"[!a]", b"[\\x00-\\xff]"):
        assert not compile_bytes(translate_pattern(pattern)).fullmatch(b"\0")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.{ts,tsx}", ["*.ts", "*.tsx"]),
        ("{a,b}/{c,d}", ["a/c", "b/c", "a/d", "b/d"]),
        ("{a,{b,c}}x", ["ax", "bx", "cx"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("a,b}", ["a,b}"]),
        ("\\{a,b}", ["\\{a,b}"]),
        ("{,x}", ["", "x"]),
    ],
)
def test_braces_are_alternatives(pattern: str, expected: list[str]) -> None:
    assert expand_braces(pattern) == expected


@pytest.mark.parametrize("pattern", ["", "[", "a[b", "[[:nope:]]", "a\\", "x\0y", "{a,b}" * 12])
def test_a_glob_that_cannot_be_used_is_told(pattern: str) -> None:
    with pytest.raises(ToolFailure) as told:
        translate_glob(pattern)

    assert told.value.kind == "InvalidPattern"


def test_a_thousand_alternatives_are_enough() -> None:
    ten = "{0,1,2,3,4,5,6,7,8,9}"
    assert len(expand_braces(ten * 3)) == 1000
    assert expand_braces(ten * 3)[-1] == "999"
    for more in (f"{{{','.join(map(str, range(1001)))}}}", f"{ten * 3}{{a,b}}"):
        with pytest.raises(BadPattern, match="more than 1000 patterns"):
            expand_braces(more)

"""Git's wildcards, byte by byte."""

import os
import subprocess
from pathlib import Path

import pytest

from ollm.services.file_discovery.expressions import compile_bytes
from ollm.services.file_discovery.wildmatch import (
    BadPattern,
    escape_literal,
    expand_sets,
    measure_literal,
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


@pytest.mark.parametrize(("pattern", "path", "matches"), CASES)
def test_a_pattern_matches_as_git_has_it(pattern: str, path: str, matches: bool) -> None:
    expression = translate_pattern(os.fsencode(pattern))

    assert bool(compile_bytes(expression).fullmatch(os.fsencode(path))) is matches


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
    ("pattern", "length"), [(b"", 0), (b"abc", 3), (b"ab*", 2), (b"?", 0), (b"a[", 1), (b"a\\b", 1)]
)
def test_the_plain_part_of_a_pattern_is_measured(pattern: bytes, length: int) -> None:
    assert measure_literal(pattern) == length


def test_every_byte_can_be_written_as_it_is() -> None:
    for code in range(1, 256):
        assert compile_bytes(escape_literal(bytes([code]))).fullmatch(bytes([code]))
        assert not compile_bytes(escape_literal(bytes([code]) * 2)).fullmatch(bytes([code]))
    assert escape_literal(b"abc1") == b"abc1"


def test_only_letters_digits_and_slashes_stand_for_themselves() -> None:
    assert escape_literal(b"a/Z/0.9") == b"a/Z/0\\x2e9"
    assert escape_literal(b"/") == b"/"
    assert escape_literal(b"-\x00\xff") == b"\\x2d\\x00\\xff"


def test_how_many_patterns_sets_may_stand_for() -> None:
    assert expand_sets(b"*.py[cod]") == [b"*.pyc", b"*.pyo", b"*.pyd"]
    assert expand_sets(b"[ab]x[12]y") == [b"ax1y", b"ax2y", b"bx1y", b"bx2y"]
    assert len(expand_sets(b"[abcd][abcd]")) == len(expand_sets(b"[0123456789abcdef]")) == 16
    for pattern in (b"[0123456789abcdefg]", b"[abcdefghi][ab]", b"[a-c]", b"[!a]", b"a\\[b]", b"[ab", b"[]"):
        assert expand_sets(pattern) == [pattern]

"""Globs and the flat list of patterns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.expressions import NameSearch
from ollm.services.file_discovery.globs import EndingSearch, compile_globs, expand_braces, translate_glob
from ollm.services.file_discovery.matcher import Matcher
from ollm.services.file_discovery.rules import parse_ignore_rules
from tests.covers import covers


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


@covers("P22", "D321", "D321")
@pytest.mark.parametrize(
    ("path", "patterns", "expected"),
    [
        ("node_modules/x/y.js", ["node_modules"], True),
        ("a.log", ["*.log", "!a.log"], False),
        ("deep/a.log", ["/a.log"], False),
        ("out/a.txt", ["out/", "!out/a.txt"], True),
        ("out", ["out/"], False),
        ("out/", ["out/"], True),
        ("a/b/c", ["a/**/c"], True),
        ("", ["*"], False),
    ],
)
def test_should_ignore_reads_patterns_as_git_does(service: FileDiscoveryService, path, patterns, expected) -> None:
    assert service.should_ignore(path, patterns) is expected


@covers("D320")
async def test_patterns_know_their_root(service: FileDiscoveryService, root) -> None:
    (root / "sub").mkdir()
    (root / ".gitignore").write_text("/top.txt\n")
    patterns = await service.load_ignore_patterns(str(root))

    assert service.should_ignore(str(root / "top.txt"), patterns)
    assert not service.should_ignore(str(root / "sub" / "top.txt"), patterns)
    assert "node_modules" in patterns


PARTS = st.sampled_from(["*", "**", "**/", "*", "a", "b.py", ".py", "/", "src/", "{a,b}", "?", "./", "é"])


@given(
    st.lists(PARTS, min_size=1, max_size=5).map("".join),
    st.lists(st.lists(st.sampled_from(["a", "b.py", "src", ".py", "xa", "é"]), min_size=1, max_size=3).map("/".join)),
)
def test_a_glob_finds_the_same_paths_whichever_way_it_is_looked_for(pattern: str, paths: list[str]) -> None:
    search = compile_globs((pattern,))
    expected = set(NameSearch([translate_glob(pattern)]).find_matches("", paths))

    assert search is not None
    assert set(search.find_matches("", paths)) == expected
    for path in paths:
        base, slash, name = path.rpartition("/")
        assert (name in search.find_matches(base + slash, [name])) is (path in expected)


@pytest.mark.parametrize("pattern", ["*.py", "**/*.py", "src/**/*.{ts,tsx}", "./**/*_test.go", "**/*"])
def test_the_globs_people_write_need_no_search(pattern: str) -> None:
    assert isinstance(compile_globs((pattern,)), EndingSearch)


@given(
    st.lists(
        st.lists(
            st.sampled_from(["*", "**", "a", "b", ".c", "/", "!", "?", "[ab]", "\\a", " "]), min_size=1, max_size=5
        ),
        max_size=6,
    ),
    st.lists(st.sampled_from(["a", "b", "ab", "a.c", ".c", "b.c.c", "A", "*a", " "]), unique=True),
    st.sampled_from(["", "a/", "a/b/"]),
    st.booleans(),
)
def test_no_name_that_a_rule_decides_about_is_overlooked(
    lines: list[list[str]], names: list[str], base: str, ignore_case: bool
) -> None:
    rules = parse_ignore_rules(["".join(line).encode() for line in lines], b"", "rules").rules
    matcher = Matcher(rules, ignore_case=ignore_case)

    spoken_of = matcher.find_candidates(base, names)

    for name in names:
        if matcher.find_deciding_rule((base + name).encode(), directory=True) is not None:
            assert name in spoken_of

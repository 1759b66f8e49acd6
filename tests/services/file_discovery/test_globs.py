"""Globs and the flat list of patterns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery.expressions import NameSearch
from ollm.services.file_discovery.globs import EndingSearch, compile_globs, expand_braces, translate_glob
from ollm.services.file_discovery.wildmatch import BadPattern


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


def test_a_thousand_alternatives_are_enough() -> None:
    ten = "{0,1,2,3,4,5,6,7,8,9}"
    assert len(expand_braces(ten * 3)) == 1000
    assert expand_braces(ten * 3)[-1] == "999"
    for more in (f"{{{','.join(map(str, range(1001)))}}}", f"{ten * 3}{{a,b}}"):
        with pytest.raises(BadPattern, match="more than 1000 patterns"):
            expand_braces(more)

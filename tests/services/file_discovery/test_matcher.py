"""Which rule has the last word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.services.file_discovery.matcher import Matcher
from ollm.services.file_discovery.rules import parse_ignore_rules


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


def make(*lines: str, ignore_case: bool = False, base: bytes = b"") -> Matcher:
    return Matcher(parse_ignore_rules([line.encode() for line in lines], base, "x").rules, ignore_case=ignore_case)


@pytest.mark.parametrize(
    ("lines", "path", "directory", "deciding"),
    [
        (("*.log", "!a.log"), b"a.log", False, "!a.log"),
        (("!a.log", "*.log"), b"a.log", False, "*.log"),
        (("a[bc]d", "x?z", "ab?"), b"acd", False, "a[bc]d"),
        (("a[bc]d", "x?z", "ab?"), b"abc", False, "ab?"),
        (("out/",), b"out", False, None),
        (("out/",), b"out", True, "out/"),
        (("out", "out/"), b"out", False, "out"),
        (("/a",), b"d/a", False, None),
        (("a",), b"d/a", False, "a"),
        (("d/a", "?"), b"d/a", False, "?"),
        (("*.log",), b"log", False, None),
        ((), b"a", False, None),
    ],
)
def test_the_last_rule_that_matches_decides(
    lines: tuple[str, ...], path: bytes, directory: bool, deciding: str | None
) -> None:
    rule = make(*lines).find_deciding_rule(path, directory=directory)

    assert (rule.text if rule else None) == deciding
    assert make(*lines).hides(path, directory=directory) is (deciding is not None and deciding[0] != "!")


def test_case_counts_unless_git_says_otherwise() -> None:
    for lines in (("FOO",), ("*.LOG",), ("F?O",)):
        name = lines[0].lower().replace("*", "x").replace("?", "o").encode()
        assert not make(*lines).hides(name, directory=False)
        assert make(*lines, ignore_case=True).hides(name, directory=False)
        assert make(*lines, ignore_case=True).find_candidates("", [name.decode()])


def test_a_rule_of_a_folder_says_nothing_of_its_neighbours() -> None:
    matcher = make("x", "*.log", base=b"sub")

    assert matcher.hides(b"sub/x", directory=False)
    assert matcher.hides(b"sub/d/a.log", directory=False)
    assert not matcher.hides(b"x", directory=False)
    assert not matcher.hides(b"subway/x", directory=False)


def test_more_rules_than_one_group_holds_keep_their_order() -> None:
    lines = [f"name{number}" for number in range(1200)]

    matcher = make("a*", *lines, "!name3", "x?")

    assert not matcher.hides(b"name3", directory=False)
    assert matcher.hides(b"name1199", directory=False)
    assert matcher.hides(b"abc", directory=False)
    assert matcher.hides(b"xy", directory=False)
    assert set(matcher.find_candidates("", ["name3", "abc", "xy", "other"])) == {"name3", "abc", "xy"}


@pytest.mark.parametrize("more", [(), tuple(f"*.x{number}" for number in range(9))])
def test_many_endings_find_the_names_that_few_find(more: tuple[str, ...]) -> None:
    """With many another way is taken."""
    matcher = make("*.log", "*~", "*.tar.[gx]z", *more)
    names = ["a.log", "log", "b~", "~", "c.tar.gz", "c.tar.xz", "c.tar.bz", "d.py", "é.log", "z", "日"]

    assert matcher.find_candidates("", names) == {"a.log", "b~", "~", "c.tar.gz", "c.tar.xz", "é.log"}
    assert not matcher.find_candidates("", ["d.py", "z", "日"])
    assert not matcher.find_candidates("", [])

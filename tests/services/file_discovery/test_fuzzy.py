"""Paths for what a person types, and a project in a few lines."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.services.file_discovery.fuzzy import PathFinder

PATHS = [
    "src/services/file_discovery/walk.py",
    "src/services/file_discovery/watch.py",
    "src/tools/grep.py",
    "tests/tools/test_grep.py",
    "docs/grep.py.md",
    "README.md",
    "src/Main.java",
]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("grep.py", "src/tools/grep.py"),
        ("grep", "docs/grep.py.md"),
        ("tools/grep", "src/tools/grep.py"),
        ("readme", "README.md"),
        ("main.JAVA", "src/Main.java"),
        ("sfdwa", "src/services/file_discovery/walk.py"),
        ("wlak.py", "src/services/file_discovery/walk.py"),
        ("./README", "README.md"),
        ("", "README.md"),
    ],
)
def test_the_likeliest_path_comes_first(typed: str, first: str) -> None:
    assert PathFinder(PATHS).find_best(typed)[0] == first


def test_nothing_alike_gives_nothing() -> None:
    assert PathFinder(PATHS).find_best("zzzzzz") == []
    assert PathFinder([]).find_best("a") == []


@given(
    st.lists(st.text("ab/.é\udce9", min_size=1, max_size=8), max_size=20),
    st.text("ab/é", max_size=5),
    st.integers(1, 5),
)
def test_paths_come_once_and_no_more_than_asked_for(paths: list[str], typed: str, limit: int) -> None:
    best = PathFinder(sorted(set(paths))).find_best(typed, limit)

    assert len(best) == len(set(best)) <= limit
    assert set(best) <= set(paths)
    holding = [path for path in set(paths) if typed.strip().removeprefix("./") in path]
    assert len(best) >= min(limit, len(holding))


@given(
    st.lists(st.text("abc/.é", min_size=1, max_size=8), max_size=20),
    st.lists(st.text("abc/é", max_size=5), max_size=6),
)
def test_what_was_asked_before_changes_no_answer(paths: list[str], asked: list[str]) -> None:
    finder = PathFinder(paths)
    finder.warm_up()
    for word in asked:
        for end in range(len(word) + 1):
            assert finder.find_best(word[:end]) == PathFinder(paths).find_best(word[:end])


def test_a_hundred_thousand_paths_keep_up_with_typing() -> None:
    rng = random.Random(1)
    words = ["alpha", "beta", "file", "test", "core", "util", "main", "index", "view", "model"]
    paths = ["/".join(f"{rng.choice(words)}{rng.randrange(40)}" for _ in range(4)) + ".py" for _ in range(100_000)]
    finder = PathFinder(paths)
    finder.find_best("warm")
    taken = []
    for typed in ("m", "mo", "mod", "mode", "model", "model3", "model3/", "model3/f", "mdl3fl", "modle33"):
        start = time.perf_counter()
        assert finder.find_best(typed)
        taken.append(time.perf_counter() - start)

    assert sorted(taken)[len(taken) // 2] < 0.3


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("grep", "grep docs/grep.py.md src/tools/grep.py tests/tools/test_grep.py"),
        ("grep.py", "src/tools/grep.py docs/grep.py.md tests/tools/test_grep.py"),
        ("g", "grep docs/grep.py.md src/tools/grep.py tests/tools/test_grep.py"),
        ("sfdwa", "src/services/file_discovery/walk.py src/services/file_discovery/watch.py"),
        ("src/", "src/Main.java src/tools/grep.py src/services/file_discovery/walk.py"),
        ("tests", "tests/tools/test_grep.py"),
        ("grepxy", "grep src/tools/grep.py"),
        ("old/grpe", "grep"),
        ("gx", ""),
        ("q", ""),
        ("qqq", ""),
        ("", "a bb grep README.md"),
    ],
)
def test_all_that_is_found_in_its_order(typed: str, found: str) -> None:
    paths = [*PATHS, "grep", "bb", "a"]

    for limit in (1, 2, 20):
        best = PathFinder(paths).find_best(typed, limit)
        assert best[: len(found.split())] == found.split()[:limit]
        assert best or not found
    assert PathFinder(["a"]).find_best("a") == ["a"]
    assert PathFinder([]).find_best("") == []

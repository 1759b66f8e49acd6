"""Paths for what a person types, and a project in a few lines."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.files import FileEntry
from ollm.services.file_discovery.fuzzy import PathFinder
from ollm.services.file_discovery.project_map import render_project_map

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


def entries(*paths: str) -> list[FileEntry]:
    return [FileEntry(root="/p", relative_path=path) for path in paths]


def test_a_small_project_is_mapped_whole() -> None:
    said = render_project_map(entries("README.md", "src/app/main.py", "src/app/util.py", "docs/a/b/c.md"), 1000)

    assert said == "docs/a/b/\n  c.md\nsrc/app/\n  main.py util.py\nREADME.md"


def test_what_has_no_room_is_counted() -> None:
    many = entries(*(f"src/m{number}/f{inner}.py" for number in range(30) for inner in range(30)), "Makefile")

    assert render_project_map(many, 60) == "src/ (900 files)\nMakefile"
    assert render_project_map(many, 12) == "901 files"
    assert "m7/ (30 files)" in render_project_map(many, 1000)


@given(
    st.lists(st.lists(st.text("abcé", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join), max_size=30),
    st.integers(20, 400),
)
def test_a_map_keeps_to_its_room_and_does_not_depend_on_order(paths: list[str], room: int) -> None:
    said = render_project_map(entries(*paths), room)

    assert len(said) <= room
    assert said == render_project_map(entries(*reversed(paths)), room)


def test_of_many_directories_the_fullest_forty_are_shown() -> None:
    many = entries(*(f"d{number:02}/x" for number in range(42)), "d41/y", "d40/y")

    lines = render_project_map(many, 10_000).splitlines()

    assert lines[-1] == "… 2 more directories"
    assert "d41/" in lines
    assert "d39/" not in lines


def test_directories_are_no_files_and_a_name_cannot_break_the_lines() -> None:
    folder = FileEntry(root="/p", relative_path="only", type="directory")

    assert render_project_map([folder, *entries("a\nb", "ok")], 100) == "a\ufffdb ok"
    assert render_project_map([], 100) == ""
    assert render_project_map(entries("src/a"), 3) == "1 f"
    assert render_project_map(entries("src/a_long_name", "x"), 16) == "src/ (1 file)\nx"

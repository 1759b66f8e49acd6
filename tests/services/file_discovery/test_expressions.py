"""Searches for bytes that take linear time on any rule and any name."""

import time

import pytest

from ollm.services.file_discovery.expressions import NameSearch, compile_bytes, compile_set


def test_expressions_are_bytes_and_letters_count_unless_told_otherwise() -> None:
    assert compile_bytes(b"a\\xe9?").fullmatch(b"a\xe9")
    assert not compile_bytes(b"abc").fullmatch(b"ABC")
    assert compile_bytes(b"abc", ignore_case=True).fullmatch(b"ABC")
    assert compile_bytes(b"abc") is compile_bytes(b"abc")


def test_a_set_tells_which_of_its_expressions_match() -> None:
    whole = compile_set([b"a", b"a.*", b"b"])

    assert sorted(whole.Match(b"a")) == [0, 1]
    assert sorted(whole.Match(b"ax")) == [1]
    assert not whole.Match(b"xa")
    assert sorted(compile_set([b"a", b"c"], anywhere=True).Match(b"xa")) == [0]
    assert sorted(compile_set([b"a"], ignore_case=True).Match(b"A")) == [0]


@pytest.mark.parametrize(
    ("base", "names", "found"),
    [
        ("", ["a.py", "b.txt", "é.py"], {"a.py", "é.py"}),
        ("src/", ["a.py", "b.txt"], set()),
        ("lib/", ["x", "y.py"], {"x", "y.py"}),
        ("", [], set()),
        ("", ["b.txt"], set()),
    ],
)
def test_names_of_a_directory_are_searched_together(base: str, names: list[str], found: set[str]) -> None:
    search = NameSearch([rb"[^/\x00]*\.py", rb"lib/[^\x00]*"])

    assert set(search.find_matches(base, names)) == found


def test_names_that_are_not_text_and_names_alike_in_part_are_told_apart() -> None:
    search = NameSearch([b"a", b"\xff"])

    assert set(search.find_matches("", ["a", "aa", "ba", "\udcff", "a\n"])) == {"a", "\udcff"}
    assert set(NameSearch([b"a"], ignore_case=True).find_matches("", ["A", "a", "b"])) == {"A", "a"}


def test_an_expression_that_would_blow_up_does_not() -> None:
    started = time.process_time()
    assert not compile_bytes(b"(?:a*)*" * 20 + b"b").fullmatch(b"a" * 5000)
    assert time.process_time() - started < 5

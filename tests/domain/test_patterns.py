"""Expressions that wait to be compiled until they are used."""

import re

import pytest

from ollm.domain.patterns import compile_late


def test_it_matches_as_the_compiled_one_does() -> None:
    late = compile_late(r"(\d+)b", re.IGNORECASE)
    assert late.findall("7B and 70b") == ["7", "70"]
    assert late.split("a 3B model") == ["a ", "3", " model"]
    assert late.sub("?", "7b") == "?"
    assert late.pattern == r"(\d+)b"


def test_it_takes_bytes() -> None:
    assert compile_late(rb"\{\s*+").match(b"{  ")


def test_nothing_is_compiled_before_the_first_use() -> None:
    late = compile_late("(")
    with pytest.raises(re.error):
        late.match("(")


def test_a_method_is_looked_up_once() -> None:
    late = compile_late("a")
    assert late.match is late.match

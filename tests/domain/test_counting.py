"""Counts in words."""

import pytest

from ollm.domain.counting import format_count


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((0, "file"), "0 files"),
        ((1, "file"), "1 file"),
        ((1204, "file"), "1,204 files"),
        ((1, "match", "matches"), "1 match"),
        ((2, "match", "matches"), "2 matches"),
    ],
)
def test_a_noun_is_one_or_many(given: tuple[int, str], told: str) -> None:
    assert format_count(*given) == told
